"""Judges: evidence from a language model's verdict. A reply that can't be read is unknown, never a number."""

from guerdon.judge._verdict import Verdict, read_verdict
from guerdon.judge._yes_no import yes_no

__all__ = ["Verdict", "read_verdict", "yes_no"]
