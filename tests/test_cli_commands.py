"""The other commands: exit codes, JSON, one-line errors, and that help comes fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guerdon import SpecError
from guerdon.cli import main
from guerdon.cli._show import table

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "gsm8k"
REWARD = str(EXAMPLE / "reward.yaml")
COMMANDS = (
    "score", "explain", "report", "compare", "doctor", "answer", "check-answers", "spec check", "spec graph",
    "spec schema", "spec format", "signals list", "signals show", "methods list", "methods show", "sandbox check",
)  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("scored") / "scored.parquet"
    with pytest.raises(SystemExit) as stop:
        main(["score", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "-o", str(out), "--json"])
    assert not stop.value.code
    return out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *command.split(), "--help")
    assert code == 0
    assert "Example" in out
    assert f"guerdon {command}" in " ".join(out.split())


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys, guerdon.cli\n"
        "try: guerdon.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pyarrow', 'pandas', 'jinja2', 'yaml', 'torch', 'httpx', 'guerdon.spec'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score", "nowhere.jsonl", "-s", REWARD], "nowhere.jsonl"),
        (["score", "x.jsonl", "-s", "nowhere.yaml"], "nowhere.yaml: No such file"),
        (["score", REWARD, "-s", REWARD], "unknown kind of file"),
        (["score", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "--unknown", "zero"], "choose keep, raise"),
        (["score", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "--unknown", "nan"], "choose keep, raise"),
        (["score", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "-o", "o.csv"], "written as .parquet"),
        (["score", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "--id", "id"], "was already used"),
        (["explain", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "--row", "200"], "in row 200; the data has 200"),
        (["explain", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "--id", "zz"], "there is no rollout with id 'zz'"),
        (["score"], "Missing argument"),
        (["scroe"], "scroe"),
        (["score", "--no-such-option"], "No such option"),
        (["explain", "x.parquet"], "--row or --id"),
        (["report", str(EXAMPLE / "solutions.jsonl")], "not a scored file"),
        (["compare", REWARD, REWARD], "not a scored file"),
        (["methods", "show", "hero"], "there is no method 'hero'"),
        (["signals", "show", "verify.nmber"], "did you mean verify.number"),
        (["spec", "check", "nowhere.yaml"], "No such file"),
        (
            ["score", str(EXAMPLE / "solutions.jsonl"), "-s", str(EXAMPLE / "careful_everywhere.yaml")],
            "--allow-code slow_judge",
        ),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert said in err
    assert err.startswith("guerdon: ")
    assert err.count("\n") == 1
    assert out == ""


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SpecError, match="No such file"):
        main(["spec", "check", "nowhere.yaml", "--debug"])


def test_a_fault_of_ours_is_told_apart(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("guerdon.spec.check", broken)
    code, _, err = run(capsys, "spec", "check", REWARD)
    assert code == 3
    assert "a fault in Guerdon: RuntimeError: oops" in err


def test_spec_check_says_what_is_wrong_and_exits_with_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "spec", "check", REWARD)[0] == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text("range: [0, 1]\nnodes: {a: {verify.number: {}}}\nreward: {multiply: [2, a]}\n")
    code, out, _ = run(capsys, "spec", "check", str(bad))
    assert code == 1
    assert f"{bad}:3: error: the reward can reach 2, above the declared 1" in out
    code, out, _ = run(capsys, "spec", "check", str(bad), "--json")
    assert code == 1
    assert [f["code"] for f in json.loads(out)["findings"]] == ["range"]
    warned = tmp_path / "warned.yaml"
    warned.write_text("nodes: {a: 1, b: {verify.number: {}}}\nreward: b\n")
    assert run(capsys, "spec", "check", str(warned))[0] == 0
    assert run(capsys, "spec", "check", str(warned), "--strict")[0] == 1


def test_specs_can_be_drawn_described_and_put_in_normal_form(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "flowchart TD" in run(capsys, "spec", "graph", REWARD)[1]
    assert "digraph" in run(capsys, "spec", "graph", REWARD, "--form", "dot")[1]
    assert (
        "verify.number" in json.loads(run(capsys, "spec", "schema")[1])["$defs"]["expression"]["anyOf"][2]["properties"]
    )
    normal = run(capsys, "spec", "format", REWARD)[1]
    (tmp_path / "again.yaml").write_text(normal)
    assert run(capsys, "spec", "format", str(tmp_path / "again.yaml"))[1] == normal


@pytest.mark.parametrize("words", [["methods", "--json"], ["methods", "list", "--json"]])
def test_methods_are_listed_as_objects(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *words)
    assert code == 0
    found = {m["key"]: m for m in json.loads(out)}
    hero = found["hero-hybrid-reward"]
    assert {"key", "family", "name", "source", "evidence"} <= set(hero)
    assert "2510.07242" in hero["source"]


def test_signals_and_methods_show_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert "extract" in run(capsys, "signals", "show", "verify.number")[1]
    listed = json.loads(run(capsys, "signals", "list", "--json")[1])
    assert {"verify.number", "when", "shape.zscore"} <= {s["name"] for s in listed}
    assert "verify.number" in run(capsys, "signals", "list", "--room", "verify")[1]
    assert "Published defaults" in run(capsys, "methods", "show", "hero-hybrid-reward")[1]


def test_explain_shows_values_reasons_and_evidence(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from_scored = run(capsys, "explain", str(scored), "--row", "0")[1]
    from_data = run(capsys, "explain", str(EXAMPLE / "solutions.jsonl"), "-s", REWARD, "--row", "0")[1]
    for text in (from_scored, from_data):
        assert "gsm8k-test-0/6b_finetuning" in text
        assert "extracted: 26" in text
        assert "reference: 18" in text
        assert "A: 26" in text
    assert "unknown (not asked)" in from_data
    by_id = json.loads(run(capsys, "explain", str(scored), "--id", "gsm8k-test-0/6b_finetuning", "--json")[1])
    assert by_id["correct_evidence"]["reference"] == "18"
    assert run(capsys, "explain", str(scored), "--id", "nobody")[0] == 2


def test_explain_does_not_pass_on_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.jsonl").write_text('{"completion": "\\u001b[2J 3", "answer": "3", "prompt": "\\u001b]0;x\\u0007"}\n')
    (tmp_path / "s.yaml").write_text("nodes: {correct: {verify.number: {}}}\nreward: correct\n")
    out = run(capsys, "explain", str(tmp_path / "d.jsonl"), "-s", str(tmp_path / "s.yaml"), "--row", "0")[1]
    assert "\x1b" not in out
    assert "correct = 1" in out


def test_compare_finds_what_changed(scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "compare", str(scored), str(scored))[0] == 0
    other = tmp_path / "other.jsonl"
    spec = tmp_path / "s.yaml"
    spec.write_text(Path(REWARD).read_text().replace("extract: last", "extract: boxed"))
    run(capsys, "score", str(EXAMPLE / "solutions.jsonl"), "-s", str(spec), "-o", str(other))
    code, out, _ = run(capsys, "compare", str(scored), str(other), "--json")
    found = json.loads(out)
    assert code == 1
    assert found["shared"] == 200
    assert found["columns"]["reward"]["changed"] == 79
    assert found["columns"]["finished"]["changed"] == 0
    assert found["rollouts"][0]["reward"] == [1.0, 0.0]
    assert "they differ" in run(capsys, "compare", str(scored), str(other))[1]


def test_answers_are_compared_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "answer", "1/2", "so it is \\boxed{0.5}")
    assert code == 0
    assert out.startswith("equal")
    assert run(capsys, "answer", "1/2", "so it is \\boxed{0.6}", "--json")[0] == 1
    assert run(capsys, "answer", "50", "50\\%", "--policy", "nonsense=1")[0] == 2
    assert run(capsys, "check-answers", str(EXAMPLE / "solutions.jsonl"), "--answer", "gold")[0] == 0
    (tmp_path / "d.jsonl").write_text('{"gold": "1/2"}\n{"gold": "$"}\n')
    code, out, _ = run(capsys, "check-answers", str(tmp_path / "d.jsonl"), "--answer", "gold", "--json")
    assert code == 1
    assert [b["rows"] for b in json.loads(out)["bad"]] == [[1]]


def test_doctor_says_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "doctor", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["base"]["numpy"]
    assert {c["name"]: c["ok"] for c in found["checks"]}["workers"] is True
    assert "cache" in run(capsys, "doctor", "--quick")[1]


def test_output_into_a_closed_pipe_is_no_error() -> None:
    program = Path(sys.executable).with_name("guerdon")
    done = subprocess.run(
        f"'{program}' signals list | head -1", shell=True, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert done.stderr == ""


def test_tables_align() -> None:
    assert table([("a", 1), ("bcd", 20)], ("name", "n")) == "name   n\na      1\nbcd   20"


@pytest.mark.parametrize("group", ["", "spec", "sandbox"])
def test_a_command_without_its_subcommand_shows_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *group.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"Usage: {' '.join(['guerdon', *group.split()])} [OPTIONS] COMMAND")
    assert "\nCommands:\n" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("methods list --family shpe", "there is no family 'shpe'; there are audit, "),
        ("signals list --room verfy", "there is no room 'verfy'; there are credit, judge, operators"),
        ("methods show hero", "there is no method 'hero'; did you mean hero-hybrid-reward?"),
        (f"check-answers {EXAMPLE / 'solutions.jsonl'} --answer gld", "no column 'gld' for completion and answer"),
    ],
)  # fmt: skip
def test_a_choice_that_is_none_is_answered_with_those_there_are(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *words.split())
    assert (code, out) == (2, "")
    assert says in err


def test_doctor_looks_for_what_the_package_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "doctor", "--quick", "--json")
    found = json.loads(out)
    assert {"numpy", "sympy", "python-flint", "google-re2"} <= set(found["base"])
    assert {"judge", "sql", "postgres", "fast", "plot", "trl"} <= set(found["extras"])
    assert set(found["extras"]["sql"]) == {"sqlglot", "sqlglotc", "duckdb"}
