"""The outcome of grading one completion."""

from __future__ import annotations

from dataclasses import dataclass, field

from .extract import NOTHING_EXTRACTED, Extracted


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """One test or case: `passed` is None when it was not run or can't be judged, and `reason` then says why."""

    __test__ = False  # an outcome, not a test case of ours

    name: str
    passed: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`passed`: True on positive evidence for every test; False; None where nothing can be said (our failure, a
    refused run, a broken test). `state` is how the candidate's job ended. `tampering`: what was seen that honest code
    has no reason to do.
    """

    passed: bool | None
    reason: str
    tests: list[TestOutcome]
    tampering: list[str] = field(default_factory=list)
    state: str = "finished"
    extracted: Extracted = NOTHING_EXTRACTED
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0

    @property
    def fraction(self) -> float | None:
        """Share of tests passed, one that was not run counting as not passed; None where `passed` is None."""
        if self.passed is None or not self.tests:
            return None
        return sum(test.passed is True for test in self.tests) / len(self.tests)
