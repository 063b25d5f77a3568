"""Imported before the first SQL job, here and in the workers, so that no query's deadline pays for the parser.

It stands apart from `worker`, which is imported without the ``sql`` extra too: saying what a spec can call needs no
parser.
"""

from guerdon.verify.queries import run
from guerdon.verify.queries.statement import guard

guard("SELECT 1 FROM t ORDER BY 1 LIMIT 1", "sqlite")

__all__ = ["run"]
