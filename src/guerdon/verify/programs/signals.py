"""Code rewards as signals: a score for each test, and what else can be said about a program.

The reduction is the caller's expression: `code().min()` (all tests), `code().mean()` (share), a weighted sum over
tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from guerdon.backends.sandbox import slots_by_default
from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify.programs import static
from guerdon.verify.programs.check import check_code
from guerdon.verify.programs.extract import extract_code
from guerdon.verify.programs.levels import LEVELS, level
from guerdon.verify.programs.metrics import Metric, measure
from guerdon.verify.programs.tasks import TEST_COLUMNS, TaskError, only_tests, task_in
from guerdon.verify.programs.verdict import Verdict

_TASK_COLUMNS = (
    "cases", "entry_point", "in_place", "input_output", "language", "module", "pytest", "stdio", "test", "test_list",
    "test_setup_code", "checker", "compare", "tuple_is_list", "rel_tol", "abs_tol", "setup",
)  # fmt: skip


def task_of(rollout: Rollout, column: str = "tests") -> Mapping[str, Any]:
    """The coding task a rollout carries: what `column` holds (see `tasks.task_in`), or its own columns (a HumanEval or
    MBPP row).

    Raises `TaskError` when there is none.
    """
    row = {key: rollout.extra[key] for key in _TASK_COLUMNS if key in rollout.extra}
    if isinstance(rollout.prompt, str):
        row["prompt"] = rollout.prompt
    if rollout.extra.get(column) is not None:
        return task_in(rollout.extra[column], row)
    if not row.keys() & TEST_COLUMNS:
        raise TaskError(f"no tests: the rollout has neither a column {column!r} nor the columns of a coding task")
    return row


def _verdict(rollout: Rollout, column: str, limits: Mapping[str, Any]) -> Verdict | str:
    """The verdict, or why there is none."""
    try:
        return check_code(rollout.final, task_of(rollout, column), **limits)
    except TaskError as error:
        return str(error)


def _verdicts(rollouts: Sequence[Rollout], column: str, limits: Mapping[str, Any]) -> list[Verdict | str]:
    with ThreadPoolExecutor(slots_by_default()) as threads:
        return list(threads.map(lambda rollout: _verdict(rollout, column, limits), rollouts))


def _evidence(verdict: Verdict) -> dict[str, Any]:
    return {
        "passed": verdict.passed,
        "reason": verdict.reason,
        "state": verdict.state,
        "tampering": verdict.tampering,
        "extracted": verdict.extracted.how,
        "seconds": round(verdict.seconds, 4),
    }


@signal(key="verify.code", version=1, axis="test", per="rollout", range=(0, 1), needs="sandbox", batch=True)
def code(
    rollouts: Sequence[Rollout],
    *,
    tests: str = "tests",
    seconds: float = 5.0,
    memory_bytes: int = 512 << 20,
) -> list[Score | list[Score]]:
    """1 for each test the completion's program passes in the sandbox, 0 for each it fails, on the `test` axis.

    `tests` names the column with the task; without it the rollout's own columns are the task (see `task_of`). A test
    that the program kept from being run (it ended, hung or broke off earlier) is 0. Unknown: no tests, a broken test,
    a host that can't isolate, a sandbox that failed twice.

    ```python
    solved = gd.verify.code(seconds=3.0).min()       # all tests
    share = gd.verify.code(seconds=3.0).mean()       # share of tests
    ```
    """
    limits = {"seconds": seconds, "memory_bytes": memory_bytes}
    return [_scores(verdict) for verdict in _verdicts(rollouts, tests, limits)]


def _scores(verdict: Verdict | str) -> Score | list[Score]:
    if isinstance(verdict, str):
        return Score.unknown(verdict)
    shared = _evidence(verdict)
    if verdict.passed is None:
        if verdict.state == "infrastructure":
            return Score.failure(verdict.reason, **shared)
        return Score.unknown(verdict.reason, **shared)
    if not verdict.tests:
        return [Score(0.0, **shared)]
    return [Score(float(test.passed is True), test=test.name, why=test.reason, **shared) for test in verdict.tests]


@signal(key="verify.code_untampered", version=1, range=(0, 1), needs="sandbox", batch=True)
def code_untampered(rollouts: Sequence[Rollout], *, tests: str = "tests", seconds: float = 5.0) -> list[Score]:
    """1 if nothing in the program or its run looks like work on the grader instead of the task, else 0.

    What was seen is the evidence: early exits, frame and object walks, always-equal objects, replaced functions, paths
    outside, special-casing of the visible tests. Unknown without a task.
    """
    found = []
    for verdict in _verdicts(rollouts, tests, {"seconds": seconds}):
        if isinstance(verdict, str):
            found.append(Score.unknown(verdict))
        else:
            found.append(Score(float(not verdict.tampering), tampering=verdict.tampering, passed=verdict.passed))
    return found


@signal(key="verify.code_level", version=1, range=(0, 3), needs="sandbox", batch=True)
def code_level(rollouts: Sequence[Rollout], *, tests: str = "tests", seconds: float = 5.0) -> list[Score]:
    """How far the program got: 3 it passes all tests, 2 one fails, 1 it broke off at run time, 0 it does not compile.

    An exception, an early end and a limit reached (an endless loop) are 1, in whichever test. Unknown as `code`; no
    code at all does not compile.
    """
    verdicts = _verdicts(rollouts, tests, {"seconds": seconds})
    return [_level_score(rollout, verdict, tests) for rollout, verdict in zip(rollouts, verdicts, strict=True)]


def _level_score(rollout: Rollout, verdict: Verdict | str, tests: str) -> Score:
    if isinstance(verdict, str):
        return Score.unknown(verdict)
    got = level(verdict, language=str(task_of(rollout, tests).get("language", "python")))
    if got is None:
        make = Score.failure if verdict.state == "infrastructure" else Score.unknown
        return make(verdict.reason, **_evidence(verdict))
    return Score(float(LEVELS.index(got)), level=got, **_evidence(verdict))


@signal(key="verify.code_compiles", version=1, range=(0, 1))
def code_compiles(rollout: Rollout) -> Score:
    """1 if the completion's code parses as Python, else 0."""
    extracted = extract_code(rollout.final)
    return Score(float(bool(extracted.code.strip()) and static.compiles(extracted.code)), extracted=extracted.how)


@signal(key="verify.code_imports", version=1, range=(0, 1))
def code_imports(rollout: Rollout, *, allow: Sequence[str] | None = None, deny: Sequence[str] = ()) -> Score:
    """1 if every module the code imports is allowed (all are when `allow` is None) and none denied, else 0.

    `allow=["stdlib"]` stands for the standard library. Unknown for code that does not parse.
    """
    found = static.imports(extract_code(rollout.final).code)
    if found is None:
        return Score.unknown("the code does not parse")
    refused = [name for name in sorted(found) if not _allowed(name, allow, deny)]
    return Score(float(not refused), imports=sorted(found), refused=refused)


def _allowed(name: str, allow: Sequence[str] | None, deny: Sequence[str]) -> bool:
    if name in deny:
        return False
    return allow is None or name in allow or ("stdlib" in allow and static.standard_library(name))


@signal(key="verify.code_lint", version=1, range=(0, 1))
def code_lint(rollout: Rollout) -> Score:
    """1 / (1 + faults) for the plain faults of `static.lint`; unknown for code that does not parse."""
    faults = static.lint(extract_code(rollout.final).code)
    return Score.unknown("the code does not parse") if faults is None else Score(1 / (1 + len(faults)), faults=faults)


@signal(key="verify.code_similarity", version=1, range=(0, 1))
def code_similarity(rollout: Rollout, *, reference: str = "answer") -> Score:
    """Likeness of the code's syntax to the reference program's in [0, 1], names and layout aside.

    `reference` names the column. Unknown without a reference or when one of the two does not parse.
    """
    given = rollout.answer if reference == "answer" else rollout.extra.get(reference)
    if not isinstance(given, str) or not given.strip():
        return Score.unknown("no reference program")
    ratio = static.similarity(extract_code(rollout.final).code, extract_code(given).code)
    return Score.unknown("the code or the reference does not parse") if ratio is None else Score(ratio)


@signal(key="verify.code_metric", version=1, range=(0, math.inf))
def code_metric(rollout: Rollout, *, metric: Metric = "nodes") -> Score:
    """A static size of the code, 0 or more: syntax ``nodes``, ``lines`` of code without comments and docstrings, or
    the mean ``cyclomatic`` or ``cognitive`` complexity of its functions. Unknown for code that does not parse.
    """
    found = measure(extract_code(rollout.final).code, metric)
    return Score.unknown("the code does not parse, or is too deep") if found is None else Score(found)


def _reference_verdict(rollout: Rollout, reference: str, tests: str, seconds: float) -> Verdict | str:
    given = rollout.answer if reference == "answer" else rollout.extra.get(reference)
    if not isinstance(given, str) or not given.strip():
        return "no reference program"
    verdict = check_code(given, task_of(rollout, tests), seconds=seconds)
    return verdict if verdict.passed else f"the reference program does not pass: {verdict.reason}"


def _ratio(rollout: Rollout, measure: str, reference: str, tests: str, seconds: float) -> Score:
    """min(1, reference / candidate) of a cost; 0 for a program that does not pass."""
    try:
        against = _reference_verdict(rollout, reference, tests, seconds)
    except TaskError as error:
        return Score.unknown(str(error))
    verdict = _verdict(rollout, tests, {"seconds": seconds})
    if isinstance(against, str) or isinstance(verdict, str):
        return Score.unknown(against if isinstance(against, str) else str(verdict))
    if verdict.passed is not True:
        return Score.unknown(verdict.reason) if verdict.passed is None else Score(0.0, **_evidence(verdict))
    own, theirs = float(getattr(verdict, measure)), float(getattr(against, measure))
    if own <= 0 or theirs <= 0:
        return Score.unknown(f"{measure} was not measured")
    return Score(min(1.0, theirs / own), own=own, reference=theirs)


@signal(key="verify.code_time", version=1, range=(0, 1), needs="sandbox", batch=True, cache=False)
def code_time(
    rollouts: Sequence[Rollout], *, reference: str = "answer", tests: str = "tests", seconds: float = 5.0
) -> list[Score]:
    """min(1, t_reference / t_program) in CPU seconds over the same tests; 0 if the program does not pass them.

    Both are run once in the same sandbox; a few milliseconds of start-up are in both. Unknown without a reference that
    passes.
    """
    return [_ratio(rollout, "cpu_seconds", reference, tests, seconds) for rollout in rollouts]


@signal(key="verify.code_memory", version=1, range=(0, 1), needs="sandbox", batch=True, cache=False)
def code_memory(
    rollouts: Sequence[Rollout], *, reference: str = "answer", tests: str = "tests", seconds: float = 5.0
) -> list[Score]:
    """min(1, m_reference / m_program) in peak resident bytes, interpreter included; otherwise as `code_time`."""
    return [_ratio(rollout, "peak_memory_bytes", reference, tests, seconds) for rollout in rollouts]


@signal(key="verify.code_nanoseconds", version=1, range=(0, math.inf), needs="sandbox", batch=True, cache=False)
def code_nanoseconds(rollouts: Sequence[Rollout], *, tests: str = "tests", seconds: float = 5.0) -> list[Score]:
    """CPU time in nanoseconds per test, over the passed tests only; the start of the process is shared among them.

    Where some tests failed the passed ones are run once more by themselves. Unknown where none passed, or where the
    tests can't be taken apart (a `check` function, a test file).
    """
    return [_nanoseconds(rollout, tests, {"seconds": seconds}) for rollout in rollouts]


def _nanoseconds(rollout: Rollout, tests: str, limits: Mapping[str, Any]) -> Score:
    verdict = _verdict(rollout, tests, limits)
    if isinstance(verdict, str) or verdict.passed is None:
        return Score.unknown(verdict if isinstance(verdict, str) else verdict.reason)
    good = [number for number, test in enumerate(verdict.tests) if test.passed]
    if good and len(good) < len(verdict.tests):
        part = only_tests(task_of(rollout, tests), good)
        if part is None:
            return Score.unknown("some tests failed, and these can't be run apart")
        verdict = check_code(rollout.final, part, **limits)
    if verdict.passed is not True or verdict.cpu_seconds <= 0:
        return Score.unknown("no test passed" if not good else "the time was not measured")
    return Score(1e9 * verdict.cpu_seconds / len(good), tests=len(good))
