"""Sixteen methods over columns on random ragged input: finite, inside the declared range, and blind to order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.audio_rubrics import audio_rubrics
from guerdon.methods.confclip import confclip, mean_confidence
from guerdon.methods.corver import corver
from guerdon.methods.dg_prm import dg_prm
from guerdon.methods.easy_to_hard import easy_to_hard
from guerdon.methods.lets import lets, search_worth
from guerdon.methods.longtracerl import f_beta, longtracerl, longtracerl_chunks
from guerdon.methods.metacognition import metacognition
from guerdon.methods.openrs import both_orders, comparison_score, openrs
from guerdon.methods.p2s import faithful_steps, p2s
from guerdon.methods.perceval import perceval
from guerdon.methods.prorag import prorag, prorag_outcome, prorag_step
from guerdon.methods.rlcer import rlcer, rlcer_writer
from guerdon.methods.rlr3 import rlr3, rlr3_advantage
from guerdon.methods.teacher_forcing import teacher_forcing
from guerdon.methods.vpr import vpr

KINDS = {
    "u": lambda rng: rng.choice([0.0, 0.1, 0.5, 1.0, rng.random()]),
    "b": lambda rng: rng.choice([0.0, 1.0]),
    "n": lambda rng: rng.choice([0.0, 1.0, 3.0, 12.0]),
    "x": lambda rng: rng.choice([-1.0, 0.0, 2.0, 1e6 * rng.normal(), rng.normal(), 1.7e308, -1.7e308]),
    "l": lambda rng: -rng.exponential(100.0),
}
"""Numbers in [0, 1], verdicts, counts, anything, log-probabilities."""
SPREAD = {"step": 4, "token": 6, "criterion": 2, "reading": 5}


def batch(seed):
    """Rows of up to three prompts with a column of each kind on each axis, with ties, holes and empty axes."""
    rng = np.random.default_rng(seed)
    holes = rng.choice([0.0, 0.1, 0.4])

    def cell(kind):
        return None if rng.random() < holes else float(KINDS[kind](rng))

    rows = []
    for prompt in rng.choice(list("abc"), rng.integers(0, 8)):
        row = {"prompt": str(prompt), **{kind: cell(kind) for kind in KINDS}}
        for axis, most in SPREAD.items():
            size = most if axis == "criterion" else rng.integers(0, most + 1)
            row |= {f"{axis}_{kind}": [cell(kind) for _ in range(size)] for kind in KINDS}
        row["logprobs"] = [-1.0] * len(row["token_u"])  # what gives the token axis its sizes
        row["reading_at"] = [float(rng.integers(0, 4)) for _ in row["reading_u"]]
        rows.append(row)
    for row in rows:
        row["versus_x"] = [cell("x") for other in rows if other["prompt"] == row["prompt"]]
    return rows


def c(kind, axis=None):
    return gd.column(f"{axis}_{kind}", axis=axis) if axis else gd.column(kind)


AT = gd.column("reading_at", axis="reading")
METHODS = {
    "metacognition": metacognition(c("n"), c("n"), c("n") + 1.0, c("u"), c("u"), c("b"), listed=c("n")),
    "p2s": p2s(c("b"), c("b"), faithful_steps(c("l", "reading"), c("l", "reading") * 0.5, AT, c("l"), c("u", "step"))),
    "vpr": vpr(c("x")),
    "vpr over the batch": vpr(c("x"), c("b"), mode="mean_then_batch_whiten"),
    "vpr by turn": vpr(c("x", "step"), c("b"), mode="turn"),
    "longtracerl": longtracerl(c("b"), c("u")),
    "longtracerl negative": longtracerl(c("b"), c("u"), mode="negative"),
    "longtracerl chunks": longtracerl_chunks(c("b"), f_beta(c("u"), c("b"))),
    "audio rubrics": audio_rubrics(
        c("u", "criterion"), c("x", "criterion"), c("u"), c("n"), negative=c("b", "criterion"), static=0.5
    ),
    "lets": lets(c("u"), c("n", "reading"), AT, c("u", "step")),
    "lets worth": search_worth(c("n", "reading"), AT, c("b"), c("u", "step")),
    "openrs": openrs(gd.column("versus_x", axis="opponent"), -gd.column("versus_x", axis="opponent"), c("b")),
    "openrs pair": comparison_score(c("n", "criterion"), c("x", "criterion"), c("x", "criterion")),
    "openrs orders": both_orders(c("x"), c("u")),
    "rlr3": rlr3(c("u", "criterion"), c("b", "criterion"), c("n", "criterion")),
    "rlr3 advantage": rlr3_advantage(c("u", "criterion"), c("b", "criterion")),
    "corver": corver(c("u"), c("n", "step"), c("b", "step")),
    "confclip": confclip(c("b"), mean_confidence(c("l", "token"))),
    "dg-prm": dg_prm([c("u", "step"), c("x", "step")]),
    "dg-prm boxed": dg_prm([c("u", "step"), c("n", "step")], grain=0.5),
    "rlcer": rlcer(c("b"), c("b", "criterion"), c("x", "criterion")),
    "rlcer writer": rlcer_writer(c("b"), c("b", "criterion"), c("b")),
    "perceval": perceval(c("b"), c("b", "token")),
    "easy-to-hard": easy_to_hard(c("u", "step"), c("b")),
    "easy-to-hard product": easy_to_hard(c("u", "step"), scheme="prod"),
    "teacher forcing": teacher_forcing(c("x", "token"), c("x", "token"), c("u", "token"), c("n", "token")),
    "prorag": prorag(prorag_outcome(c("u"), c("b")), prorag_step(c("x"), c("b")), c("b", "token")),
}
GROUPS = [name for name in METHODS if name not in ("vpr over the batch", "vpr by turn")]
SEEDS = given(seed=st.integers(0, 2**32 - 1))
QUICK = settings(max_examples=12, deadline=None)


@pytest.mark.parametrize("name", METHODS)
@QUICK
@SEEDS
def test_known_scores_are_finite_and_lie_in_the_declared_range(name, seed):
    method = METHODS[name]
    out = method.score(batch(seed)).scores
    known = out.values[out.known]
    assert np.isfinite(known).all()
    assert (known >= method.range.low - 1e-9).all()
    assert (known <= method.range.high + 1e-9).all()
    assert all(out.reason(int(i)) for i in np.flatnonzero(~out.known))


def blank(value):
    return [None] * len(value) if isinstance(value, list) else None


@pytest.mark.parametrize("name", METHODS)
@QUICK
@SEEDS
def test_holes_never_become_numbers(name, seed):
    """With every measurement missing, nothing is known."""
    rows = [
        {k: v if k in ("prompt", "reading_at", "logprobs") else blank(v) for k, v in r.items()} for r in batch(seed)
    ]
    assert not METHODS[name].score(rows).scores.known.any()


@pytest.mark.parametrize("name", GROUPS)
@QUICK
@SEEDS
def test_what_other_prompts_hold_plays_no_part(name, seed):
    rows = batch(seed)
    alone = METHODS[name].score([r for r in rows if r["prompt"] == "a"]).scores
    among = METHODS[name].score(rows).scores
    mine = np.array([r["prompt"] == "a" for r in rows], dtype=bool)
    inside = mine if among.axis.name == "rollout" else np.repeat(mine, np.diff(among.axis.offsets_over("rollout")))
    assert among.known[inside].tolist() == alone.known.tolist()
    assert among.values[inside][alone.known] == pytest.approx(alone.values[alone.known], rel=1e-6, abs=1e-9)
