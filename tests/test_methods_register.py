"""The register of published methods: what is found, and how little is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import guerdon as gd
from guerdon.methods import _registry, all_methods, find

COUNT = """
import sys
from guerdon.methods import find
find({key!r})
loaded = [m for m in sys.modules if m.startswith("guerdon.methods.") and not m.startswith("guerdon.methods._")]
print(*loaded)
"""


def test_every_key_stands_in_the_source_of_few_modules_one_of_which_registers_it():
    for method in all_methods():
        modules = _registry._modules_with(method.key)
        assert 1 <= len(modules) <= 3, method.key
        home = method.build.__module__
        assert home in modules or not home.startswith("guerdon.methods"), method.key


@pytest.mark.parametrize("key", ["hero-hybrid-reward", "reasoning-sql"])
def test_one_method_is_found_without_importing_the_others(key):
    done = subprocess.run(
        [sys.executable, "-c", COUNT.format(key=key)], capture_output=True, text=True, check=True, timeout=60
    )
    assert 1 <= len(done.stdout.split()) <= 3
    assert find(key).build.__module__ in done.stdout.split()


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("hero", "did you mean hero-hybrid-reward"),
        ("hero-hybrid-rewrd", "did you mean hero-hybrid-reward"),
        ("zzzzqqqq", "see: guerdon methods list"),
        ("", "see: guerdon methods list"),
        ("../hero", "there is no method '../hero'"),
    ],
)
def test_a_key_that_is_none_is_an_error_with_the_nearest(key, says):
    with pytest.raises(gd.SpecError, match=says):
        gd.method(key)
