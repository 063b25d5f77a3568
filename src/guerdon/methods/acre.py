"""ACRE: an answer that follows from its reasoning survives a shuffle of the options."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import BoolArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.segments import segment_count
from guerdon.core.transform import transform
from guerdon.methods._registry import method

Table = tuple[float, float, float, float]


@method(
    "acre-option-shuffle-consistency",
    family="verify",
    name="ACRE: Answer-Consistent Reinforcement Learning",
    source="Huang et al. 2025, arXiv:2510.10104",
    evidence="secondary",
)
def acre(
    first: Reward,
    second: Reward,
    permutation: Reward,
    gold: Reward,
    form: Reward | float = 0.0,
    *,
    table: Table = (1.0, 0.5, 0.0, 0.0),
    same_wrong: float | None = None,
) -> Reward:
    """``R = 1[first answer right] + form + table[CC, CW, WC, WW]``, one per rollout.

    ``first``: the letter's number from 0 (A = 0); ``second``: that of the answer generated from the *same reasoning*
    and shuffled options; ``permutation``: which option stood at each place then, one item per option on an axis of its
    own; ``gold``: the right letter of the original order. Letters become options (`shown_option`) before anything is
    compared. C: right, W: wrong, first answer then second. A missing answer is -1: it is wrong and equal to nothing;
    an unknown one (the second call failed) is unknown. ``same_wrong``: a level of its own for the same wrong option
    twice. GRPO follows: ``(R - mean) / (std + 1e-4)``. The four levels are *our reading*; only their order is known.

    Traps: a trace that ends in a letter ("so B") fails however sound it is: strip letters first; one that states the
    option's text makes the test trivial; the second call costs a quarter more. Only for multiple choice.
    """
    levels = (*table, *([] if same_wrong is None else [same_wrong]))
    if not (table[0] > table[1] >= max(levels[2:]) and min(levels[2:]) >= 0):
        raise ValueError(f"the table must hold CC > CW >= WC, WW >= 0, not {levels}")
    shown = shown_option(second, permutation)
    right, again = first == gold, shown == gold
    wrong_twice: Reward = as_reward(table[3])
    if same_wrong is not None:
        wrong_twice = when(_same(first, shown), same_wrong, table[3])
    cell = when(right, when(again, table[0], table[1]), when(again, as_reward(table[2]), wrong_twice))
    return right + cell + form


def option_shuffle_consistency(first: Reward, second: Reward, permutation: Reward) -> Reward:
    """1 where the same option is chosen before and after the shuffle: its mean over a data set is OSCR."""
    return _same(first, shown_option(second, permutation))


def reasoning_answer_consistency(implied: Reward, first: Reward) -> Reward:
    """1 where a judge who reads the reasoning without its answer chooses the same option: its mean is CACR."""
    return _same(implied, first)


def _same(one: Reward, two: Reward) -> Reward:
    return (one == two) & (one >= 0.0)


@transform(
    "methods.shown_option",
    version=1,
    axis=lambda letter, permutation: letter,
    range=lambda letter, permutation: Interval(-1.0),
)
def shown_option(letter: Scores, permutation: Scores) -> Scores:
    """The original number of the option that stood at ``letter``'s place; -1 for no answer, or no such letter.

    Unknown where the letter is, or the permutation is not one of 0 to m - 1, or leaves every option in its place.
    """
    offsets = permutation.axis.offsets_over("rollout")
    size, start = np.diff(offsets), offsets[:-1]
    shuffled, why = _shuffled(permutation, np.repeat(size, size), np.arange(len(permutation)) - np.repeat(start, size))
    (chosen,) = aligned(letter)
    there = chosen.known & (chosen.values >= 0) & (chosen.values < size) & (chosen.values == np.floor(chosen.values))
    at = np.where(there, start + np.where(there, chosen.values, 0.0), 0).astype(np.int64)
    values = np.where(there, np.append(permutation.values, 0.0)[at], -1.0)
    known = chosen.known & shuffled
    out = Scores.of(chosen.axis, np.where(known, values, 0.0), known, chosen)
    if out.reasons is not None:
        out.reasons[chosen.known & ~shuffled] = why
    return out


def _shuffled(permutation: Scores, size: IntArray, place: IntArray) -> tuple[BoolArray, str]:
    """Which rollouts hold a permutation other than the identity."""
    offsets, owner = permutation.axis.offsets_over("rollout"), permutation.axis.owner_in("rollout")
    value = np.where(permutation.known, permutation.values, -1.0)
    within = (value >= 0) & (value < size)
    order = np.lexsort((value, owner))
    complete = segment_count(within & (value[order] == place), offsets) == np.diff(offsets)
    moved = segment_count(value != place, offsets) > 0
    return complete & moved, "the options were not shuffled, or the permutation is not one"
