"""The room itself: lazy names, names that subpackages share, and examples in docstrings that run."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

import guerdon as gd


def test_importing_guerdon_imports_no_verifier():
    code = "import sys, guerdon; guerdon.verify; print([m for m in sys.modules if m.startswith('guerdon.verify.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_an_unknown_one_is_an_error():
    for name in gd.verify.__all__:
        assert getattr(gd.verify, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gd.verify.nothing


def test_no_subpackage_takes_the_name_of_a_verifier():
    for name in ("programs.check", "queries.check", "answers"):
        importlib.import_module(f"guerdon.verify.{name}")
    assert isinstance(gd.verify.sql, gd.Signal)
    assert isinstance(gd.verify.code, gd.Signal)


def test_every_signal_states_its_range_and_key():
    for name in gd.verify.__all__:
        verifier = getattr(gd.verify, name)
        if isinstance(verifier, gd.Signal):
            assert verifier.key == f"verify.{name}"
            assert verifier.version is not None
            assert verifier.range.low == 0


MODULES = [
    "verify._across", "verify._choice", "verify._format", "verify._length", "verify._number", "verify._patterns",
    "verify._reading", "verify._text", "testing", "testing._examples", "judge._verdict", "backends.lm", "connect.trl",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name):
    module = importlib.import_module(f"guerdon.{name}")
    own = [v for v in vars(module).values() if isinstance(v, gd.Signal) and v.function.__module__ == module.__name__]
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    found = finder.find(module)
    for verifier in own:
        found += finder.find(verifier.function, verifier.key, module, globs=dict(vars(module)))
    for case in found:
        runner.run(case)
    assert runner.failures == 0
    assert runner.tries >= max(len(own), 1)
