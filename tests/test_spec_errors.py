"""A bad spec is one readable error with file, line, key and the nearest right name; it never runs anything."""

from __future__ import annotations

from pathlib import Path

import pytest

import guerdon as gd
from guerdon.spec import load_spec

CASES = {
    "an unknown signal": (
        'nodes:\n  a: {verify.nmber: {}}\nreward: a\n',
        2, 'nodes.a.verify.nmber', 'did you mean verify.number',
    ),
    "an unknown parameter": (
        'reward:\n  verify.number:\n    extrct: last\n',
        3, 'reward.verify.number.extrct', 'did you mean extract or',
    ),
    "a wrong choice": (
        '\nreward: {verify.number: {extract: lst}}',
        2, 'verify.number.extract', 'expected "auto" or "last"',
    ),
    "a wrong type": (
        '\nreward: {shape.zscore: {x: {column: a}, ddof: no}}',
        2, 'ddof', "expected a whole number, not 'no'",
    ),
    "true for a number": (
        '\nreward: {shape.zscore: {x: {column: a}, eps: true}}',
        2, 'eps', 'expected a number, not True',
    ),
    "an unknown node": (
        'nodes: {correct: 1}\nreward: corect',
        2, 'reward', "there is no node 'corect'; did you mean correct?",
    ),
    "a column without its call": (
        '\nreward: {negate: score}',
        2, 'negate', 'a column of the data is written {column: score}',
    ),
    "an unknown top key": (
        'nods: {}\nreward: 1',
        1, 'nods', 'did you mean nodes?',
    ),
    "no reward": (
        'guerdon: 1\nnodes: {}\n',
        1, '', 'needs the key reward',
    ),
    "another version": (
        'guerdon: 2\nreward: 1',
        1, 'guerdon', 'version 1, not 2',
    ),
    "a cycle": (
        'nodes:\n  a: b\n  b: {negate: a}\nreward: a',
        3, 'nodes.b', 'refers to itself: b -> a -> b',
    ),
    "a duplicate key": (
        'reward: 1\nreward: 2',
        2, '', "'reward' stands here twice (first on line 1)",
    ),
    "a tag": (
        '\nreward: !!python/object/apply:os.system [id]',
        2, 'reward', 'is not allowed',
    ),
    "an anchor": (
        'nodes: {a: &x 1}\nreward: *x',
        1, 'nodes.a', 'anchors and aliases',
    ),
    "broken yaml": (
        'reward: [1,\n',
        2, '', 'not valid YAML',
    ),
    "an empty file": (
        '\n\n',
        1, '', 'empty',
    ),
    "two documents": (
        'reward: 1\n---\nreward: 2\n',
        2, '', 'one YAML document',
    ),
    "a missing operand": (
        '\nreward: {when: [1, 2]}',
        2, 'reward.when', 'when needs otherwise',
    ),
    "too many operands": (
        '\nreward: {subtract: [1, 2, 3]}',
        2, 'subtract', 'at most 2',
    ),
    "a boolean": (
        '\nreward: true',
        2, 'reward', 'write 1 or 0',
    ),
    "infinity": (
        '\nreward: .inf',
        2, 'reward', 'finite',
    ),
    "an unknown method": (
        '\nreward: {method.hero-hybrid: {}}',
        2, '', 'did you mean hero-hybrid-reward',
    ),
    "a method's missing operand": (
        '\nreward: {method.hero-hybrid-reward: {correct: 1}}',
        2, '', 'needs quality',
    ),
    "code": (
        '\nreward: {code.os.system: {}}',
        2, 'code.os.system', '--allow-code os',
    ),
    "a private place": (
        '\nreward: {verify._number.find_number: {}}',
        2, '', 'nothing is called',
    ),
    "a module": (
        '\nreward: {verify.sys: {}}',
        2, '', 'nothing is called',
    ),
    "a manner on no signal": (
        '\nreward: {negate: {a: 1, manner: {timeout: 1}}}',
        2, 'manner', 'no signal',
    ),
    "an unknown manner": (
        '\nreward: {verify.number: {manner: {timout: 1}}}',
        2, 'timout', 'did you mean timeout?',
    ),
    "a bad policy": (
        '\nreward: {verify.number: {manner: {then: ignore}}}',
        2, 'manner', 'unknown',
    ),
    "a range upside down": (
        'range: [1, 0]\nreward: 1',
        1, 'range', '[low, high]',
    ),
    "an unknown data field": (
        'data: {completon: x}\nreward: 1',
        1, 'data.completon', 'did you mean completion?',
    ),
    "a name that is none": (
        'nodes: {a-b: 1}\nreward: 1',
        1, 'nodes.a-b', 'not a node name',
    ),
    "axes that do not fit": (
        '\nreward: {add: [{column: {name: a, axis: step}}, {column: {name: b, axis: criterion}}]}',
        2, 'reward.add', 'reduce one',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_says_where_and_what(case: str, tmp_path: Path) -> None:
    text, line, path, message = CASES[case]
    file = tmp_path / "reward.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(gd.SpecError) as error:
        load_spec(file)
    said = str(error.value)
    assert said.startswith(f"{file}:{line}: ")
    assert path in said
    assert message in said
    assert "\n" not in said


def test_deep_nesting_ends_early() -> None:
    for opening in ("[", "{a: ", "- "):
        with pytest.raises(gd.SpecError, match=r"nested more than 64|not valid YAML"):
            load_spec("reward:\n  " + opening * 5000)


def test_size_is_bounded() -> None:
    with pytest.raises(gd.SpecError, match=r"bytes long"):
        load_spec("reward: 1 # " + "x" * 1_000_001 + "\n")
    with pytest.raises(gd.SpecError, match="at most 50,000 values"):
        load_spec("reward: {add: [" + "1," * 60_000 + "1]}\n")


def test_long_chains_of_names_read_without_recursion() -> None:
    nodes = "".join(f"  n{i}: {{negate: n{i + 1}}}\n" for i in range(3000))
    spec = load_spec(f"nodes:\n{nodes}  n3000: 1\nreward: n0\n")
    assert spec.reward.range == gd.Interval(1, 1)


def test_words_and_numbers_follow_yaml_1_2() -> None:
    spec = load_spec("reward: {verify.keywords: {words: [no, on, yes, 12:30, 2024-01-01]}}\n")
    assert spec.reward.params["words"] == ["no", "on", "yes", "12:30", "2024-01-01"]  # type: ignore[attr-defined]
    assert load_spec("reward: 1e-3\n").reward.range.low == 0.001


def test_missing_and_binary_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(gd.SpecError, match=r"nowhere\.yaml: No such file"):
        load_spec(tmp_path / "nowhere.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(gd.SpecError, match="UTF-8"):
        load_spec(tmp_path / "binary.yaml")


def test_a_module_that_breaks_when_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_rewards.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(gd.SpecError, match="can't import 'broken_rewards': ZeroDivisionError"):
        load_spec("reward: {code.broken_rewards.x: {}}\n", allow_code=["broken_rewards"])
