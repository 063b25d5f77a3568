"""Methods over criteria, steps and modes against their formulas in plain Python, on random rollouts."""

from __future__ import annotations

import itertools
import math
from statistics import fmean, pstdev, stdev

import pytest

import guerdon as gd
from guerdon.methods.arena_t2i import checklist
from guerdon.methods.faithrl import modulated
from guerdon.methods.firm import firm_generation, firm_guarded, firm_quality
from guerdon.methods.pow3r import pow3r_factors
from plain_python import SEEDS, Draw, agrees, column, flat, standard

C = gd.column
OK, R, STEPS, ITEMS = C("ok"), C("r"), C("s", axis="step"), C("items", axis="item")
built = gd.method


def clip(x, low, high):
    return min(max(x, low), high)


# ---- rubrics and criteria: POW3R, gated aggregation, BPMN, Arena-T2I, FIRM ----


@SEEDS
def test_pow3r(seed):
    draw = Draw(seed)
    weights = {f"p{p}": [draw.choice([1.0, 2.0, 5.0]) for _ in range(4)] for p in range(3)}
    rows = draw.rows(lambda: {"s": [draw.choice([0.0, 1.0, 1.0, None]) for _ in range(4)], "kind": [0, 0, 1, 1]})
    for row in rows:
        row |= {"w": weights[row["prompt"]], "old": [1.0, 2.0, 0.5, 1.0]}

    def rewards(group, factors):
        for r in group:
            means = []
            for kind in (0, 1):
                heard = [j for j in range(4) if r["kind"][j] == kind and r["s"][j] is not None]
                total = sum(r["w"][j] * factors[j] for j in heard)
                means += [sum(r["w"][j] * factors[j] * r["s"][j] for j in heard) / total] if heard else []
            yield fmean(means) if means else None

    def factors(group):
        heard = [[r["s"][j] for r in group if r["s"][j] is not None] for j in range(4)]
        w, old, out = group[0]["w"], group[0]["old"], list(group[0]["old"])
        fresh = [j for j in range(4) if heard[j] and len(heard[j]) >= 0.75 * len(group)]
        v = [pstdev(x) ** 2 if x else 0.0 for x in heard]
        for kind in (0, 1):
            mine = [j for j in fresh if group[0]["kind"][j] == kind]
            usual = sum(w[j] * (v[j] + 0.01) for j in mine) / sum(w[j] for j in mine) if mine else 1.0
            for j in mine:
                wanted = clip(0.5 + 0.5 * (v[j] + 0.01) / usual, 0.25, 4.0) if any(v[i] for i in mine) else 1.0
                out[j] = clip(0.3 * old[j] + 0.7 * wanted, 0.25, 4.0)
        return out

    columns = [C(n, axis="criterion") for n in ("s", "w", "kind")]
    agrees(built("pow3r-policy-aware-rubric", *columns), rows, lambda g: rewards(g, [1.0] * 4))
    agrees(pow3r_factors(*columns, C("old", axis="criterion"), rate=0.7), rows, lambda g: [factors(g) for _ in g])
    later = built("pow3r-policy-aware-rubric", *columns, C("old", axis="criterion"))
    agrees(later, rows, lambda g: rewards(g, g[0]["old"]))


@SEEDS
def test_gated_aggregation(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {n: draw.unit() for n in "abcd"})

    def reward(r):
        floor = math.exp(fmean(math.log((r[n] + 0.05) / 1.05) for n in "ab"))
        return floor * (2 * r["c"] + r["d"]) / 3

    method = built("gated-aggregation", [C("a"), C("b")], [C("c"), C("d")], [2, 1], delta=0.05)
    agrees(method, rows, lambda g: map(reward, g))


@SEEDS
@pytest.mark.parametrize("weights", [None, (3, 1, 1)])
def test_bpmn(seed, weights):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), **{n: draw.unit() for n in "abc"}})
    w = weights or (1 / 3,) * 3
    method = built("bpmn-reward-composition", OK, [C(n) for n in "abc"], weights)
    agrees(method, rows, lambda g: [
        sum(k * r[n] for k, n in zip(w, "abc", strict=True)) if r["ok"] else -sum(w) for r in g
    ])  # fmt: skip


@SEEDS
@pytest.mark.parametrize("need", ["all", "any"])
def test_arena_t2i(seed, need):
    draw = Draw(seed)
    parents = [[], [0], [0], [1, 2]]
    rows = draw.rows(lambda: {"items": [draw.bit() for _ in range(4)], "r": draw.choice([0.0, 1.0, draw.gauss(0, 9)])})

    def faithful(r):
        v = []
        for answer, above in zip(r["items"], parents, strict=True):
            gate = [v[p] for p in above]
            v.append(answer * ((min if need == "all" else max)(gate) if gate else 1.0))
        return fmean(v)

    def sums(group):
        one = standard([faithful(r) for r in group], eps=1e-6, sample=True)
        other = standard(column(group, "r"), eps=1e-6, sample=True)
        return [None if a is None else a + 2 * b for a, b in zip(one, other, strict=True)]

    def whitened(group):
        for total in sums(group):
            if total is None or len(known) < 2:
                yield None
            else:
                yield 0.0 if min(known) == max(known) else (total - fmean(known)) / stdev(known)

    every = flat(sums(list(g)) for _, g in itertools.groupby(rows, key=lambda r: r["prompt"]))
    known = [x for x in every if x is not None]
    faith = checklist(ITEMS, parents=parents, need=need)
    agrees(faith, rows, lambda g: map(faithful, g))
    method = built("arena-t2i-hard-checklist", faith, {"looks": R}, {"faithful": 1, "looks": 2})
    agrees(method, rows, whitened, tolerance=1e-7)


@SEEDS
def test_firm(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.unit(), "r": draw.unit(), **{n: draw.randint(1, 5) for n in "abc"}})
    agrees(built("firm-base-bonus", OK, R), rows, lambda g: [r["ok"] * (0.6 + 0.4 * r["r"]) for r in g])
    agrees(firm_generation(OK, R), rows, lambda g: [r["ok"] * (0.4 + 0.6 * r["r"]) for r in g])
    worst = firm_quality((C("a"), C("b"), C("c")))
    agrees(worst, rows, lambda g: [(min(r["a"], r["b"], r["c"]) - 1) / 4 for r in g])
    total = firm_quality(total=C("a") + C("b") + C("c"))
    agrees(total, rows, lambda g: [(r["a"] + r["b"] + r["c"] - 3) / 12 for r in g])
    agrees(firm_guarded(C("a"), C("b")), rows, lambda g: [
        0.5 * (r["a"] - 1) / 4 + (0.0 if r["a"] <= 2 else 0.5 * (r["b"] - 1) / 4) for r in g
    ])  # fmt: skip


# ---- steps, tasks, modes: PSPO, CaRL, FaithRL, SSL, routing, pacing ----


def ramp(s, t):
    if t <= 4:
        return s * math.exp(0.5 * t)
    base, blend, late = s * math.exp(2), 1 / (1 + math.exp(-10 * (t - 4))), 0.1 * (t - 4)
    rate = 1 if s > 0.88433 else -1 if 0 < s < 0.2 else (s - 0.21159) / 0.88433
    return base * (1 - blend) + blend * base * math.exp(late * rate)


@SEEDS
@pytest.mark.parametrize("form", ["released", "weibull"])
def test_pspo(seed, form):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"s": draw.many(lambda: draw.choice([0.0, 0.1, 0.9, 1.0, draw.random()]), most=7)})

    def reward(r):
        n = len(r["s"])
        if n <= 1:
            return None if n == 0 else 0.0
        m = math.prod(r["s"]) ** (1 / n)
        if form == "released":
            return m * ramp(m, n)
        return m * 10.735 * (1.5 / 8) * (n / 8) ** 0.5 * math.exp(-((n / 8) ** 1.5))

    agrees(built("pspo-wrs", STEPS, form=form), rows, lambda g: map(reward, g), tolerance=1e-7)


@SEEDS
def test_carl(seed):
    draw = Draw(seed)

    def make():
        path = draw.many(lambda: draw.randint(0, 9) * 10.0, 1)
        return {"s": path, "f": [draw.unit() for _ in path], "hit": [float(draw.random() < 0.2) for _ in path]}

    def earned(r):
        best, over = 0.0, False
        for x, factor, hit in zip(r["s"], r["f"], r["hit"], strict=True):
            yield 0.0 if over else max(0.0, x - best) * factor - hit
            best, over = max(best, x), over or hit == 1

    method = built("carl-simple-reward", STEPS, [C("f", axis="step")], C("hit", axis="step"))
    agrees(method, draw.rows(make), lambda g: [list(earned(r)) for r in g])


@SEEDS
def test_faithrl(seed):
    draw = Draw(seed)

    def make():
        steps = draw.many(draw.bit, 1)
        bits = {n: draw.bit() for n in ("ok", "idk", "able")}
        return {**bits, "r": draw.gauss(0, 1), "s": steps, "end": [float(i == 2) for i in range(len(steps))]}

    def reward(r):
        if not r["able"]:
            return 0.3 if r["idk"] else -0.6
        return 0.0 if r["idk"] else 0.3 if r["ok"] else -0.6

    def shared(r):
        agree = [(r["r"] > 0) == bool(good) for good in r["s"]]
        return [r["r"] * (1 if same or end else 0.75) for same, end in zip(agree, r["end"], strict=True)]

    rows = draw.rows(make)
    method = built("faithrl-geometric", OK, C("idk"), C("able"), base_correct=0.6, base_wrong=0.3)
    agrees(method, rows, lambda g: map(reward, g))
    agrees(modulated(R, STEPS, C("end", axis="step")), rows, lambda g: map(shared, g))


@SEEDS
def test_sweet_spot_learning(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"ok": draw.bit(), "s": draw.many(draw.unit)})

    def reward(r):
        if not r["s"]:
            return None
        mean = fmean(r["s"])
        return r["ok"] + 0.5 * (0.0 if mean <= 0 or mean < 0.1 else max(math.ceil(4 * mean - 1e-9), 1) / 4)

    agrees(built("ssl-tiered-reward", OK, STEPS, floor=0.1), rows, lambda g: map(reward, g))


@SEEDS
def test_routing_by_mode(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"mode": draw.randint(0, 3), **{n: draw.gauss(0, 1) for n in "abcd"}})

    def total(r):
        own = {0: 0.0, 1: 2 * r["b"] + r["c"], 2: r["d"]}
        return 0.5 * r["a"] + own[r["mode"]] if r["mode"] in own else None

    modes = [{}, {"b": C("b"), "c": C("c")}, {"d": C("d")}]
    method = built("gait-conditioned-reward-routing", C("mode"), {"a": C("a")}, modes, {"a": 0.5, "b": 2.0})
    agrees(method, rows, lambda g: map(total, g))


@SEEDS
def test_self_paced_weights_over_batches(seed):
    draw, session, competence = Draw(seed), gd.Session(), 0.0
    method = built("self-paced-grpo-reward-curriculum", [C(n) for n in "abc"], rate=0.4, floor=0.05)
    for _ in range(4):
        rows = draw.rows(lambda: {n: draw.unit() for n in "abc"})
        g = [math.exp(-((competence - mu) ** 2) / (2 * 0.25**2)) for mu in (0.0, 0.5, 1.0)]
        w = [0.05 + 0.85 * x / sum(g) for x in g]
        got = method.score(rows, session=session).values
        assert got == pytest.approx([sum(k * r[n] for k, n in zip(w, "abc", strict=True)) for r in rows])
        lead = "abc"[max(range(3), key=lambda j: w[j])]
        competence = max(competence, 0.6 * competence + 0.4 * fmean(column(rows, lead)))
        assert next(iter(session.state.values())) == {"competence": pytest.approx(competence)}
