"""Whether two answers are the same: extraction, normal form, and comparison in tiers, bounded and from any thread."""

from .check import GoldReport, check_answer, check_golds, equivalent, explain_answer
from .extract import Extraction, extract
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
