"""Feeding jobs and reading from them until they end, with caps and a deadline that hold."""

from __future__ import annotations

import os
import select
import time
from typing import Final, Protocol

from .result import Infrastructure, Limits, Result, State, reason_of
from .server import Ended

_CHUNK: Final = 1 << 16
_GRACE_SECONDS: Final = 5.0
_QUIET_SECONDS: Final = 0.03
MAX_REPLY_BYTES: Final = 8 << 20


class HasDescriptor(Protocol):
    """What can be waited for."""

    def fileno(self) -> int: ...


class Starts(Protocol):
    """What starts one job and ends it: a fork server, or a sandbox made for the job."""

    @property
    def control(self) -> HasDescriptor:
        """Ready when `ended` has something to say."""

    def pipe(self) -> tuple[int, int]: ...

    def submit(self, role: str, limits: Limits, descriptors: list[int], address_space: int | None = None) -> None: ...

    def ended(self) -> Ended: ...

    def kill_job(self) -> None: ...

    def killed_for_memory(self) -> bool: ...


class Job:
    """One job in flight: its pipes on our side, what it has written, and why we killed it if we did."""

    def __init__(
        self,
        server: Starts,
        role: str,
        payload: bytes,
        limits: Limits,
        *,
        stdin: bytes = b"",
        peer: tuple[int, int] | None = None,
        address_space: int | None = None,
    ) -> None:
        """Start it. `peer`: descriptors to read from and write to the job on the other side."""
        self.server, self.limits = server, limits
        self.killed: State | None = None
        self.end: Ended | None = None
        self._written: dict[int, bytearray] = {}
        self._waiting: dict[int, memoryview] = {}
        theirs: list[int] = []
        try:
            theirs.append(self._to_job(stdin))
            theirs += [self._from_job() for _ in range(2)]
            self._outputs = tuple(self._written)
            theirs.append(self._to_job(payload))
            theirs.append(self._from_job())
            self._reply = next(reversed(self._written))
            spare = theirs[0]
            descriptors = [*theirs, *(peer or (spare, spare))]
            server.submit(role, limits, descriptors, address_space)
            self.started = time.monotonic()
        except BaseException:
            self.close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def _to_job(self, data: bytes) -> int:
        reading, writing = self.server.pipe()
        os.set_blocking(writing, False)
        self._waiting[writing] = memoryview(data)
        self.write_more(writing)
        return reading

    def _from_job(self) -> int:
        reading, writing = self.server.pipe()
        os.set_blocking(reading, False)
        self._written[reading] = bytearray()
        return writing

    def waiting(self) -> list[tuple[int, int]]:
        """(descriptor, poll events) of everything still of interest."""
        return [
            (self.server.control.fileno(), select.POLLIN),
            *((descriptor, select.POLLIN) for descriptor in self._written),
            *((descriptor, select.POLLOUT) for descriptor in self._waiting),
        ]

    def is_output(self, descriptor: int) -> bool:
        """Whether the job writes and we read there."""
        return descriptor in self._written

    def write_more(self, descriptor: int) -> bool:
        """Write what fits; True when that descriptor is finished with (closed)."""
        rest = self._waiting[descriptor]
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            self._waiting[descriptor] = rest
            return False
        except BrokenPipeError:
            pass
        del self._waiting[descriptor]
        os.close(descriptor)
        return True

    def read_more(self, descriptor: int) -> bool:
        """Read what is there; True at end of file. Over the cap, the job is killed and the rest thrown away."""
        data = self._written[descriptor]
        cap = MAX_REPLY_BYTES if descriptor == self._reply else self.limits.output_bytes
        while True:
            try:
                part = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                return False
            if not part:
                return True
            data += part
            if len(data) > cap:
                del data[cap:]
                self.kill("output")
                return self.end is None

    def handle(self, descriptor: int) -> bool:
        """Act on a ready descriptor; True when it need not be watched any more."""
        if descriptor in self._waiting:
            return self.write_more(descriptor)
        if descriptor in self._written:
            return self.read_more(descriptor)
        self.end = self.server.ended()
        for output in self._written:
            self.read_more(output)
        return True

    def kill(self, why: State) -> None:
        """Once; the first reason stays, also for one that has ended but is found to have written too much."""
        if self.killed is None:
            self.killed = why
            if self.end is None:
                self.server.kill_job()

    def close(self) -> None:
        """Close our ends."""
        for descriptor in (*self._written, *self._waiting):
            os.close(descriptor)
        self._waiting.clear()
        self._reply_data = bytes(self._written.get(self._reply, b"")) if hasattr(self, "_reply") else b""
        self._texts = [bytes(data).decode("utf-8", "replace") for data in list(self._written.values())[:2]]
        self._written.clear()

    def result(self, seconds: float) -> Result:
        """How it ended, in one of the seven states; call after `close`."""
        if self.end is None:
            raise Infrastructure("the job did not end")
        state = self._state(self.end)
        status = self.end.status
        return Result(
            state,
            status if state in ("finished", "crash") or (state == "memory" and status >= 0) else None,
            self._texts[0],
            self._texts[1],
            seconds,
            self.end.cpu_seconds,
            self.end.peak_memory_bytes,
            reason=reason_of(state, status, self.limits),
            reply=self._reply_data,
        )

    def _state(self, end: Ended) -> State:
        if self.killed is not None:
            return self.killed
        if end.status >= 0:
            last = self._texts[1].rstrip().rpartition("\n")[2]
            return "memory" if end.status == 1 and last.startswith("MemoryError") else "finished"
        if end.status == -9:
            if self.server.killed_for_memory():
                return "memory"
            if end.cpu_seconds >= self.limits.seconds:
                return "timeout"
        return "memory" if "std::bad_alloc" in self._texts[1][-200:] else "crash"


def drive(jobs: list[Job], leader: int = 0) -> list[Result]:
    """Until every job has ended; when `jobs[leader]` ends, the others are told to. Raises `Infrastructure`."""
    deadlines = [job.started + job.limits.seconds for job in jobs]
    ended_at = [0.0] * len(jobs)
    watched = _Watch(jobs)
    try:
        while any(job.end is None for job in jobs):
            watched.wait(_enforce(jobs, deadlines))
            for number, job in enumerate(jobs):
                if job.end is not None and not ended_at[number]:
                    ended_at[number] = time.monotonic()
                    if number == leader:
                        for other in jobs:
                            if other.end is None:
                                other.kill("finished")
    finally:
        for job in jobs:
            job.close()
    return [job.result(at - job.started) for job, at in zip(jobs, ended_at, strict=True)]


class _Watch:
    """The descriptors of some jobs. What they write is left in the pipes at first: most jobs end within the quiet
    time and are read once, instead of waking this process for every line."""

    def __init__(self, jobs: list[Job]) -> None:
        self._poll = select.poll()
        self._owner: dict[int, Job] = {}
        self._later: list[int] = []
        self._loud_from = time.monotonic() + _QUIET_SECONDS
        for job in jobs:
            for descriptor, events in job.waiting():
                self._owner[descriptor] = job
                if job.is_output(descriptor):
                    self._later.append(descriptor)
                else:
                    self._poll.register(descriptor, events)

    def wait(self, seconds: float) -> None:
        """Handle what is ready within that time."""
        if self._later:
            quiet = self._loud_from - time.monotonic()
            if quiet > 0:
                seconds = min(seconds, quiet)
            else:
                for descriptor in self._later:
                    self._poll.register(descriptor, select.POLLIN)
                self._later.clear()
        for descriptor, _ in self._poll.poll(max(0.0, seconds) * 1000):
            if self._owner[descriptor].handle(descriptor):
                self._poll.unregister(descriptor)


def _enforce(jobs: list[Job], deadlines: list[float]) -> float:
    """Kill what is over its time; seconds until the next thing to enforce."""
    now = time.monotonic()
    next_in = _GRACE_SECONDS
    for number, job in enumerate(jobs):
        if job.end is not None:
            continue
        if job.killed is None and now >= deadlines[number]:
            job.kill("timeout")
        if job.killed is not None:
            if now > deadlines[number] + _GRACE_SECONDS:
                raise Infrastructure("a killed job did not end")
        else:
            next_in = min(next_in, deadlines[number] - now)
    return next_in
