"""The default back end: jobs in a warm fork server's namespaces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from .drive import Job, Starts, drive
from .pool import Pool, shared_pool, with_retry
from .result import Infrastructure, Limits, Refused, Result
from .server import ServerConfig


@dataclass(frozen=True, slots=True)
class Zygote:
    """Runs programs, call cases and test pairs; all methods block and may be called from any number of threads.

    `config` says how the fork servers are built; `testers` how those are that hold trusted tests (the same by
    default, but never the same server). Servers are shared by all users of an equal configuration in this process.
    """

    config: ServerConfig = field(default_factory=ServerConfig)
    candidates: Pool | None = None
    testers: Pool | None = None

    def _pools(self) -> tuple[Pool, Pool]:
        first = self.candidates or shared_pool(self.config)
        return first, self.testers or shared_pool(replace(self.config, roles=("tester",)))

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result:
        """The program as `__main__`, with `stdin`."""
        return self._single("program", program.encode("utf-8", "surrogatepass"), limits, stdin)

    def answer_calls(self, payload: dict[str, Any], limits: Limits) -> Result:
        """Role "calls" (see `inside.candidate`); the replies are in `Result.reply`."""
        return self._single("calls", json.dumps(payload).encode(), limits, b"")

    def examine(
        self, program: str, tests: dict[str, Any], limits: Limits, test_limits: Limits
    ) -> tuple[Result, Result]:
        """Tests in one job against the program in another: (the tests' end, the program's end)."""

        def attempt() -> tuple[Result, Result]:
            candidates, testers = self._pools()
            with candidates.borrow() as server, testers.borrow() as test_server:
                peers = (*server.pipe(), *server.pipe())
                return drive_pair(server, test_server, program, tests, limits, test_limits, peers)

        return with_retry(attempt)

    def _single(self, role: str, payload: bytes, limits: Limits, stdin: bytes) -> Result:
        return run_job(self._pools()[0], role, payload, limits, stdin)


def run_job(
    pool: Pool, role: str, payload: bytes, limits: Limits, stdin: bytes, *, address_space: int | None = None
) -> Result:
    """One job in any slot of a pool; our own failures come back as states, never as exceptions."""

    def attempt() -> Result:
        with pool.borrow() as server:
            return drive([Job(server, role, payload, limits, stdin=stdin, address_space=address_space)])[0]

    return settled(attempt)


def settled(attempt: Callable[[], Result]) -> Result:
    """What an attempt gives, a second one after a failure of ours; what then fails is a state, not an exception."""
    try:
        return with_retry(attempt)
    except Infrastructure as error:
        return Result("infrastructure", None, "", "", 0.0, reason=str(error))
    except Refused as error:
        return Result("refused", None, "", "", 0.0, reason=str(error))


def drive_pair(
    server: Starts,
    test_server: Starts,
    program: str,
    tests: dict[str, Any],
    limits: Limits,
    test_limits: Limits,
    peers: tuple[int, int, int, int],
) -> tuple[Result, Result]:
    """Two jobs joined by two pipes: (the tests' end, the program's end). Pipes, not sockets: only bytes can cross.

    `peers`: reading and writing end of the pipe to the candidate, then of the one to the tester; closed here.
    """
    to_candidate, from_tester, to_tester, from_candidate = peers
    jobs: list[Job] = []
    try:
        try:
            payload = json.dumps({"program": program}).encode()
            jobs.append(Job(server, "candidate", payload, limits, peer=(to_candidate, from_candidate)))
            payload = json.dumps(tests).encode()
            jobs.append(Job(test_server, "tester", payload, test_limits, peer=(to_tester, from_tester)))
        finally:
            for descriptor in (to_candidate, from_tester, to_tester, from_candidate):
                os.close(descriptor)
        for job in jobs:
            job.started = jobs[-1].started  # one clock: else the program could run out of time before the tests do
        candidate, tester = drive(jobs, leader=1)
    except BaseException:
        for job in jobs:
            job.close()
        raise
    return tester, candidate
