"""The examples of shaping show what they say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "shape"


@pytest.fixture(scope="module", autouse=True)
def examples_on_path():
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.mark.parametrize("seed", [0, 1])
def test_discretised_scores_are_hacked_less_than_raw_ones(seed):
    example = importlib.import_module("discretised_scores")

    raw = example.train("raw mean", updates=200, seed=seed)
    merged = example.train("discretised", updates=200, seed=seed)
    assert raw.max() > 0.85  # both learn not to be wrong
    assert merged.max() > 0.85
    assert raw[-1] < 0.6  # and then the raw score pads
    assert merged[-1] > 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_a_gated_bonus_can_not_outbid_a_failed_gate(seed):
    example = importlib.import_module("gated_bonus")

    added = example.train("plain sum", updates=150, seed=seed)[-1]
    gated = example.train("gated", updates=150, seed=seed)[-1]
    assert added[2] > 0.95
    assert gated[2] < 0.05
    assert gated[1] > gated[0] * 0.5  # what passes is still told apart by the bonus
    assert example.REWARD["plain sum"].range.high == 4
