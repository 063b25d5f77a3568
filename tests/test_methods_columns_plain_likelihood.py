"""Methods that give a rollout one number, against their published formulas in plain Python, on random rollouts."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

import guerdon as gd
from guerdon.methods.likelihood_family import likelihood_advantage
from guerdon.methods.p2s import faithful_steps
from plain_python import SEEDS, Draw, agrees

C = gd.column
OK, MET, W = C("ok"), C("met", axis="criterion"), C("w", axis="criterion")
built = gd.method


# ---- P2S ----


@SEEDS
def test_p2s(seed):
    draw = Draw(seed)

    def row():
        m, n = draw.randint(1, 4), draw.randint(1, 3)
        places = [i for i in range(m - 1) for _ in range(n)]
        return {
            "s": [0.0] * m,
            "of": places,
            "logp": [9 * draw.log() for _ in places],
            "form": float(draw.random() < 0.8),
            "masked": [9 * draw.log() for _ in places],
            "y": draw.log(),
            "ok": float(draw.random() < 0.2),
        }

    rows = draw.rows(row, prompts=4)

    def faithful(r):
        m = len(r["s"])
        lifts = [(i, a - b) for i, a, b in zip(r["of"], r["logp"], r["masked"], strict=True)]
        steps = [max(x for i, x in lifts if i == k) for k in range(m - 1)] + [r["y"]]
        w = [1.0 / (1.0 + math.exp(-(i - m / 2))) for i in range(1, m + 1)]
        return sum(a * b for a, b in zip(w, steps, strict=True)) / sum(w)

    def reference(group):
        solved = any(r["ok"] and r["form"] for r in group)
        return [-1.0 if not r["form"] else r["ok"] if solved else faithful(r) for r in group]

    steps = faithful_steps(*[C(n, axis="suffix") for n in ("logp", "masked", "of")], C("y"), C("s", axis="step"))
    agrees(built("p2s-path-faithfulness-reward", OK, C("form"), steps), rows, reference)


# ---- likelihoods ----

KINDS = {
    "prob": lambda logs: math.prod(map(math.exp, logs)),
    "avgprob": lambda logs: fmean(map(math.exp, logs)),
    "logprob": sum,
    "avglogprob": fmean,
    "inv_ppl": lambda logs: math.exp(fmean(logs)),
}


@SEEDS
@pytest.mark.parametrize("kind", [*KINDS, "jepo"])
def test_likelihood_family(seed, kind):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"lp": draw.many(draw.log, 1)})

    def rewards(group):
        if kind != "jepo":
            return [KINDS[kind](r["lp"]) for r in group]
        return [math.log(fmean(math.exp(sum(r["lp"])) for r in group))] * len(group)

    def advantages(group):
        r = rewards(group)
        return [None] if len(r) == 1 else [x - (sum(r) - x) / (len(r) - 1) for x in r]

    logs = C("lp", axis="answer")
    agrees(built("likelihood-reward-family", logs, kind=kind), rows, rewards)
    agrees(likelihood_advantage(logs, kind=kind), rows, advantages)
