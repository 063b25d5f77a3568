"""Methods that compare rollouts against their formulas in plain Python, on random ragged rollouts."""

from __future__ import annotations

import itertools
import math
from statistics import fmean, pstdev, stdev

import pytest

import guerdon as gd
from guerdon.methods.fapo import fapo_judge
from guerdon.methods.rlrr import rlrr
from guerdon.methods.variance_profile import amplification, dense_profile, guarded_zscore
from plain_python import SEEDS, Draw, agrees, column, flat, standard

C = gd.column
OK, R, S, TOKEN = C("ok"), C("r"), C("s", axis="step"), C("logprobs", axis="token")
built = gd.method


def groups(rows):
    return [list(g) for _, g in itertools.groupby(rows, key=lambda r: r["prompt"])]


def midrank(x, xs):
    """Rank from 0 among ``xs``, ties at the mean of their ranks."""
    return sum(y < x for y in xs) + (sum(y == x for y in xs) - 1) / 2


def to_go(xs, gamma=1.0):
    return [sum(gamma**j * x for j, x in enumerate(xs[t:])) for t in range(len(xs))]


# ---- comparisons within the group ----


@SEEDS
def test_baselines(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.choice([0.0, 1.0, draw.gauss(0, 1)]), "n": draw.randint(1, 30000)})

    def alone(f):
        return lambda g: f(column(g, "r")) if len(g) > 1 else [None]

    agrees(built("grpo", R), rows, lambda g: standard(column(g, "r"), eps=1e-6, sample=True))
    agrees(built("dr-grpo", R), rows, alone(lambda xs: [x - fmean(xs) for x in xs]))
    agrees(built("rloo", R), rows, alone(lambda xs: [x - (sum(xs) - x) / (len(xs) - 1) for x in xs]))
    ranks = alone(lambda xs: [4 * midrank(x, xs) / (len(xs) - 1) - 2 for x in xs])
    agrees(built("gopo-rank-advantage", R), rows, ranks)
    agrees(built("reward-shifting", R, shift=-0.5), rows, lambda g: [r["r"] - 0.5 for r in g])
    agrees(built("dapo-overlong", R, C("n")), rows, lambda g: [
        r["r"] + (0 if r["n"] <= 16384 else -1 if r["n"] > 20480 else (16384 - r["n"]) / 4096) for r in g
    ])  # fmt: skip


@SEEDS
def test_rlrr(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.unit(), "ok": draw.bit()})

    def ranked(group):
        for r in group:
            peers = [x["r"] for x in group if x["ok"] == r["ok"]]
            yield r["ok"] + (0.4 * (midrank(r["r"], peers) / (len(peers) - 1) - 0.5) if len(peers) > 1 else 0.0)

    agrees(built("rlrr-relative-rewards", R, OK, beta=0.4), rows, ranked)
    agrees(rlrr(R), rows, lambda g: [
        midrank(r["r"], column(g, "r")) / (len(g) - 1) - 0.5 if len(g) > 1 else None for r in g
    ])  # fmt: skip


@SEEDS
def test_mo_grpo_and_gdpo(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.choice([0.0, 1.0, draw.gauss(0, 5)]), "ok": draw.bit(), **draw.tokened()})

    def total(group, weights, **how):
        parts = [standard(column(group, n), **how) for n in ("r", "ok")]
        return [None if a is None else weights[0] * a + weights[1] * b for a, b in zip(*parts, strict=True)]

    agrees(built("mo-grpo-per-reward-normalisation", [R, OK], [1.0, 2.0]), rows, lambda g: total(g, (1, 2)))

    def whitened(group):
        for r, x in zip(group, total(group, (1, 1), eps=1e-6, sample=True), strict=True):
            flat_ = len(known) < 2 or min(known) == max(known)
            one = None if x is None or len(known) < 2 else 0.0 if flat_ else (x - fmean(known)) / spread
            yield [one] * len(r["tokens"])

    known = flat(
        [x] * len(r["tokens"])
        for g in groups(rows)
        for r, x in zip(g, total(g, (1, 1), eps=1e-6, sample=True), strict=True)
        if x is not None
    )
    spread = math.sqrt(stdev(known) ** 2 + 1e-8) if len(known) > 1 else 1.0
    agrees(built("gdpo", [R, OK], TOKEN), rows, whitened, tolerance=1e-7)


@SEEDS
@pytest.mark.parametrize("k", [1, 2, 3])
def test_pass_at_k_over_all_subsets(seed, k):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.choice([0.0, 1.0, 1.0, -1.0, draw.random()])}, most=7)

    def analytic(group):
        xs = column(group, "r")
        if len(xs) < k:
            return [None] * len(xs)
        subsets = list(itertools.combinations(range(len(xs)), k))
        best = [max(xs[i] for i in s) for s in subsets]
        own = [fmean(b for b, s in zip(best, subsets, strict=True) if i in s) for i in range(len(xs))]
        flat_ = min(best) == max(best)
        return [0.0 if flat_ else (x - fmean(best)) / (pstdev(best) + 1e-6) for x in own]

    agrees(built("passk-training-analytic-advantage", R, k=k), rows, analytic, tolerance=1e-7)


@SEEDS
def test_reinforce_plus_plus_and_gae(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.choice([0.0, 1.0, draw.gauss(0, 1)]), **draw.tokened()})
    for row in rows:
        row["v"] = [draw.unit() for _ in row["tokens"]]
    paid = {id(r): to_go([0.0] * (len(r["tokens"]) - 1) + [r["r"]], 0.9) for r in rows}
    every = flat(paid.values())
    spread = math.sqrt(stdev(every) ** 2 + 1e-8)
    agrees(built("reinforce-plus-plus", R, TOKEN, gamma=0.9), rows, lambda g: [
        [(x - fmean(every)) / spread for x in paid[id(r)]] for r in g
    ], tolerance=1e-7)  # fmt: skip

    def advantages(r):
        v = [*r["v"], 0.0]
        reward = [0.0] * (len(r["v"]) - 1) + [r["r"]]
        return to_go([reward[t] + 0.9 * v[t + 1] - v[t] for t in range(len(r["v"]))], 0.9 * 0.8)

    agrees(built("gae", R, C("v", axis="token"), gamma=0.9, lam=0.8), rows, lambda g: map(advantages, g))


@SEEDS
def test_fapo_and_its_judge(seed):
    draw = Draw(seed)
    errors = [-1.0, 0.0, 3.0, -2.0, None]
    rows = draw.rows(lambda: {"ok": draw.bit(), "e": draw.choice(errors), "g": draw.choice([-1, 2]), "n": 4})

    def reward(r):
        if not r["ok"]:
            return -1.0
        return None if r["e"] is None or r["e"] < -1 else 1.0 if r["e"] == -1 else 0.4

    def judged(r):
        e, g, n = r["e"], r["g"], r["n"]
        if e is None or not (e == -1 or 0 <= e < n):
            return -1.0
        if g == -1:
            return 1.0 if e == -1 else -1.0
        return -1.0 if e == -1 else 1 - abs(e - g) / n

    agrees(built("fapo-flawed-positive-penalty", OK, C("e"), penalty=0.6), rows, lambda g: map(reward, g))
    agrees(fapo_judge(C("e"), C("g"), C("n")), rows, lambda g: map(judged, g))


@SEEDS
def test_a_dense_signal_is_profiled_guarded_and_compared_with_the_batch(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.unit(), "ok": draw.bit()})
    batch, every = pstdev(column(rows, "r")), groups(rows)

    def guarded(group):
        xs = column(group, "r")
        return [None] if len(xs) < 2 else [(x - fmean(xs)) / max(pstdev(xs), 0.3) for x in xs]

    def amplified(group):
        spread = pstdev(column(group, "r"))
        return [batch / spread if spread else None] * len(group)

    agrees(guarded_zscore(R, floor=0.3), rows, guarded)
    got = amplification(R).score(rows).values
    assert [None if math.isnan(v) else v for v in got] == pytest.approx(flat(map(amplified, every)))
    profile = dense_profile(OK.score(rows).framed, R.score(rows).framed, top=2.0)
    assert profile.all_fail == fmean(not any(column(g, "ok")) for g in every)
    assert profile.mastery == pytest.approx(fmean(column(rows, "r")) / 2)
    assert profile.variance == pytest.approx(fmean(pstdev(column(g, "r")) ** 2 for g in every))
