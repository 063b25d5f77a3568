"""Rubric methods, tool calls and entities against their formulas in plain Python, on random rollouts."""

from __future__ import annotations

from collections import Counter
from statistics import fmean, pstdev

import guerdon as gd
from guerdon.methods.longtracerl import f_beta, longtracerl_chunks
from guerdon.methods.openrs import both_orders, comparison_score
from guerdon.methods.rlcer import rlcer_writer
from guerdon.methods.rlr3 import rlr3_advantage
from guerdon.methods.rubrics_as_rewards import rubric_rating
from guerdon.methods.toolrl import tool_match
from plain_python import SEEDS, Draw, agrees, column, flat, standard

C = gd.column
OK, MET, W = C("ok"), C("met", axis="criterion"), C("w", axis="criterion")
built = gd.method


# ---- rubrics ----

WEIGHTS = {"Essential": 1.0, "Important": 0.7, "Optional": 0.3, "Pitfall": 0.9}


@SEEDS
def test_rubrics_as_rewards(seed):
    draw = Draw(seed)
    rows = draw.rows(
        lambda: {
            "categories": (names := draw.many(lambda: draw.choice([*WEIGHTS]))),
            "met": [draw.choice([0.0, 1.0, None]) for _ in names], "likert": draw.randint(1, 10),
        }
    )  # fmt: skip

    def explicit(r):
        known = [(WEIGHTS[n], c) for n, c in zip(r["categories"], r["met"], strict=True) if c is not None]
        return sum(w * c for w, c in known) / sum(w for w, _ in known) if known else None

    agrees(built("rubrics-as-rewards", MET), rows, lambda g: map(explicit, g))
    agrees(rubric_rating(C("likert")), rows, lambda g: [(r["likert"] - 1) / 9 for r in g])
    agrees(rubric_rating(C("likert"), from_zero=True), rows, lambda g: [r["likert"] / 10 for r in g])


@SEEDS
def test_metacognition(seed):
    draw = Draw(seed)
    names = ("k", "again", "n", "a", "s", "ok")
    rows = draw.rows(
        lambda: {
            "k": draw.randint(0, 3),
            "again": draw.randint(0, 2),
            "n": draw.randint(0, 5),
            "a": draw.unit(),
            "s": draw.unit(),
            "ok": draw.bit(),
        }
    )

    def one(r):
        found = r["k"] + r["again"]
        whole = None if r["n"] == 0 or found > r["n"] else found / r["n"]
        return None if whole is None else whole + r["a"] * (1 - 0.3 * r["s"]) + r["ok"]

    agrees(built("metacognition-as-reward", *map(C, names)), rows, lambda g: map(one, g))


@SEEDS
def test_audio_rubrics(seed):
    draw = Draw(seed)
    size, top = draw.randint(1, 7), draw.choice([1, 2, 5])
    flip, given = [draw.bit() for _ in range(size)], [draw.uniform(-0.5, 1.0) for _ in range(size)]
    rows = draw.rows(
        lambda: {
            "met": [draw.bit() for _ in range(size)],
            "neg": flip,
            "w": given,
            "out": draw.unit(),
            "n": draw.randint(0, 600),
            "static": draw.unit(),
        }
    )

    def reference(group):
        good = [[1 - b if f else b for b, f in zip(r["met"], flip, strict=True)] for r in group]
        spread = [pstdev(g[k] for g in good) for k in range(size)]
        order = sorted((k for k in range(size) if spread[k] > 0), key=lambda k: (-round(spread[k], 12), k))[:top]
        w = [max(given[k], 0.0) for k in order]
        w = w if sum(w) > 0 else [1.0] * len(order)
        rubric = [
            sum(x * g[k] for x, k in zip(w, order, strict=True)) / sum(w) if order else r["static"]
            for r, g in zip(group, good, strict=True)
        ]
        return [r["out"] + 0.5 * x + 0.15 * (1 - r["n"] / 256) for r, x in zip(group, rubric, strict=True)]

    method = built(
        "audio-rubrics", MET, W, C("out"), C("n"), negative=C("neg", axis="criterion"), static=C("static"), top=top
    )
    agrees(method, rows, reference)


@SEEDS
def test_openrs(seed):
    draw = Draw(seed)
    names = ("kind", "winner", "size")
    rows = draw.rows(
        lambda: {
            "kind": (k := draw.many(lambda: draw.choice([0, 1, 2, 3, 3, 7]))),
            "winner": [draw.choice([1, -1, 0]) for _ in k],
            "size": [draw.randint(0, 3) for _ in k],
        }
    )

    def score(r):
        live = [
            (k, w * s) for k, w, s in zip(r["kind"], r["winner"], r["size"], strict=True) if s and k in (0, 1, 2, 3)
        ]
        fatal = [s for k, s in live if k == 0]
        weight = {1: 5, 2: 2, 3: 1}
        below = sum(weight[k] for k, _ in live if k) + 1e-6
        return float(sum(fatal)) if fatal else sum(weight[k] * s for k, s in live) / below

    agrees(comparison_score(*[C(n, axis="criterion") for n in names]), rows, lambda g: map(score, g))

    sizes = Counter(column(rows, "prompt"))
    for r in rows:
        r["f"], r["b"] = ([draw.choice([-1.0, 0.0, 1.0]) for _ in range(sizes[r["prompt"]])] for _ in "fb")

    def verdict(f, b):
        return 1.0 if f > 0 and b <= 0 else -1.0 if f <= 0 and b > 0 else 0.0

    def reference(group):
        rewards = []
        for i, r in enumerate(group):
            others = [verdict(f, b) for j, (f, b) in enumerate(zip(r["f"], r["b"], strict=True)) if j != i]
            rewards.append(fmean(others) if others else None)
        return rewards

    forward, backward = C("f", axis="opponent"), C("b", axis="opponent")
    agrees(built("openrs", forward, backward), rows, reference)
    every = [[verdict(f, b) for f, b in zip(r["f"], r["b"], strict=True)] for r in rows]
    assert both_orders(forward, backward).score(rows).framed.values.tolist() == flat(every)


@SEEDS
def test_rlr3(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "met": (m := draw.many(lambda: draw.choice([0.0, 1.0, 1.0, 1.0]), 1, 5)), "ess": [draw.bit() for _ in m],
        "w": [draw.choice([0.0, 1.0, 3.0]) for _ in m],
    })  # fmt: skip

    def parts(r):
        essential = [h for h, e in zip(r["met"], r["ess"], strict=True) if e]
        extra = [(w, h) for h, e, w in zip(r["met"], r["ess"], r["w"], strict=True) if not e]
        whole = sum(w for w, _ in extra)
        return fmean(essential) if essential else 1.0, sum(w * h for w, h in extra) / whole if whole else 0.0

    def reward(r):
        e, a = parts(r)
        return e if e < 1 else 1 + 0.5 * a

    def advantages(group):
        e, a = zip(*map(parts, group), strict=True)
        level = standard(e, eps=1e-6)
        among = [x for x, y in zip(a, e, strict=True) if y == 1]
        z = iter([0.0] if len(among) == 1 else standard(among, eps=1e-6))
        return [None if x is None else x + (0.5 * next(z) if y == 1 else 0.0) for x, y in zip(level, e, strict=True)]

    ess = C("ess", axis="criterion")
    agrees(built("rlr3", MET, ess, W), rows, lambda g: map(reward, g))
    agrees(rlr3_advantage(MET, ess, W), rows, advantages)


def pearson(xs, ys):
    if len(xs) < 2 or min(xs) == max(xs) or min(ys) == max(ys):
        return None
    return fmean((x - fmean(xs)) * (y - fmean(ys)) for x, y in zip(xs, ys, strict=True)) / pstdev(xs) / pstdev(ys)


@SEEDS
def test_rlcer(seed):
    draw = Draw(seed)
    size = draw.randint(0, 4)
    points = [draw.choice([-1.0, 1.0, 3.0]) for _ in range(size)]
    rows = draw.rows(
        lambda: {"met": [draw.bit() for _ in range(size)], "pts": points, "ok": draw.bit(), "form": draw.bit()}, most=8
    )

    def valid(group):
        found = [pearson([r["met"][k] for r in group], column(group, "ok")) for k in range(size)]
        return [k for k in range(size) if found[k] is not None and found[k] > 0.2]

    def reasoner(group):
        use = valid(group)
        most = sum(abs(points[k]) for k in use)
        share = [sum(points[k] * r["met"][k] for k in use) / most if most else 0.0 for r in group]
        return [(1.0 if r["ok"] else -1.0) + x for r, x in zip(group, share, strict=True)]

    def writer(group):
        return [(len(valid(group)) / size if size else 0.0) + r["form"] for r in group]

    agrees(built("rlcer", OK, MET, C("pts", axis="criterion")), rows, reasoner)
    agrees(rlcer_writer(OK, MET, C("form")), rows, writer)


# ---- ToolRL ----


def overlap(a, b):
    one, two = Counter(a), Counter(b)
    both = sum(min(one[k], two[k]) for k in one)
    return both / (len(a) + len(b) - both) if a or b else 1.0


@SEEDS
def test_toolrl(seed):
    draw = Draw(seed)

    def call():
        keys = draw.sample("xyz", draw.randint(0, 3))
        return {"name": draw.choice(["f", "g"]), "arguments": {k: draw.randint(1, 2) for k in keys}}

    rows = draw.rows(lambda: {"calls": draw.many(call), "expected_calls": draw.many(call), "form": draw.bit()})

    def correctness(r):
        wanted, left = r["expected_calls"], list(r["calls"])
        if not wanted:
            return 0.0
        if not left:
            return -3.0
        score = overlap([c["name"] for c in wanted], [c["name"] for c in left])
        for g in wanted:
            want = g["arguments"]
            worth = [
                overlap(list(want), list(p["arguments"])) + sum(p["arguments"].get(k) == v for k, v in want.items())
                if p["name"] == g["name"] else 0.0
                for p in left
            ]  # fmt: skip
            if worth and max(worth) > 0:
                score += max(worth)
                left.pop(worth.index(max(worth)))
        return 6 * score / (1 + sum(1 + len(g["arguments"]) for g in wanted)) - 3

    agrees(tool_match, rows, lambda g: map(correctness, g))
    agrees(built("toolrl-reward", C("form")), rows, lambda g: [correctness(r) + r["form"] for r in g])


# ---- LongTraceRL ----


@SEEDS
def test_longtracerl(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), "rub": draw.unit(), "p": draw.unit(), "r": draw.unit()})

    def shared(group):
        best = max(column(group, "rub"))
        return [(r, r["rub"] / best if best > 0 else r["rub"]) for r in group]

    modes = {
        "positive": lambda out, rub: 0.0 if out == 0 else 0.7 * out + 0.3 * rub,
        "negative": lambda out, rub: out if out > 0 else 0.3 * rub,
        "plain": lambda out, rub: 0.7 * out + 0.3 * rub,
    }
    for mode, formula in modes.items():
        agrees(built("longtracerl", OK, C("rub"), mode=mode), rows, lambda g, f=formula: [f(r["ok"], x) for r, x in shared(g)])  # fmt: skip  # noqa: E501

    def chunks(r):
        below = 4 * r["p"] + r["r"]
        f = 5 * r["p"] * r["r"] / below if below else 0.0
        return r["ok"] + 0.3 * f + 0.7 * r["ok"] * f

    agrees(longtracerl_chunks(OK, f_beta(C("p"), C("r"))), rows, lambda g: map(chunks, g))


# ---- ConfClip ----


@SEEDS
def test_confclip(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), "c": draw.unit()})
    agrees(built("confclip", OK, C("c")), rows, lambda g: [
        (1 if r["ok"] else -1) * min(max(r["c"], 0.2), 0.8) for r in g
    ])  # fmt: skip
