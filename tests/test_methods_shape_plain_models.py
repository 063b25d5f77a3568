"""Methods over learned scores and verifiers against their formulas in plain Python, on random rollouts."""

from __future__ import annotations

import itertools
import math
from statistics import fmean, pstdev, variance

import pytest

import guerdon as gd
from plain_python import SEEDS, Draw, agrees, column, standard

C = gd.column
OK, R, STEPS, ITEMS = C("ok"), C("r"), C("s", axis="step"), C("items", axis="item")
built = gd.method


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def clip(x, low, high):
    return min(max(x, low), high)


# ---- learned scores: discretised, IRRL, PAR, ensembles, GPM ----


@SEEDS
@pytest.mark.parametrize("values", ["index", "mean"])
def test_discretised_reward_models(seed, values):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"items": [draw.unit() for _ in range(3)]})

    def clusters(group):
        m, s = [fmean(r["items"]) for r in group], [pstdev(r["items"]) for r in group]
        order = sorted(range(len(group)), key=lambda i: (m[i], s[i]))
        bins = [[order[0]]]
        for before, i in itertools.pairwise(order):
            if m[i] - m[before] > 1.5 * math.hypot(s[i], s[before]) + 1e-15:
                bins.append([])
            bins[-1].append(i)
        where = {i: number for number, one in enumerate(bins) for i in one}
        mean = [fmean(m[j] for j in one) for one in bins]
        return [where[i] if values == "index" else mean[where[i]] for i in range(len(group))]

    agrees(built("reward-discretization-mcdropout", ITEMS, width=1.5, values=values), rows, clusters)


IRRL = {
    "clipped": lambda q, p: max(q - p, 0), "linear": lambda q, p: q - p,
    "log": lambda q, p: math.log(max(q, 1e-8)) - math.log(p),
    "clipped-log": lambda q, p: max(math.log(max(q, 1e-8)) - math.log(p), 0),
}  # fmt: skip


@SEEDS
@pytest.mark.parametrize("form", IRRL)
def test_irrl(seed, form):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.unit(), "p": draw.choice([0.1, 0.5, 1.0])})
    agrees(built("irrl-clipped-linear", R, C("p"), form=form), rows, lambda g: [IRRL[form](r["r"], r["p"]) for r in g])


PAR = {
    "par": lambda r, refs: fmean(sigmoid(2 * (r - x)) for x in refs),
    "centred": lambda r, refs: fmean(r - x for x in refs),
    "tanh": lambda r, refs: fmean(math.tanh(r - x) for x in refs),
    "arctan": lambda r, refs: fmean(math.atan(r - x) for x in refs),
    "shifted": lambda r, refs: fmean(sigmoid(r - 3 - x) for x in refs),
    "log-sigmoid": lambda r, refs: math.log(sigmoid(r - (fmean(refs) + 1.0364 * (pstdev(refs) + 1e-5)))),
    "ceiling": lambda r, refs: min(r, 1.0),
    "raw": lambda r, refs: r,
}


@SEEDS
@pytest.mark.parametrize("form", PAR)
def test_par(seed, form):
    draw = Draw(seed)

    def make():
        row = {"r": draw.gauss(0, 2), "items": draw.many(lambda: draw.gauss(0, 1), 1), "n": draw.randint(1, 700)}
        row |= draw.tokened()
        return {**row, "ratio": [draw.gauss(0, 1) for _ in row["tokens"]]}

    def shaped(r):
        return PAR[form](r["r"] - 0.01 * max(0, r["n"] - 300), r["items"])

    def paid(r):
        out = [-0.005 * x for x in r["ratio"]]
        return [*out[:-1], out[-1] + shaped(r)]

    rows = draw.rows(make)
    agrees(built("par", R, ITEMS, C("n"), form=form, slope=2.0), rows, lambda g: map(shaped, g))
    tokens = built("par", R, ITEMS, C("n"), form=form, slope=2.0, log_ratio=C("ratio", axis="token"))
    agrees(tokens, rows, lambda g: map(paid, g))


@SEEDS
def test_uncertainty_aware_rlhf(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"items": draw.many(lambda: draw.gauss(0, 1), 1), "r": draw.gauss(0, 1)})
    agrees(built("uncertainty-aware-rlhf", ITEMS, R, beta=0.3), rows, lambda g: [
        fmean(r["items"]) - 0.3 * variance(r["items"]) * r["r"] if len(r["items"]) > 1 else None for r in g
    ])  # fmt: skip


@SEEDS
@pytest.mark.parametrize("probability", [False, True])
def test_gpm(seed, probability):
    draw = Draw(seed)
    gates = {f"p{p}": [draw.random(), draw.random()] for p in range(3)}
    rows = draw.rows(lambda: {"items": [draw.gauss(0, 1) for _ in range(4)]})
    for row in rows:
        row["lam"] = gates[row["prompt"]]

    def unit(v):
        size = math.sqrt(sum(x * x for x in v))
        return [x / size for x in v]

    def better(a, b):
        v, w = unit(a["items"]), unit(b["items"])
        s = sum(a["lam"][i] * (v[2 * i] * w[2 * i + 1] - v[2 * i + 1] * w[2 * i]) for i in range(2))
        return sigmoid(s / 0.1) if probability else s

    def mean_over_others(group):
        return [fmean(better(a, b) for b in group if b is not a) if len(group) > 1 else None for a in group]

    method = built("gpm-general-preference", ITEMS, C("lam", axis="block"), probability=probability)
    agrees(method, rows, mean_over_others)


# ---- a verifier and a model: Trust-GRPO, HARMO, G-RA, HERO, AlphaAlign ----


@SEEDS
def test_trust_grpo(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.choice([0.0, 0.3, 0.7, 1.0]), "s": draw.unit(), "t": 50.0})

    def trusted(group):
        outcome, thinking = column(group, "ok"), column(group, "s")
        right = [t for t, o in zip(thinking, outcome, strict=True) if o >= 0.5]
        wrong = [t for t, o in zip(thinking, outcome, strict=True) if o < 0.5]
        gamma = math.exp(min(fmean(right) - fmean(wrong), 0)) if right and wrong else 1.0
        mixed = not (all(o >= 0.9 for o in outcome) or all(o <= 0.1 for o in outcome))
        return [o + mixed * gamma * 0.3 * math.exp(-50 / 500) * t for o, t in zip(outcome, thinking, strict=True)]

    agrees(built("trust-grpo-thinking-reward", OK, C("s"), C("t")), rows, trusted)


@SEEDS
def test_harmo(seed):
    draw = Draw(seed)
    rows = draw.rows(
        lambda: {"ok": draw.bit(), "r": draw.unit(), "rule": draw.bit(), "form": draw.bit(), "n": draw.randint(1, 400)}
    )

    def reward(group):
        right = [r["ok"] == 1 if r["rule"] else r["r"] >= 0.5 for r in group]
        usual = [r["n"] for r, ok in zip(group, right, strict=True) if ok]
        for r in group:
            off = abs(r["n"] - fmean(usual)) / fmean(usual) if usual else 0.0
            yield (r["ok"] if r["rule"] else r["r"]) + r["form"] - 0.5 * clip(off - 0.5, 0, 1)

    agrees(built("harmo-hybrid-multiaspect", OK, R, C("rule"), C("form"), C("n"), threshold=0.5), rows, reward)


@SEEDS
def test_gated_reward_accumulation(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.choice([-1.0, 0.0, 1.0]), "r": draw.unit(), "s": draw.many(draw.unit, 1)})

    def total(r):
        return r["ok"] + (r["ok"] > 0) * (r["r"] + (r["r"] > 0.25) * sum(r["s"]))

    agrees(built("gated-reward-accumulation", [OK, R, STEPS.sum()], [0.0, 0.25]), rows, lambda g: map(total, g))


@SEEDS
def test_hero(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), "r": draw.choice([0.0, 1.0, draw.gauss(0, 2)])})
    usual = fmean(pstdev(column(list(g), "r")) for _, g in itertools.groupby(rows, key=lambda r: r["prompt"]))

    def fused(group):
        weight = 0.4 + 2.6 * sigmoid(6 * (pstdev(column(group, "r")) - usual))
        for r in group:
            peers = [x["r"] for x in group if x["ok"] == r["ok"]]
            low, high = min(peers), max(peers)
            share = 0.0 if low == high else 2 * (r["r"] - low) / (high - low) - 1
            yield weight * (r["ok"] + 0.05 * share)

    agrees(built("hero-hybrid-reward", OK, R), rows, fused)


@SEEDS
def test_alphaalign(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"form": draw.bit(), "no": draw.bit(), "r": draw.choice([0.0, 1.0, 2.0])})
    for row in rows:
        row["bad"] = float(row["prompt"] == "p2")

    def reward(group):
        z = [0.0 if x is None else x for x in standard(column(group, "r"), sample=True)]
        for r, good in zip(group, z, strict=True):
            safe = r["form"] + (r["no"] if r["bad"] else -r["no"])
            yield safe if r["bad"] else safe + (0.0 if r["no"] else max(good, 0.0))

    agrees(built("alphaalign-dual-safety-helpfulness", C("form"), C("no"), C("bad"), R), rows, reward)
