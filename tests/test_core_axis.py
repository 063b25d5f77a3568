"""Axes and segment reductions, against obvious references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guerdon.core import segments
from guerdon.core.axis import Axis, finest, lineage
from guerdon.core.errors import AxisError

ragged = st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), max_size=8)


def flat(lists):
    return np.array([x for part in lists for x in part]), np.cumsum([0, *map(len, lists)])


def test_offsets_compose_up_to_any_ancestor():
    prompt = Axis("prompt", 2)
    rollout = Axis.under(prompt, [2, 1], "rollout")
    step = Axis.under(rollout, [3, 0, 2], "step")
    assert step.offsets_over("rollout").tolist() == [0, 3, 3, 5]
    assert step.offsets_over("prompt").tolist() == [0, 3, 5]
    assert step.owner_in("prompt").tolist() == [0, 0, 0, 1, 1]
    assert step.owner_in("rollout").tolist() == [0, 0, 0, 2, 2]
    assert step.ancestor("prompt") is prompt


@pytest.mark.parametrize(
    ("offsets", "says"),
    [([0, 2], "3 numbers"), ([1, 2, 3], "3 numbers"), ([0, 4, 3], "decrease"), ([0, 1, 2], "3 numbers from 0 to 3")],
)
def test_offsets_that_do_not_fit_are_refused(offsets, says):
    with pytest.raises(AxisError, match=says):
        Axis("rollout", 3, Axis("prompt", 2), np.array(offsets))


def test_lineage_and_finest():
    assert lineage("token") == ("token", "step", "rollout", "prompt")
    assert lineage("criterion") == ("criterion", "rollout", "prompt")
    assert finest(["rollout", "prompt", "step"]) == "step"
    with pytest.raises(AxisError, match="can't be combined"):
        finest(["step", "criterion"])


@given(ragged)
def test_segment_reductions_match_python(lists):
    values, offsets = flat(lists)
    values = values.astype(float)
    assert segments.segment_sum(values, offsets) == pytest.approx([sum(x) for x in lists])
    assert segments.segment_min(values, offsets).tolist() == [min(x, default=np.inf) for x in lists]
    assert segments.segment_max(values, offsets).tolist() == [max(x, default=-np.inf) for x in lists]
    assert segments.segment_count(values > 0, offsets).tolist() == [sum(v > 0 for v in x) for x in lists]


@given(ragged)
def test_mid_ranks_match_their_definition(lists):
    values, offsets = flat(lists)
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets)) if lists else np.zeros(0, int)
    expected = [sum(w < v for w in part) + (sum(w == v for w in part) - 1) / 2 for part in lists for v in part]
    assert segments.segment_ranks(values.astype(float), owner).tolist() == expected
