"""Code as evidence: extraction from chat text, verdicts that the code can't fake, and what can be read without
running it."""

from __future__ import annotations

from .check import acheck_code, check_code, check_code_many
from .compare import Tolerance, equal, same_text
from .extract import Extracted, extract_code, fenced_blocks
from .static import compiles, imports, lint, similarity, suspicions
from .tasks import TaskError, read_task
from .verdict import TestOutcome, Verdict

__all__ = [
    "Extracted", "TaskError", "TestOutcome", "Tolerance", "Verdict", "acheck_code", "check_code", "check_code_many",
    "compiles", "equal", "extract_code", "fenced_blocks", "imports", "lint", "read_task", "same_text", "similarity",
    "suspicions",
]  # fmt: skip
