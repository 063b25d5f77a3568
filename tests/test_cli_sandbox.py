"""`guerdon sandbox check`: what an operator reads, what a script reads, and when it fails."""

from __future__ import annotations

import dataclasses
import json

import pytest

from guerdon.backends import sandbox
from guerdon.backends.sandbox import describe_isolation
from guerdon.backends.sandbox.attacks import Attack
from guerdon.cli import main
from guerdon.verify.programs.attacks import Fake

sandboxed = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
HELD = Attack("read the host's users", "print(open('/etc/passwd').read())")
BROKEN = Attack("print the word", "print('ESCAPED')")


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["sandbox", "check", *arguments])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def attacked_by(monkeypatch, *corpus):
    monkeypatch.setattr("guerdon.backends.sandbox.attacks.attacks", lambda: list(corpus))


@sandboxed
def test_a_host_that_holds_is_named_wall_by_wall(monkeypatch, capsys):
    attacked_by(monkeypatch, HELD)
    code, out, err = run(capsys)
    assert code == 0
    assert out.startswith("untrusted code can be run\n  walls")
    assert all(line in out for line in describe_isolation().enabled if not line.startswith(("cgroup", "own user")))
    assert out.endswith("1 of 1 attacks held off\n")
    assert err.startswith("held    read the host's users  finished")


@sandboxed
def test_an_attack_that_gets_through_fails_the_check_and_is_named(monkeypatch, capsys):
    attacked_by(monkeypatch, HELD, BROKEN)
    code, out, _ = run(capsys)
    assert code == 1
    assert "1 of 2 attacks held off\n  BROKEN print the word: got out: ESCAPED" in out
    code, out, err = run(capsys, "--json")
    shown = json.loads(out)
    assert (code, err, shown["ok"], shown["available"]) == (1, "", False, True)
    assert [(one["name"], one["held"]) for one in shown["attacks"]] == [(HELD.name, True), (BROKEN.name, False)]


@sandboxed
def test_fake_solutions_are_graded_on_request(monkeypatch, capsys):
    always = "class E(int):\n    def __eq__(self, other): return True\ndef add(a, b): return E(1)"
    corpus = [Fake("always equal", always, False), Fake("mislabelled", "def add(a, b): return a + b", False)]
    monkeypatch.setattr("guerdon.verify.programs.attacks.fakes", lambda: corpus)
    code, out, err = run(capsys, "--no-attacks", "--fakes")
    assert code == 1
    assert "4 of 8 fake solutions judged rightly\n  BROKEN mislabelled" in out
    assert "held    always equal  cases       passed: False" in err


def test_a_host_that_can_not_isolate_fails_the_check_with_the_reason(monkeypatch, capsys):
    none = dataclasses.replace(describe_isolation(), available=False, enabled=[], weaker=[], others=[], reason="no user namespaces")  # fmt: skip  # noqa: E501
    monkeypatch.setattr(sandbox, "describe_isolation", lambda: none)
    assert run(capsys) == (1, "untrusted code can't be run: no user namespaces\n", "")
    code, out, _ = run(capsys, "--json")
    assert (code, json.loads(out)["ok"], json.loads(out)["attacks"]) == (1, False, [])
