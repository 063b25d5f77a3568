"""Token methods against their published formulas in plain Python, on random ragged rollouts."""

from __future__ import annotations

import math
from statistics import fmean, pstdev

import pytest

import guerdon as gd
from guerdon.methods.prorag import prorag_outcome, prorag_step
from guerdon.methods.taco import taco
from plain_python import SEEDS, Draw, agrees, column, cut, flat, per_token, standard

C = gd.column
S, OK, R = C("s", axis="step"), C("ok"), C("r")
TOKEN = C("logprobs", axis="token")
built = gd.method


# ---- Perceval ----


@SEEDS
def test_perceval(seed):
    draw = Draw(seed)
    rows = draw.rows(
        lambda: {"logprobs": (n := draw.many(draw.log)), "flag": [draw.bit() for _ in n], "ok": draw.bit()}
    )

    def reference(group):
        advantage = standard(column(group, "ok"), eps=1e-6, sample=True)
        return [
            [None if a is None else a - 0.1 * m * abs(a) for m in r["flag"]]
            for r, a in zip(group, advantage, strict=True)
        ]

    agrees(built("perceval", OK, C("flag", axis="token")), rows, reference)


# ---- Easy to hard ----


@SEEDS
@pytest.mark.parametrize("scheme", ["min", "prod"])
def test_easy_to_hard(seed, scheme):
    draw = Draw(seed)
    rows = draw.rows(lambda: {**(t := draw.tokened(5)), "s": [draw.unit() for _ in t["steps"]], "ok": draw.bit()})

    def steps(r):
        worst, product, out = 1.0, 1.0, []
        for p in r["s"]:
            product *= p
            level = p if scheme == "min" else product
            out.append((level - worst if level < worst else 0.0) + 0.25 / (len(r["s"]) + 1e-6))
            worst = min(worst, level)
        return out

    def tokens(r):
        out, end = [0.0] * len(r["logprobs"]), -1
        for c, n in zip(steps(r), r["step_tokens"], strict=True):
            end += n
            out[end] += c / 2
            out[min(end + 1, len(out) - 1)] += c / 2
        return [*out[:-1], out[-1] + r["ok"]]

    agrees(built("easy-to-hard", S, scheme=scheme), rows, lambda g: map(steps, g))
    agrees(built("easy-to-hard", S, OK, TOKEN, scheme=scheme), rows, lambda g: map(tokens, g))


# ---- Reward-SQL ----


@SEEDS
@pytest.mark.parametrize("distinct", [True, False])
def test_reward_sql(seed, distinct):
    draw = Draw(seed)
    rows = draw.rows(lambda: {**(t := draw.tokened()), "s": [draw.unit() for _ in t["steps"]], "ok": draw.bit()})

    def reference(group):
        u = [[p + r["ok"] for p in r["s"]] for r in group]
        present = [[x for x in part if x] for part in u]
        kept = [sorted(set(p)) if distinct else p for p in present]
        average = [fmean(k) if k else 0.0 for k in kept]
        level = [0.0] if len(group) == 1 else standard(average, eps=1e-6, sample=True)

        def paid(x, a):
            inside = x - 1.0 if x > 1.0 else x
            return 0.0 if x == 0.0 else inside * a if a > 0 else (1.0 - inside) * a

        return [per_token(r, [paid(x, a) for x in part]) for r, part, a in zip(group, u, level, strict=True)]

    agrees(built("reward-sql", S, OK, TOKEN, distinct=distinct), rows, reference)


# ---- ProRAG ----


@SEEDS
def test_prorag(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        **(t := draw.tokened()), "logit": [draw.choice([-2.0, 0.0, 1.0]) for _ in t["steps"]],
        "tags": [draw.bit() for _ in t["steps"]], "f1": draw.choice([0.1, 0.2, 0.5, 1.0]), "form": draw.bit(),
        "gen": [1.0, *[draw.bit() for _ in t["tokens"][1:]]],
    })  # fmt: skip

    def reference(group):
        outcome = [(2 * r["f1"] if r["f1"] >= 0.2 else 0.0) + (1 if r["form"] else -1) for r in group]
        episode = [0.0] if len(group) == 1 else standard(outcome, eps=1e-4, sample=True)
        u = [
            per_token(
                r, [1 / (1 + math.exp(-x)) + (1 if t else -2) for x, t in zip(r["logit"], r["tags"], strict=True)]
            )
            for r in group
        ]
        own = [x for r, part in zip(group, u, strict=True) for x, g in zip(part, r["gen"], strict=True) if g]
        mean, var = fmean(own), pstdev(own) ** 2

        def token(x, g, a):
            if not g:
                return 0.0
            return None if len(own) < 2 else a + 0.3 * (x - mean) / math.sqrt(var + 1e-8)

        return [
            [token(x, g, a) for x, g in zip(part, r["gen"], strict=True)]
            for r, part, a in zip(group, u, episode, strict=True)
        ]

    step = prorag_step(C("logit", axis="step"), C("tags", axis="step"))
    method = built("prorag", prorag_outcome(C("f1"), C("form")), step, C("gen", axis="token"))
    agrees(method, rows, reference)


# ---- TACO ----


@SEEDS
def test_taco(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"b": (b := draw.many(draw.bit)), "a": [draw.bit() for _ in b], "ok": draw.bit()})

    def reference(group):
        d = [[y - x for x, y in zip(r["b"], r["a"], strict=True)] for r in group]
        calls = flat(d)
        tool = cut([0.0] * len(calls) if len(calls) < 2 else standard(calls, eps=1e-6), map(len, d))
        episode = standard(column(group, "ok"), eps=1e-6)
        return [
            [None if a is None else (x == (1 if r["ok"] else -1)) * a + z for x, z in zip(dx, tz, strict=True)]
            for r, dx, tz, a in zip(group, d, tool, episode, strict=True)
        ]

    agrees(taco(OK, C("b", axis="step"), C("a", axis="step")), rows, reference)


# ---- RED, T-REG, teacher forcing ----


@SEEDS
def test_red(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "logprobs": (n := draw.many(draw.log)), "score": [draw.unit() for _ in n], "kl": [draw.unit() for _ in n],
        "empty": draw.unit(),
    })  # fmt: skip

    def tokens(r):
        before = [r["empty"], *r["score"]]
        out = [0.4 * (x - y) for x, y in zip(r["score"], before[:-1], strict=True)]
        if out:
            out[-1] += 0.6 * r["score"][-1]
        return [x - 0.1 * k for x, k in zip(out, r["kl"], strict=True)]

    method = built(
        "red-redistribution", C("score", axis="token"), C("empty"), share=0.4, log_ratio=C("kl", axis="token"), kl=0.1
    )
    agrees(method, rows, lambda g: map(tokens, g))


@SEEDS
def test_t_reg(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"logprobs": (n := draw.many(draw.log)), "bad": [draw.log() for _ in n]})
    method = built("t-reg", C("logprobs", axis="token"), C("bad", axis="token"))
    agrees(method, rows, lambda g: [
        [1 / (1 + math.exp(b - a)) - 0.5 for a, b in zip(r["logprobs"], r["bad"], strict=True)] for r in g
    ])  # fmt: skip


@SEEDS
def test_teacher_forcing(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "logprobs": (n := draw.many(draw.log)), "q": [200 * draw.log() for _ in n], "v": [90 * draw.unit() for _ in n],
        "base": [draw.log() for _ in n], "rho": [2 * draw.unit() for _ in n],
    })  # fmt: skip

    def tokens(r):
        reward = [q - (v if t < len(r["q"]) - 1 else 0.0) for t, (q, v) in enumerate(zip(r["q"], r["v"], strict=True))]
        ahead = [sum(reward[t:]) for t in range(len(reward))]
        return [max(-1.0, min(1.0, (g - b) / 100 * rho)) for g, b, rho in zip(ahead, r["base"], r["rho"], strict=True)]

    columns = [C(n, axis="token") for n in ("q", "v", "base", "rho")]
    agrees(built("teacher-forcing-reward", *columns), rows, lambda g: map(tokens, g))


# ---- RELC ----


@SEEDS
@pytest.mark.parametrize("per", ["token", "last", "share"])
def test_relc(seed, per):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "logprobs": (n := draw.many(draw.log, 0, 7)), "good": [draw.bit() for _ in n], "bad": [draw.bit() for _ in n],
        "r": draw.unit(),
    })  # fmt: skip

    def tokens(r):
        marks = [a - b for a, b in zip(r["good"], r["bad"], strict=True)]
        ends = [m != 0 and marks[t + 1 : t + 2] != [m] for t, m in enumerate(marks)]
        if per == "last":
            marks = [m * e for m, e in zip(marks, ends, strict=True)]
        if per == "share":
            marks = [m / max(sum(ends), 1) for m in marks]
        out = [0.2 * m for m in marks]
        return [*out[:-1], out[-1] + r["r"]] if out else []

    method = built("relc", R, C("good", axis="token"), C("bad", axis="token"), per=per)
    agrees(method, rows, lambda g: map(tokens, g))
