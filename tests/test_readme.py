"""What the README shows runs as shown."""

from __future__ import annotations

import re
from pathlib import Path

import guerdon as gd

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def test_the_first_example_runs_and_says_what_the_readme_says(capsys):
    scope: dict[str, object] = {}
    exec(re.findall(r"```python\n(.*?)```", README, re.S)[0], scope)
    assert "1, 0, unknown" in capsys.readouterr().out
    assert scope["advantages"].known.tolist() == [True, True, False]


def test_the_spec_is_a_spec():
    spec = gd.load_spec(re.findall(r"```yaml\n(.*?)```", README, re.S)[0])
    rows = [{"completion": "#### 18", "answer": "18"}, {"completion": "#### 17", "answer": "18"}]
    assert spec.reward.score(rows).scores.values.tolist() == [1.0, 0.0]
