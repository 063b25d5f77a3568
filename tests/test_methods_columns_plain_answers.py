"""Methods over answers, searches, rewrites and trees against their formulas in plain Python, on random rollouts."""

from __future__ import annotations

import math
from statistics import fmean, pstdev

import pytest

import guerdon as gd
from guerdon.methods.acre import option_shuffle_consistency
from guerdon.methods.admire import milestone_hits
from guerdon.methods.csr import answer_confidence, auroc, calibration_error
from guerdon.methods.salmon import principle_label
from guerdon.methods.scope_rl import needs_scaffold, process_quality
from guerdon.methods.search_p1 import path_score
from guerdon.methods.self_aligned import brevity, brevity_if_right, perplexity
from guerdon.methods.subsearch import format_layer
from guerdon.methods.urpo import referee_agreement
from plain_python import SEEDS, Draw, agrees, column

C = gd.column
OK, R, S = C("ok"), C("r"), C("s", axis="step")
built = gd.method


# ---- reducers, BiRM ----

REDUCERS = {
    "mean": fmean, "min": min, "max": max, "last": lambda p: p[-1],
    "sum_log": lambda p: sum(math.log(max(x, 1e-6)) for x in p),
    "product": lambda p: math.prod(max(x, 1e-6) for x in p),
    "sum_logit": lambda p: sum(math.log(x / (1 - x)) for x in (min(max(y, 1e-6), 1 - 1e-6) for y in p)),
}  # fmt: skip


@SEEDS
@pytest.mark.parametrize("reducer", REDUCERS)
def test_reducers_of_step_scores(seed, reducer):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(draw.unit)})
    method = built("reinforce-step-by-step", S, reducer=reducer)
    agrees(method, rows, lambda g: [REDUCERS[reducer](r["s"]) if r["s"] else None for r in g], tolerance=1e-7)


@SEEDS
@pytest.mark.parametrize("agg", ["mean", "min", "max", "last"])
def test_birm(seed, agg):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": (s := draw.many(draw.unit, 1)), "v": [draw.unit() for _ in s]})
    method = built("birm", S, C("v", axis="step"), beta=1.5, agg=agg)
    agrees(method, rows, lambda g: [r["v"][-1] + 1.5 * REDUCERS[agg](r["s"]) for r in g])


# ---- Trade-R1, Router-R1, Search-P1, SubSearch ----


@SEEDS
def test_trade_r1(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.choice([0.0, draw.gauss(0, 1)]), "s": draw.unit()})
    agrees(built("trade-r1", R, C("s")), rows, lambda g: [
        r["r"] * (0.5 + r["s"]) if r["r"] > 0 else r["r"] * (2 - r["s"]) for r in g
    ])  # fmt: skip


def quantile(xs, q):
    at = q * (len(xs) - 1)
    low = sorted(xs)[int(at)]
    return low + (at - int(at)) * (sorted(xs)[min(int(at) + 1, len(xs) - 1)] - low)


@SEEDS
def test_router_r1(seed):
    draw = Draw(seed)
    rows = draw.rows(
        lambda: {"form": draw.bit(), "q": draw.unit(), "cost": draw.choice([0.0, 4.0, 9.0, draw.random()])}
    )
    u = [math.sqrt(r["cost"]) for r in rows]
    low, high = quantile(u, 0.05), quantile(u, 0.95)

    def one(r):
        share = 0.5 if high - low < 1e-8 else min(max((math.sqrt(r["cost"]) - low) / (high - low), 0.0), 1.0)
        return -1.0 if not r["form"] else 0.0 if r["q"] == 0 else 0.4 * r["q"] + 0.6 * (1 - share)

    agrees(built("router-r1", C("form"), C("q"), C("cost"), alpha=0.6), rows, lambda g: map(one, g))


@SEEDS
def test_search_p1(seed):
    draw = Draw(seed)
    rows = draw.rows(
        lambda: {
            "plan": draw.unit(),
            "n": (n := draw.randint(0, 4)),
            "act": (a := draw.randint(0, 5)),
            "done": draw.randint(0, min(n, a)),
            "ref": (m := draw.randint(0, 3)),
            "cov": draw.randint(0, min(m, a)),
            "ok": draw.bit(),
            "acc": draw.choice([0.0, 0.5, 1.0]),
            "why": draw.choice([0.0, 0.5, 0.8, 1.0]),
            "form": draw.bit(),
        }
    )

    def one(r):
        own = r["plan"] * r["done"] / r["n"] * r["done"] / r["act"] if r["n"] and r["act"] else 0.0
        ref = r["cov"] / r["ref"] * r["cov"] / r["act"] if r["ref"] and r["act"] else 0.0
        out = 1.0 if r["ok"] else 0.8 * r["acc"] + 0.2 * r["why"]
        return 0.3 * max(own, ref) + 0.6 * out + 0.1 * r["form"]

    path = path_score(*map(C, ("plan", "done", "n", "act", "cov", "ref")))
    agrees(built("search-p1", path, *map(C, ("ok", "acc", "why", "form"))), rows, lambda g: map(one, g))


@SEEDS
def test_subsearch(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "ok": draw.bit(), "ans": (a := draw.many(lambda: draw.uniform(-0.2, 1.0))), "dec": [draw.unit() for _ in a],
        "valid": draw.bit(), "hit": draw.bit(), "said": draw.bit(),
    })  # fmt: skip

    def combined(r):
        ans, dec = (fmean(r[k]) if r[k] else 0.0 for k in ("ans", "dec"))
        return r["ok"] + 0.2 * (0.5 * ans + 0.5 * dec) * (1 - r["ok"])

    def layered(r):
        x, extra = combined(r), 0.1 * r["hit"]
        if not r["said"]:
            return 0.2 + extra if r["valid"] else 0.0
        if x > 0:
            return (min(1.0, x + 0.1) if r["hit"] else x) if r["valid"] else max(0.0, x - 0.2)
        return 0.2 + extra if r["valid"] else 0.1

    method = built("subsearch", OK, C("ans", axis="search"), C("dec", axis="search"))
    agrees(method, rows, lambda g: map(combined, g))
    agrees(format_layer(method, C("valid"), C("hit"), C("said")), rows, lambda g: map(layered, g))


# ---- confidence, support, scaffolds, milestones ----


@SEEDS
def test_progressive_confidence(seed):
    draw = Draw(seed)
    w = (0.5, 0.3, 0.1, -0.1, -0.3, -0.5)
    rows = draw.rows(lambda: {"c": [draw.unit() for _ in w], "r": draw.gauss(0, 1)})
    agrees(built("progressive-confidence-shaping", R, C("c", axis="checkpoint")), rows, lambda g: [
        r["r"] - sum(a * b for a, b in zip(r["c"], w, strict=True)) for r in g
    ])  # fmt: skip


@SEEDS
def test_faithrl_step(seed):
    draw = Draw(seed)

    def row():
        n = draw.randint(0, 6)
        return {
            "p": [draw.choice([0.2, 0.5, 0.9]) for _ in range(n)],
            "end": [float(draw.random() < 0.2) for _ in range(n)],
            "sim": [0.0, *[draw.choice([0.5, 0.95, 0.99]) for _ in range(n - 1)]][:n],
            "ok": draw.bit(),
            "near": [0, *[draw.randrange(t) for t in range(1, n)]][:n],
            "f1": draw.unit(),
            "q": draw.choice([0.1, 0.0, 0.4]),
        }

    rows = draw.rows(row)

    def sentences(r, level):
        hits, out = {}, []
        for t, (p, end, sim, near) in enumerate(zip(r["p"], r["end"], r["sim"], r["near"], strict=True)):
            b = 1.0 if p >= 0.5 and r["ok"] else -1.0
            if t and sim > 0.95:
                hits[near] = hits.get(near, 0) + 1
                b = max(0.0, b - 0.2 * hits[near]) if b > 0 else b
            out.append(max(-1.0, (level if end else b) - (r["q"] if r["q"] > 0.1 else 0.0)))
        return out

    def reference(group):
        f = [r["f1"] if r["ok"] else 0.0 for r in group]
        spread = max(f) - min(f)
        level = [2 * (x - min(f)) / spread - 1 if spread else 1.0 if x > 0 else -1.0 for x in f]
        return [sentences(r, x) for r, x in zip(group, level, strict=True)]

    columns = [OK, C("p", axis="step"), C("end", axis="step"), C("f1"), C("q"), C("sim", axis="step"), C("near", axis="step")]  # fmt: skip  # noqa: E501
    agrees(built("faithrl-step", *columns), rows, reference)


@SEEDS
def test_scope_rl(seed):
    draw = Draw(seed)
    rows = draw.rows(
        lambda: {"sub": draw.many(draw.bit), "ok": draw.bit(), "lab": draw.many(lambda: draw.randint(0, 4))}
    )

    def scaffold(r):
        m = len(r["sub"])
        prefix = [math.prod(r["sub"][: i + 1]) for i in range(m)]
        return 0.5 * sum(prefix) / m + 0.5 * prefix[-1] * r["ok"] if m else r["ok"]

    def quality(r):
        n = len(r["lab"])
        if not (r["ok"] and n):
            return 0.0
        penalties = math.prod(1 - 0.5 * r["lab"].count(k) / n for k in range(1, 5))
        return r["lab"].count(0) / n * penalties / (1 + 0.1 * math.log(n + 1))

    agrees(built("scope-rl", C("sub", axis="sub"), OK), rows, lambda g: map(scaffold, g))
    agrees(process_quality(OK, C("lab", axis="step")), rows, lambda g: map(quality, g))
    agrees(needs_scaffold(OK) + OK * 0.0, rows, lambda g: [float(fmean(column(g, "ok")) < 0.5)] * len(g))


@SEEDS
def test_admire(seed):
    draw = Draw(seed)

    def row():
        steps, k = draw.randint(1, 5), draw.randint(0, 3)
        return {"s": [0.0] * steps, "sim": [draw.random() for _ in range(steps * k)], "k": k, "ok": draw.bit()}

    rows = draw.rows(row)

    def hits(r):
        pointer, out = 0, []
        for t in range(len(r["s"])):
            hit = pointer < r["k"] and r["sim"][t * r["k"] + pointer] >= 0.4
            pointer += hit
            out.append(float(hit))
        return out

    def steps(r):
        hit = hits(r)
        floor = 0.0 if r["ok"] or not r["k"] else 0.2 * sum(hit) / r["k"]
        return [floor + 0.5 * h + (r["ok"] if t == len(hit) - 1 else 0.0) for t, h in enumerate(hit)]

    walked = milestone_hits(C("sim", axis="match"), S, threshold=0.4)
    agrees(walked, rows, lambda g: map(hits, g))
    agrees(built("admire-milestone", OK, walked, C("k")), rows, lambda g: map(steps, g))


# ---- likelihood of one's own text ----


@SEEDS
def test_self_aligned(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "a": draw.many(draw.log, 1), "qa": draw.many(draw.log, 1), "ok": draw.bit(), "n": draw.randint(1, 4),
    }, most=7)  # fmt: skip

    def one(r):
        alone, given = (math.exp(-fmean(r[k])) for k in ("a", "qa"))
        return r["ok"] + 0.2 * max((alone - given) / (alone + 1e-9), -1.0)

    ppl = [perplexity(C(n, axis="word")) for n in ("a", "qa")]
    ppl[1] = perplexity(C("qa", axis="other_word"))
    agrees(built("self-aligned-reward", OK, *ppl), rows, lambda g: map(one, g))

    def shorter(group):
        mean = fmean(column(group, "n"))
        return [-min(1.0, max(-1.0, (r["n"] - mean) / r["n"])) for r in group]

    def shorter_if_right(group):
        right = [r["n"] for r in group if r["ok"]]
        if len(right) < 2:
            return [0.0] * len(group)
        z = [(r["n"] - fmean(right)) / (pstdev(right) + 1e-5) for r in group]
        return [-r["ok"] * 2 * (1 / (1 + math.exp(-x)) - 0.5) for r, x in zip(group, z, strict=True)]

    agrees(brevity(C("n")), rows, shorter)
    agrees(brevity_if_right(C("n"), OK), rows, shorter_if_right)


# ---- options, clusters, referees, receivers ----


@SEEDS
def test_acre(seed):
    draw = Draw(seed)

    def row():
        m = draw.randint(2, 4)
        perm = draw.sample(range(m), m)
        while perm == sorted(perm):
            perm = draw.sample(range(m), m)
        return {"a": draw.randint(-1, m - 1), "b": draw.randint(-1, m - 1), "perm": perm, "gold": draw.randrange(m)}

    rows = draw.rows(row)

    def content(r):
        return r["a"], r["perm"][r["b"]] if r["b"] >= 0 else -1

    def one(r):
        first, second = (x == r["gold"] for x in content(r))
        return first + {(True, True): 1.0, (True, False): 0.5, (False, True): 0.0, (False, False): 0.0}[first, second]

    columns = [C("a"), C("b"), C("perm", axis="option")]
    agrees(built("acre-option-shuffle-consistency", *columns, C("gold")), rows, lambda g: map(one, g))
    agrees(option_shuffle_consistency(*columns), rows, lambda g: [
        float(content(r)[0] == content(r)[1] >= 0) for r in g
    ])  # fmt: skip


@SEEDS
def test_csr(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"k": draw.randint(0, 2), "ok": draw.bit()}, most=7)

    def reference(group):
        votes = column(group, "k")
        s = [(votes.count(v) - 1) / (len(votes) - 1) if len(votes) > 1 else 0.0 for v in votes]
        return [1 + 0.5 * x if r["ok"] else -0.5 * x for r, x in zip(group, s, strict=True)]

    agrees(built("csr-semantic-calibration", OK, C("k")), rows, reference)
    agrees(answer_confidence(C("k")), rows, lambda g: [column(g, "k").count(r["k"]) / len(g) for r in g])
    conf, right = [draw.random() for _ in rows], column(rows, "ok")
    bins = [[i for i, c in enumerate(conf) if k / 10 < c <= (k + 1) / 10] for k in range(10)]
    ece = sum(len(b) / len(conf) * abs(fmean(right[i] for i in b) - fmean(conf[i] for i in b)) for b in bins if b)
    assert calibration_error(conf, right) == pytest.approx(ece)
    pairs = [(x > y) + 0.5 * (x == y) for i, x in enumerate(conf) for j, y in enumerate(conf) if right[i] > right[j]]
    assert auroc(conf, right) == pytest.approx(fmean(pairs) if pairs else math.nan, nan_ok=True)


@SEEDS
def test_urpo(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "said": (s := draw.many(lambda: draw.randint(1, 3), 2)), "gold": [draw.randint(1, 4) for _ in s],
        "kind": draw.randint(0, 2), "ok": draw.bit(), "own": draw.randint(1, 9),
    })  # fmt: skip

    def agreement(r):
        n = len(r["said"])
        signs = [(r["said"][i] - r["said"][j]) * (r["gold"][i] - r["gold"][j]) for i in range(n) for j in range(i)]
        return (sum((x > 0) - (x < 0) for x in signs) / len(signs) + 1) / 2

    referee = referee_agreement(C("said", axis="answer"), C("gold", axis="answer"))
    agrees(built("urpo-player-referee", C("kind"), OK, referee, C("own")), rows, lambda g: [
        [r["ok"], agreement(r), r["own"]][r["kind"]] for r in g
    ])  # fmt: skip


@SEEDS
def test_craft_rltr_salmon_and_probes(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {
        "form": draw.bit(), "ans": draw.unit(), "cite": draw.unit(), "j": draw.many(draw.bit), "ok": draw.bit(),
        "cuts": draw.many(draw.bit, 1), "rm": draw.gauss(0, 1), "n": draw.randint(0, 2000), "late": draw.bit(),
        "logit": draw.gauss(0, 2), "p": draw.many(lambda: draw.choice([-2.0, -1.0, 0.0, 1.0, 2.0]), 1),
    })  # fmt: skip

    def judged(r):
        asked = r["form"] and r["j"]
        return 0.1 * r["form"] + 0.4 * r["ans"] + 0.2 * r["cite"] + (0.3 * fmean(r["j"]) if asked else 0.0)

    parts = [C("form"), C("ans"), C("cite"), C("j", axis="question")]
    agrees(built("craft-answer-faithful-traces", *parts), rows, lambda g: map(judged, g))
    transfer = built("rltr-transfer-reward", OK, C("cuts", axis="cut"), C("form"))
    agrees(transfer, rows, lambda g: [r["ok"] + r["form"] + 0.5 * fmean(r["cuts"]) for r in g])
    agrees(built("salmon-principle-rm", C("rm"), C("n"), C("late")), rows, lambda g: [
        r["rm"] + 5 * min(r["n"] / 1024, 0.8) - 6 * r["late"] for r in g
    ])  # fmt: skip
    agrees(built("probe-penalised-reward", C("rm"), C("logit")), rows, lambda g: [
        r["rm"] - 0.5 / (1 + math.exp(-r["logit"])) for r in g
    ])  # fmt: skip

    def label(r):
        clear = [x for x in r["p"] if abs(x) == max(map(abs, r["p"]))]
        return float((clear[0] > 0) - (clear[0] < 0)) if min(clear) == max(clear) else 0.0

    agrees(principle_label(C("p", axis="principle")), rows, lambda g: map(label, g))
