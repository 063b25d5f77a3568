"""Step and token methods against their published formulas in plain Python, on random ragged rollouts."""

from __future__ import annotations

import itertools
import math
from statistics import fmean, pstdev, stdev

import pytest

import guerdon as gd
from guerdon.methods.capo import voted_wrong
from guerdon.methods.lets import document_columns, lets_outcome
from plain_python import SEEDS, Draw, agrees, column, cut, flat, last_of_steps, per_token, standard

C = gd.column
S, OK, R = C("s", axis="step"), C("ok"), C("r")
TOKEN = C("logprobs", axis="token")
built = gd.method


# ---- PPR ----


@SEEDS
def test_renorm(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {**(t := draw.tokened()), "s": [draw.unit() for _ in t["steps"]], "ok": draw.unit()})

    def renormed(r):
        return [p + r["ok"] - 1.0 for p in r["s"]]

    def tokens(r):
        out = last_of_steps(r, renormed(r))
        return [*out[:-1], out[-1] + r["ok"]]

    agrees(built("ppr-renorm", S, OK), rows, lambda g: map(renormed, g))
    agrees(gd.methods.ppr.ppr_tokens(S, OK, TOKEN), rows, lambda g: map(tokens, g))


# ---- iStar ----


@SEEDS
def test_istar(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"new": (n := draw.many(draw.log, 1)), "old": [draw.log() for _ in n], "ok": draw.bit()})
    step = [C("new", axis="step"), C("old", axis="step")]

    def reference(group):
        rewards = [[0.05 * (a - b) for a, b in zip(r["new"], r["old"], strict=True)] for r in group]
        steps = cut(standard(flat(rewards)), map(len, rewards))
        episode = standard(column(group, "ok"))
        return [
            [None if e is None or s is None else e + s for s in part] for e, part in zip(episode, steps, strict=True)
        ]

    agrees(built("implicit-step-reward-istar", OK, *step), rows, reference)


# ---- PiCA ----


@SEEDS
def test_pica(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {**(t := draw.tokened(6)), "s": [draw.unit() for _ in t["steps"]], "ok": draw.bit()})

    def steps(r):
        return [0.3 * ((1.0 - p - 0.55) - (0.0 if i < 3 else 0.3 * 1.5 ** (i - 2))) for i, p in enumerate(r["s"])]

    def paid(r, values):
        return [*values[:-1], values[-1] + 1.5 * r["ok"]]

    agrees(built("pica-pivot-credit", S, OK), rows, lambda g: (paid(r, steps(r)) for r in g))
    on_tokens = built("pica-pivot-credit", S, OK, TOKEN)
    agrees(on_tokens, rows, lambda g: (paid(r, last_of_steps(r, steps(r))) for r in g))


# ---- TRACE ----


@SEEDS
def test_trace(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.log, 0, 5), "start": draw.log(), "ok": draw.bit()})

    def turns(r, a):
        d = [0.1 - x for x in [r["start"], *r["s"]]]
        value = [math.log(d[0] / x) for x in d]
        delta = [y - x for x, y in itertools.pairwise(value)]
        assert sum(delta) == pytest.approx(math.log(d[0] / d[-1]))
        out = []
        for t in range(len(delta)):
            ahead = [(0.8**j, delta[t + j]) for j in range(3) if t + j < len(delta)]
            local = sum(w * x for w, x in ahead) / sum(w for w, _ in ahead)
            if t + 3 >= len(delta):
                local += 2.0 * 0.8 ** (len(delta) - t) * a
            out.append(a + 0.2 * local)
        return out

    def reference(group):
        episode = standard(column(group, "ok"))
        return [[None] * len(r["s"]) if a is None else turns(r, a) for r, a in zip(group, episode, strict=True)]

    agrees(built("trace-turn-credit", OK, S, C("start")), rows, reference)


# ---- VPR ----


@SEEDS
def test_vpr_by_group_and_by_batch(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.unit(), "ok": draw.bit()}, prompts=4)
    agrees(built("vpr", R, OK), rows, lambda g: standard([r["r"] + r["ok"] for r in g], eps=1e-8))
    groups = [list(g) for _, g in itertools.groupby(rows, key=lambda r: r["prompt"])]
    centred = {
        g[0]["prompt"]: [r["r"] - fmean(column(g, "r")) for r in g]
        for g in groups
        if len(g) > 1 and pstdev(column(g, "r")) > 1e-8
    }
    batch = flat(centred.values())

    def reference(group):
        if len(group) < 2:
            return [None]
        own = centred.get(group[0]["prompt"], [])
        return [(c - fmean(batch)) / (pstdev(batch) + 1e-8) for c in own] or [0.0] * len(group)

    agrees(built("vpr", R, mode="mean_then_batch_whiten"), rows, reference, tolerance=1e-6)


@SEEDS
def test_vpr_by_turn(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.unit, 1, 4), "ok": draw.bit()}, prompts=4)
    paid = [[*r["s"][:-1], r["s"][-1] + r["ok"]] for r in rows]

    def scored(x, t):
        turn = [p[t] for p in paid if len(p) > t]
        pool = turn if len(turn) >= 4 else flat(paid)
        return 0.0 if min(pool) == max(pool) else (x - fmean(pool)) / (pstdev(pool) + 1e-8)

    expected = iter([[scored(x, t) for t, x in enumerate(p)] for p in paid])
    agrees(built("vpr", S, OK, mode="turn"), rows, lambda g: [next(expected) for _ in g])


# ---- LeTS ----


def jaccard(a, b):
    return len(set(a) & set(b)) / len(set(a) | set(b)) if a or b else 0.0


def matched(mine, other):
    """The greatest sum of matched similarities, over every assignment."""
    wide = [*other, *[None] * len(mine)]
    return max(
        ([0.0 if o is None else jaccard(d, o) for d, o in zip(mine, choice, strict=True)]
         for choice in itertools.permutations(wide, len(mine))), key=sum,
    )  # fmt: skip


def worths(row, group):
    """What the searches of a rollout are worth; only the sum is determined for matched ones."""
    score, best = row["score"], max(r["score"] for r in group)
    docs = row["docs"]
    if score == 0.0:
        return [0.0] * len(docs)
    if score == best:
        return [1.0 - max((jaccard(d, e) for e in docs[:t]), default=0.0) for t, d in enumerate(docs)]
    better = [r["docs"] for r in group if r["score"] > score]
    return max((matched(docs, o) for o in better), key=sum) if best == 1.0 else [0.0] * len(docs)


@SEEDS
def test_lets(seed):
    draw = Draw(seed)

    def row():
        docs = [draw.sample("abcdef", draw.randint(0, 3)) for _ in range(draw.randint(0, 3))]
        f1, form = draw.choice([0.0, 0.5, 1.0]), float(draw.random() < 0.8)
        score = 0.1 + 0.9 * f1 if form else 0.0
        return {"docs": docs, "s": [0.0] * (len(docs) + 1), "f1": f1, "form": form, "score": score,
                **document_columns(docs)}  # fmt: skip

    rows = draw.rows(row, most=4)
    worth = gd.methods.lets.search_worth(
        C("document", axis="document"), C("turn", axis="document"), lets_outcome(C("f1"), C("form")), S
    )
    agrees(worth.sum(to="rollout"), rows, lambda g: [sum(worths(r, g)) for r in g])

    def advantage(row, a, p):
        if a is None:
            return [None] * len(row["s"])
        flat_p = len(p) < 2 or min(p) == max(p)
        z = [0.0 if flat_p else (x - fmean(p)) / (stdev(p) + 1e-6) for x in p]
        return [a * max(0.0, 1.0 + x if a >= 0 else 1.0 - x) for x in z] + [a]

    def reference(group):
        episode = standard(column(group, "score"), eps=1e-6, sample=True)
        scored = worth.score(group).scores
        p = cut([float(v) for v in scored.values], [len(r["s"]) for r in group])
        return [advantage(r, a, x[:-1]) for r, a, x in zip(group, episode, p, strict=True)]

    full = built(
        "lets", lets_outcome(C("f1"), C("form")), C("document", axis="document"), C("turn", axis="document"), S
    )
    agrees(full, rows, reference)


# ---- CAPO ----


@SEEDS
@pytest.mark.parametrize(("vote", "need"), [("intersection", 4), ("majority", 2), ("union", 1)])
def test_capo(seed, vote, need):
    draw = Draw(seed)
    rows = draw.rows(lambda: {**(t := draw.tokened()), "s": [draw.randint(0, 4) for _ in t["steps"]], "ok": draw.bit()})

    def reference(group):
        tokens = [per_token(r, [2.0 * r["ok"] - 1.0 * (n >= need) for n in r["s"]]) for r in group]
        return cut(standard(flat(tokens), eps=1e-6), map(len, tokens))

    agrees(built("capo", OK, S, TOKEN, vote=vote), rows, reference)
    agrees(voted_wrong(S, critiques=4, vote=vote), rows, lambda g: [[float(n >= need) for n in r["s"]] for r in g])


# ---- CorVer ----


@SEEDS
def test_corver(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        **(t := draw.tokened()), "n": [draw.choice([0, 1, 9, 10, 50]) for _ in t["steps"]],
        "pair": [draw.bit() for _ in t["steps"]], "r": draw.unit(),
    })  # fmt: skip

    def tokens(r):
        reward = [
            0.0 if not p else -0.1 if n == 0 else 0.05 if n < 10 else 0.1
            for n, p in zip(r["n"], r["pair"], strict=True)
        ]
        return per_token(r, [r["r"] + x for x in reward])

    agrees(built("corver", R, C("n", axis="step"), C("pair", axis="step"), TOKEN), rows, lambda g: map(tokens, g))


# ---- DG-PRM ----


@SEEDS
def test_dg_prm(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"a": (a := draw.many(draw.unit)), "b": [draw.unit() for _ in a]})

    def reference(group):
        points = flat([list(zip(r["a"], r["b"], strict=True)) for r in group])

        def beaten(i, left):
            return any(
                all(x >= y for x, y in zip(points[j], points[i], strict=True)) and points[j] != points[i] for j in left
            )

        front, left, level = {}, set(range(len(points))), 0
        while left:
            now = {i for i in left if not beaten(i, left)}
            front |= dict.fromkeys(now, level)
            left, level = left - now, level + 1
        return cut([1.0 / (1.0 + front[i]) for i in range(len(points))], [len(r["a"]) for r in group])

    both = [C("a", axis="step"), C("b", axis="step")]
    agrees(built("dg-prm", both), rows, reference)
    agrees(built("dg-prm", both, scalar="mean"), rows, lambda g: [
        [(a + b) / 2 for a, b in zip(r["a"], r["b"], strict=True)] for r in g
    ])  # fmt: skip
