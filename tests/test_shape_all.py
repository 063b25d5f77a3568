"""What holds for every block of shape and credit: whatever numbers it gets, known or not, and however it is called.

`BLOCKS` has an entry for every exported name, so that a new block is tried here without a line of its own.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import warnings

import numpy as np
import pytest

from guerdon import credit, shape
from guerdon.core.axis import Axis, lineage
from guerdon.core.frame import Frame
from guerdon.core.scores import Scores
from guerdon.core.transform import Apply
from guerdon.spec import dump_spec, load_spec
from shape_and_credit import BLOCKS, EXTREME, UNIT_BLOCKS, random_rollouts
from shape_strategies import listed, same

NODES = {name: block for name, block in BLOCKS.items() if isinstance(block, Apply)}
EACH, EACH_NODE = pytest.mark.parametrize("name", BLOCKS), pytest.mark.parametrize("name", NODES)


@functools.cache
def frames(count=30, numbers=None, unknown=True):
    """Frames of random rollouts, of `EXTREME` numbers in turn if no others are given."""
    return [
        Frame.of(random_rollouts(seed, numbers or EXTREME[seed % len(EXTREME)], unknown=unknown))
        for seed in range(count)
    ]


def operands(block, frame):
    """The scores that a block is computed from."""
    return [
        Scores.constant(frame.prompt, c.value) if c.axis == "prompt" else c.score(frame).framed for c in block.children
    ]


def computed(block, scores):
    """The block's result on these operands, from its first state if it has one."""
    if block.transform.traits.initial is None:
        return block.compute(scores)
    return block.compute(scores, state=block.initial_state())[0]


def parts(scores, axis):
    """Values per item of an axis above, None where unknown."""
    flat = listed(scores)
    return [flat[a:b] for a, b in itertools.pairwise(scores.axis.offsets_over(axis).tolist())]


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_every_block_of_both_rooms_is_tried():
    exported = {n for room in (shape, credit) for n in room.__all__ if callable(getattr(room, n))}
    assert {name.partition(":")[0] for name in BLOCKS} == exported


@pytest.mark.parametrize("name", sorted({name.partition(":")[0] for name in BLOCKS}))
def test_every_block_shows_an_example_that_the_doc_test_runs(name):
    assert ">>> " in (getattr(shape, name, None) or getattr(credit, name)).__doc__


@EACH
def test_no_number_however_large_or_small_gives_a_nan_a_warning_an_error_or_an_unknown_without_a_reason(name):
    for frame in frames():
        out = BLOCKS[name].score(frame).framed
        assert np.isfinite(out.values[out.known]).all()
        assert all(isinstance(r, str) and r not in ("", "unknown") for r in out.unknown_reasons())
        assert out.reasons is None or len(out.reasons) == len(out)


@EACH
def test_known_values_lie_in_the_declared_range(name):
    block = UNIT_BLOCKS[name]
    for frame in frames(numbers=(0.0, 0.25, 0.5, 1.0, 1 / 3, 0.1, 5e-324, 1 - 2**-53)):
        out = block.score(frame).framed
        known = out.values[out.known]
        assert (known >= block.range.low).all()
        assert (known <= block.range.high).all()


@EACH_NODE
def test_what_an_unknown_item_holds_plays_no_part_and_operands_stay_as_they_were(name):
    block = NODES[name]
    for frame in frames(12):
        given = operands(block, frame)
        before = [(s.values.copy(), s.known.copy(), None if s.reasons is None else s.reasons.copy()) for s in given]
        plain = computed(block, given)
        for s, (values, known, reasons) in zip(given, before, strict=True):
            assert np.array_equal(s.values, values, equal_nan=True)
            assert np.array_equal(s.known, known)
            assert (s.reasons is None) if reasons is None else np.array_equal(s.reasons, reasons)
        for hidden in (np.nan, np.inf, -1e308, 1.0):
            filled = [
                Scores(s.axis, np.where(s.known, s.values, hidden), s.known, s.reasons, s.evidence) for s in given
            ]
            assert listed(computed(block, filled)) == listed(plain)


STANDS_IN = {
    "known", "fallback", "items", "left", "place", "calls", "contrasting", "label_statistic", "gate", "choose", "until",
    "dag_gate", "cap", "ensemble_mean", "ensemble_min", "ensemble_spread", "ensemble_lower_bound", "weighted_sum",
    "weighted_mean", "normalised_sum", "pace_weights", "gated_sum", "ever_positive", "live_rate", "rollout_relative",
    "label_correlation", "mutual_clusters", "skew_preference", "before_error",
}  # fmt: skip
"""Blocks that state a known result beside an unknown item: a count, a decided gate, a stand-in, a group's statistic."""


@EACH_NODE
def test_an_unknown_item_stays_unknown_unless_the_block_states_what_it_becomes(name):
    if name.partition(":")[0] in STANDS_IN:
        return
    for frame in frames(20):
        given = operands(NODES[name], frame)
        out = computed(NODES[name], given)
        for child, scores in zip(NODES[name].children, given, strict=True):
            only_axis = child is NODES[name].bound.arguments.get("like")
            if scores.axis.matches(out.axis) and not only_axis:
                assert not (out.known & ~scores.known).any()


@EACH_NODE
def test_no_block_reads_further_than_it_declares(name):
    """A demand for one item asks for its rollout, group or batch: what else a block read would differ by who asks."""
    reads = NODES[name].transform.traits.groups
    if reads == "batch" or NODES[name].transform.traits.initial is not None:
        return
    for seed in range(20):
        rows = sorted(random_rollouts(seed, EXTREME[seed % len(EXTREME)]), key=lambda row: row["prompt"])
        together = NODES[name].score(rows).framed
        whole = parts(together, "prompt" if reads is True or together.axis.name == "prompt" else "rollout")
        if reads is True or together.axis.name == "prompt":
            shares = [[r for r in rows if r["prompt"] == p] for p in dict.fromkeys(r["prompt"] for r in rows)]
        else:
            shares = [[row] for row in rows]
        alone = [listed(NODES[name].score(share).framed) for share in shares]
        assert all(same(a, b, 1e-12) for a, b in zip(whole, alone, strict=True))


READS_THE_ORDER = {
    "bradley_terry", "copeland", "elo", "mean_over_others", "mutual_clusters", "skew_preference", "win_rate",
}  # fmt: skip
"""Blocks on an axis that lists the members of the group in order: tests/test_shape_compared.py permutes both."""


@EACH
def test_the_order_of_the_rollouts_moves_nothing(name):
    if name.partition(":")[0] in READS_THE_ORDER:
        return
    for seed in range(12):
        rows = random_rollouts(seed)
        order = np.random.default_rng(seed).permutation(len(rows))
        plain, mixed = (parts_in_order(name, some) for some in (rows, [rows[i] for i in order]))
        assert all(same(plain[i], mixed[at], 1e-9) for at, i in enumerate(order))


def parts_in_order(name, rows):
    scores = BLOCKS[name].score(rows).scores
    return parts(scores, "rollout" if scores.axis.has("rollout") else "prompt")


@EACH
def test_no_rollouts_are_no_error(name):
    assert len(BLOCKS[name].score([])) == 0


@EACH_NODE
def test_prompts_without_rollouts_are_no_error(name):
    def bare(axis):
        out = Axis("prompt", 2)
        for below in reversed(lineage(axis)[:-1]):
            out = Axis.under(out, np.zeros(out.size, dtype=np.int64), below)
        return out

    given = [Scores.of(bare(child.axis), np.zeros(bare(child.axis).size)) for child in NODES[name].children]
    out = computed(NODES[name], given)
    assert np.isfinite(out.values).all()
    assert len(out) == (2 if out.axis.name == "prompt" else 0)


@EACH
def test_a_node_survives_pickling_with_its_fingerprint(name):
    twin = pickle.loads(pickle.dumps(BLOCKS[name]))
    assert (twin.fingerprint, twin.range) == (BLOCKS[name].fingerprint, BLOCKS[name].range)
    frame = frames()[3]
    assert listed(twin.score(frame).framed) == listed(BLOCKS[name].score(frame).framed)


@EACH
def test_a_node_can_be_written_as_a_spec_and_read_back(name):
    assert load_spec(dump_spec(BLOCKS[name])).reward.fingerprint == BLOCKS[name].fingerprint
