"""Methods of credit along the rollout against their formulas in plain Python, on random ragged rollouts."""

from __future__ import annotations

import itertools
import math
from statistics import fmean, stdev

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.denoising import calibrated_noise
from guerdon.methods.pure import pure_returns
from guerdon.methods.safer_steer import survival, turn_rewards
from guerdon.methods.vppo import prefix_rewards
from plain_python import SEEDS, Draw, agrees, column, flat, per_token, standard

C = gd.column
OK, R, S, TOKEN = C("ok"), C("r"), C("s", axis="step"), C("logprobs", axis="token")
built = gd.method


def to_go(xs, gamma=1.0):
    return [sum(gamma**j * x for j, x in enumerate(xs[t:])) for t in range(len(xs))]


# ---- along the rollout ----


@SEEDS
@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("delta", [False, True])
def test_clip_and_delta(seed, threshold, delta):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.unit), "ok": draw.bit()})

    def refined(r):
        x = r["s"] if threshold is None else [min(v - threshold, 0) for v in r["s"]]
        if delta:
            x = [x[k] - x[k + 1] for k in range(len(x) - 2)] + x[-2:-1] + [0.0] * bool(x)
        return [0.1 * v + r["ok"] * (k == len(x) - 1) for k, v in enumerate(x)]

    method = built("clip-delta-process-reward", S, OK, threshold=threshold, delta=delta)
    agrees(method, rows, lambda g: map(refined, g))


@SEEDS
@pytest.mark.parametrize("strict", [False, True])
def test_pure(seed, strict):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), **draw.tokened()})
    for row in rows:
        row["s"] = [draw.uniform(-1, 1) for _ in row["steps"]]

    def returns(r):
        x = list(r["s"])
        if strict:
            x[-1] += r["ok"]
            return [min(x[t:]) for t in range(len(x))]
        w = [math.exp(-v / 0.1) for v in x]
        x = [v * a / sum(w) for v, a in zip(x, w, strict=True)]
        x[-1] += r["ok"]
        return to_go(x)

    def advantages(group):
        own = [per_token(r, returns(r)) for r in group]
        for i in range(len(group)):
            others = sum(sum(g) for j, g in enumerate(own) if j != i)
            alone = len(group) == 1
            yield [None if alone else x - others / ((len(group) - 1) * 20) for x in own[i]]

    agrees(pure_returns(S, OK, strict=strict), rows, lambda g: map(returns, g))
    agrees(built("pure-min-form", S, OK, TOKEN, strict=strict, width=20, whiten=False), rows, advantages)


@SEEDS
def test_vppo(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), "c": draw.choice([0, 1, 2.5]), **draw.tokened(4)})
    for row in rows:
        row["s"] = [draw.choice([0.1, 0.9, 0.95]) for _ in row["steps"]]

    def prefix(r):
        wrong = next((j for j, x in enumerate(r["s"]) if x < 0.8), len(r["s"]) - 1)
        first = sum(r["step_tokens"][:wrong]) + 1  # counted from 1, as in the paper
        return max(0, math.floor(first - r["c"] - 1))

    def earned(r):
        n = len(r["tokens"])
        return [1.0] * n if r["ok"] else [0.5] * prefix(r) + [0.0] * (n - prefix(r))

    def advantages(relu):
        def of(group):
            if len(group) < 2:
                return [[None] * len(r["tokens"]) for r in group]
            mean = fmean(fmean(earned(r)) for r in group)
            rise = [[x - mean for x in earned(r)] for r in group]
            return [
                [max(x, 0) if relu and not r["ok"] and t < prefix(r) else x for t, x in enumerate(a)]
                for r, a in zip(group, rise, strict=True)
            ]

        return of

    def rewards(r):
        last = len(r["tokens"]) - 1 if r["ok"] else prefix(r) - 1
        return [(1.0 if r["ok"] else 0.5) * (t == last) for t in range(len(r["tokens"]))]

    for relu in (False, True):
        agrees(built("vppo-prefix", OK, S, TOKEN, C("c"), relu=relu), rows, advantages(relu))
    agrees(prefix_rewards(OK, S, TOKEN, C("c")), rows, lambda g: map(rewards, g))


@SEEDS
def test_prorl(seed):
    draw = Draw(seed)

    def make():
        path = draw.many(draw.unit)
        return {"s": path, "w": [draw.gauss(0, 3) for _ in path], "ok": draw.bit()}

    rows = draw.rows(make)
    rows[0] |= {"s": [0.25, 1.0], "w": [1.0, 2.0]}
    moments = {}
    for name in "sw":
        every = flat(column(rows, name))
        moments[name] = fmean(every), max(stdev(every), 0.1)

    def fused(r):
        z = {n: [(x - moments[n][0]) / moments[n][1] for x in r[n]] for n in "sw"}
        return [a + 0.5 * b for a, b in zip(z["s"], z["w"], strict=True)]

    def played(group):
        returns = [to_go(fused(r), 0.9) for r in group]
        reached = [
            [t < len(g) or (t == len(g) and r["ok"] == 1 and t < 3) if g else False for t in range(5)]
            for r, g in zip(group, returns, strict=True)
        ]
        value = [[*g, *[0.0] * (5 - len(g))] for g in returns]
        base = [
            sum(v[t] * a[t] for v, a in zip(value, reached, strict=True)) / max(1, sum(a[t] for a in reached))
            for t in range(5)
        ]
        for r, v, a in zip(group, value, reached, strict=True):
            n = len(r["s"])
            yield [v[t] - base[t] for t in range(n)], ((0.0 - base[n]) * a[n] if n else None)

    columns = {n: C(n, axis="step") for n in "sw"}
    items, ends = built(
        "prorl-stepwise-centering-position-baseline", columns, OK, weights={"s": 1.0, "w": 0.5}, gamma=0.9, limit=3
    )
    agrees(items, rows, lambda g: [own for own, _ in played(g)])
    agrees(ends, rows, lambda g: [end for _, end in played(g)])


@SEEDS
def test_safer_steer(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(lambda: draw.choice([None, draw.unit(), draw.unit()]))})

    def leaning(s):
        w = [1 + 0.1 * i for i in range(len(s))]
        return sum(a * x for a, x in zip(w, s, strict=True)) / sum(w)

    ways = {
        "min_mean": lambda s: 0.3 * min(s) + 0.7 * fmean(s), "mean": fmean, "last": lambda s: s[-1],
        "soft_linear": leaning, "harmonic": lambda s: len(s) / sum(1 / max(x, 0.01) for x in s),
    }  # fmt: skip
    for name, way in ways.items():
        agrees(built("safer-steer-tcsr", S, aggregate=name), rows, lambda g, way=way: [
            way(heard) if (heard := [x for x in r["s"] if x is not None]) else None for r in g
        ])  # fmt: skip

    def running(r):
        seen = []
        for x in r["s"]:
            seen += [] if x is None else [x]
            yield None if x is None else 0.3 * min(seen) + 0.7 * fmean(seen)

    agrees(turn_rewards(S), rows, lambda g: [list(running(r)) for r in g])
    safe = [[float(x >= 0.5) for x in r["s"] if x is not None] for r in rows]
    safe = [s for s in safe if s] or [[1.0]]
    expected = [fmean(all(s[: t + 1]) for s in safe) for t in range(max(map(len, safe)))]
    assert survival(S.score([{"s": s} for s in safe]).framed) == pytest.approx(expected)


# ---- scores at every step of a chain ----


def at_each_step(group, chains):
    """Standard scores over the rollouts that have that step."""
    out = [[None] * len(c) for c in chains]
    for t in range(max(map(len, chains), default=0)):
        there = [i for i, c in enumerate(chains) if t < len(c)]
        for i, z in zip(there, standard([chains[i][t] for i in there]), strict=True):
            out[i][t] = z
    return out


@SEEDS
def test_densegrpo(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.unit), "r": draw.unit()})

    def gains(r):
        path = [r["r"], *r["s"]]
        return [b - a for a, b in itertools.pairwise(path)]

    agrees(built("densegrpo-stepwise-gain", S, R), rows, lambda g: at_each_step(g, [gains(r) for r in g]))
    noise = calibrated_noise(np.full(5, 0.7), C("s", axis="step").score([{"s": gains(r)} for r in rows]).framed, by=0.1, tolerance=0.3)  # fmt: skip  # noqa: E501
    for t in range(5):
        now = [gains(r)[t] for r in rows if len(r["s"]) > t]
        lean = abs(sum(x > 0 for x in now) - sum(x < 0 for x in now))
        assert noise[t] == pytest.approx(0.7 if not now else 0.8 if lean <= 0.3 * len(now) + 1e-12 else 0.6)


def sign(x):
    return (x > 0) - (x < 0)


@SEEDS
@pytest.mark.parametrize("balance", [False, True])
def test_tp_grpo(seed, balance):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.random), "a": draw.random(), "z": draw.random()})

    def turns(r):
        path, change = [r["a"], *r["s"]], r["z"] - r["a"]
        d = [b - a for a, b in itertools.pairwise(path)]
        s = [sign(x) * sign(change) for x in d]
        for t in range(len(d)):
            consistent = sign(d[t]) * sign(r["z"] - path[t + 1]) > 0
            turning = consistent if t == 0 else s[t - 1] < 0 < s[t] and consistent
            yield d[t], r["z"] - path[t], turning and r["z"] != path[t]

    places = [(abs(r["z"] - r["a"]), r["z"] > r["a"], i, t)
              for i, r in enumerate(rows) for t, (_, _, hit) in enumerate(turns(r)) if hit]  # fmt: skip
    up, down = ([p for p in places if p[1] is way] for way in (True, False))
    keep = min(len(up), len(down)) if balance else 0
    kept = {p[2:] for side in (up, down) for p in (sorted(side, key=lambda p: -p[0])[:keep] if keep else side)}

    def rewards(group):
        numbers = [next(i for i, r in enumerate(rows) if r is one) for one in group]
        return [
            [left if (i, t) in kept else d for t, (d, left, _) in enumerate(turns(r))]
            for i, r in zip(numbers, group, strict=True)
        ]

    method = built("tp-grpo-turning-points", S, C("a"), C("z"), balance=balance)
    agrees(method, rows, lambda g: at_each_step(g, rewards(g)))


@SEEDS
def test_vgpo(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.unit)})

    def advantages(group):
        q = [to_go(r["s"], 0.8) for r in group]
        omega = [[x / fmean(one) if fmean(one) else 1.0 for x in one] for one in q]
        z = at_each_step(group, q)
        return [
            [None if c is None else o * (c + 0.2 * v) for o, c, v in zip(*parts, strict=True)]
            for parts in zip(omega, z, q, strict=True)
        ]

    agrees(built("vgpo-value-anchored", S, gamma=0.8, k=0.2), rows, advantages)
