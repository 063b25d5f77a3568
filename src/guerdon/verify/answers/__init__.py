"""Whether two answers are the same: extraction, normal form, and comparison in tiers, bounded and from any thread."""

from .boxes import Extraction
from .check import check_answer, equivalent
from .explain import GoldReport, check_golds, explain_answer
from .extract import extract
from .policy import Policy
from .verdict import Reason, Verdict

__all__ = [
    "Extraction",
    "GoldReport",
    "Policy",
    "Reason",
    "Verdict",
    "check_answer",
    "check_golds",
    "equivalent",
    "explain_answer",
    "extract",
]
