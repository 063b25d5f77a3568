"""The public way to grade code: one completion, many, or awaited."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from guerdon.backends.sandbox import Gvisor, Limits, isolating_backend, slots_by_default
from guerdon.backends.sandbox.languages import LANGUAGES, Native

from .extract import parsed
from .grade import RunProgram, Sandbox, grade, program_text
from .probe import could_be_a_table, knows_the_tests_alone
from .static import suspicions
from .tasks import StdioTask, Task, TaskError, read_task
from .verdict import Verdict

DEFAULT_SECONDS: Final = 5.0
_QUICK_SECONDS: Final = 0.25
_LOCK = threading.Lock()
_executor: ThreadPoolExecutor | None = None


def check_code(completion: str, task: Mapping[str, Any], *, backend: str | Sandbox = "auto", **limits: Any) -> Verdict:
    """Run a completion's code in the sandbox and judge it against a task.

    `task`: a HumanEval row, an MBPP row, `{"entry_point": "add", "cases": [[[2, 3], 5], ...]}`, `{"entry_point": ...,
    "test": "def check(candidate): ..."}`, `{"stdio": [["input", "output"], ...]}` or `{"pytest": "..."}`; see
    `tasks.read_task`. `limits`: fields of `Limits` (`seconds` is for the whole grading, per input for stdio tasks;
    default 5). The expected answers stay in this process, or in a second sandbox that the code can't reach.

    `task["language"]` ("cpp", "rust", "javascript") is for stdio tasks: the program is compiled once, in the sandbox
    as well.

    The verdict's `passed` is None where nothing can be said: the sandbox failed twice, this host can't isolate, the
    task's own test is broken. Raises `TaskError` for a row that is no task.

    >>> check_code("def add(a, b): return a + b", {"entry_point": "add", "cases": [[[2, 3], 5]]}).passed
    True
    """
    read = read_task(task)
    language = str(task.get("language", "python"))
    sandbox = isolating_backend(backend) if isinstance(backend, str) else backend
    chosen = Limits(seconds=DEFAULT_SECONDS).with_changes(**limits)
    verdict = grade(completion, read, sandbox, chosen, language, _runner(read, language, sandbox))
    seen = [*verdict.tampering, *(_suspicions(verdict, read, sandbox, chosen) if language == "python" else ())]
    return replace(verdict, tampering=list(dict.fromkeys(seen)))


def _suspicions(verdict: Verdict, task: Task, sandbox: Sandbox, limits: Limits) -> list[str]:
    """What the code says against itself, and what its answers to other inputs do."""
    code = verdict.extracted.code
    program = code if isinstance(task, StdioTask) else program_text(verdict.extracted, task)
    if parsed(code) is None:
        code = program  # the body of a function whose head is in the prompt
    found = suspicions(code, task)
    tree = parsed(code) if verdict.passed and verdict.seconds < _QUICK_SECONDS else None
    if (
        tree is not None
        and not any(mark.startswith("special-cases") for mark in found)
        and could_be_a_table(tree, task)
    ):
        seen = knows_the_tests_alone(program, task, sandbox, limits)
        found += [seen] if seen else []
    return found


def _runner(task: Task, language: str, sandbox: Sandbox) -> RunProgram | None:
    """What runs whole programs of another language; None for Python."""
    if language == "python":
        return None
    if language not in LANGUAGES:
        raise TaskError(f"unknown language {language!r}; known: python, {', '.join(LANGUAGES)}")
    if not isinstance(task, StdioTask):
        raise TaskError(f"only stdio tasks can be in {language}; call cases and tests are for Python")
    return Native(language, backend="gvisor" if isinstance(sandbox, Gvisor) else "auto").run_program


def check_code_many(
    pairs: Sequence[tuple[str, Mapping[str, Any]]], *, backend: str | Sandbox = "auto", **limits: Any
) -> list[Verdict]:
    """`check_code` of every (completion, task) pair, in order, with every slot of the sandbox kept busy."""
    return list(_threads().map(lambda pair: check_code(pair[0], pair[1], backend=backend, **limits), pairs))


async def acheck_code(
    completion: str, task: Mapping[str, Any], *, backend: str | Sandbox = "auto", **limits: Any
) -> Verdict:
    """`check_code` without blocking the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads(), lambda: check_code(completion, task, backend=backend, **limits))


def _after_fork() -> None:
    """Threads do not survive a fork."""
    global _executor, _LOCK
    _executor, _LOCK = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _threads() -> ThreadPoolExecutor:
    """One thread per slot: more would only wait in line."""
    global _executor
    with _LOCK:
        if _executor is None:
            _executor = ThreadPoolExecutor(slots_by_default(), thread_name_prefix="guerdon-code")
        return _executor
