"""One self-contained page about a scored file: it works offline, from a file, and shows hostile text only as text.

```python
from guerdon.report import write_report

write_report("scored.parquet", "report.html", label="is_correct", by=["model"])
```
"""

from guerdon.report._page import write_report
from guerdon.report.scored_file import ScoredFile

__all__ = ["ScoredFile", "write_report"]
