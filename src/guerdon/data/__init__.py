"""Input: rollouts from JSON lines, Parquet, CSV, Arrow, a Hugging Face dataset directory or standard input."""

from guerdon.data._columns import Columns
from guerdon.data._kinds import Kind
from guerdon.data._source import BadRow, Batch, Source, read

__all__ = ["BadRow", "Batch", "Columns", "Kind", "Source", "read"]
