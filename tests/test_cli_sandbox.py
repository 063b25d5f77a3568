"""`guerdon sandbox check`: what an operator reads, what a script reads, and when it fails."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil

import pytest

from guerdon.backends import sandbox
from guerdon.backends.sandbox import describe_isolation
from guerdon.backends.sandbox.attacks import Attack, attacks
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
    monkeypatch.setattr("guerdon.backends.sandbox.attacks.attacks", lambda *_: list(corpus))


@sandboxed
def test_a_host_that_holds_is_named_wall_by_wall(monkeypatch, capsys):
    attacked_by(monkeypatch, HELD)
    code, out, err = run(capsys)
    assert code == 0
    assert re.match(r"untrusted code can be run(; weaker than it could be in \d respects)?\n  walls", out)
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
    monkeypatch.setattr("guerdon.verify.programs.attacks.trials", lambda: [])
    code, out, err = run(capsys, "--no-attacks", "--fakes")
    assert code == 1
    assert "4 of 8 fake solutions judged rightly\n  BROKEN mislabelled" in out
    assert "held    always equal  cases       passed: False" in err


def test_a_host_that_can_not_isolate_fails_the_check_with_the_reason(monkeypatch, capsys):
    none = dataclasses.replace(describe_isolation(), available=False, enabled=[], weaker=[], others=[], reason="no user namespaces")  # fmt: skip  # noqa: E501
    monkeypatch.setattr(sandbox, "describe_isolation", lambda: none)
    code, out, err = run(capsys)
    assert (code, err) == (1, "")
    assert out.startswith("untrusted code can't be run: no user namespaces\nnone is run: its grade is unknown")
    code, out, _ = run(capsys, "--json")
    assert (code, json.loads(out)["ok"], json.loads(out)["attacks"]) == (1, False, [])


@sandboxed
def test_what_is_weaker_here_is_counted_first_and_named(monkeypatch, capsys):
    weak = dataclasses.replace(describe_isolation(), weaker=("no cgroup: memory by process", "no user id of its own"))
    monkeypatch.setattr(sandbox, "describe_isolation", lambda: weak)
    code, out, _ = run(capsys, "--no-attacks")
    assert code == 0
    assert out.startswith("untrusted code can be run; weaker than it could be in 2 respects\n")
    assert "weaker  no cgroup: memory by process\n          no user id of its own\n" in out


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed")
def test_another_back_end_is_attacked_by_name(monkeypatch, capsys):
    attacked_by(monkeypatch, HELD, BROKEN)
    code, out, err = run(capsys, "--backend", "bubblewrap")
    assert code == 1
    assert out.startswith("untrusted code can be run at bubblewrap\n  also")
    assert "1 of 2 attacks held off" in out
    assert "held    read the host's users" in err


def test_a_back_end_that_is_not_there_fails_the_check_with_the_reason(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    code, out, _ = run(capsys, "--backend", "bubblewrap", "--json")
    shown = json.loads(out)
    assert (code, shown["ok"], shown["available"], shown["attacks"]) == (1, False, False, [])
    assert shown["reason"].startswith("bwrap is not installed")


def test_attacks_that_say_nothing_about_gvisor_are_left_out_there_alone():
    left_out = {attack.name for attack in attacks()} - {attack.name for attack in attacks("gvisor")}
    assert {"many folders deep", "a folder of links, hard and soft, without end"} < left_out
    assert len(left_out) < 10
    assert attacks("bubblewrap") == attacks()
