"""SQL execution rewards: extract a statement from a completion, guard it, run it, compare its result."""

from guerdon.verify.queries.check import Grading, SqlTask, Verdict, check_sql, check_sql_many
from guerdon.verify.queries.databases import build_database
from guerdon.verify.queries.run import Limits
from guerdon.verify.queries.statement import extract_sql, guard

__all__ = [
    "Grading",
    "Limits",
    "SqlTask",
    "Verdict",
    "build_database",
    "check_sql",
    "check_sql_many",
    "extract_sql",
    "guard",
]
