"""Methods over trees, rewrites and formulas against their formulas in plain Python, on random rollouts."""

from __future__ import annotations

import math
from statistics import fmean

import guerdon as gd
from guerdon.methods.diver import unique_share
from guerdon.methods.herl import candidates, chosen_rewrites
from guerdon.methods.rest_mcts import rest_mcts_value
from plain_python import SEEDS, Draw, agrees, column, cut, flat

C = gd.column
OK, R, S = C("ok"), C("r"), C("s", axis="step")
built = gd.method


# ---- trees, rewrites, formulas ----


def tree_rows(draw):
    """Paths of up to three steps in a tree of two branches; a node's number says the whole path to it."""

    def row():
        path = draw.many(lambda: draw.randint(1, 2), 1, 3)
        return {"s": [int("".join(map(str, path[: t + 1]))) for t in range(len(path))], "ok": draw.bit()}

    return draw.rows(row, most=7)


def below(group, node):
    """The rollouts that pass a node; the root is 0."""
    return [r for r in group if node == 0 or node in r["s"]]


def children(group, node):
    depth = len(str(node)) if node else 0
    return sorted({r["s"][depth] for r in below(group, node) if len(r["s"]) > depth})


def node_mean(group, node):
    """The mean over a node's children and the leaves that end on it."""
    ends = [r["ok"] for r in below(group, node) if node and r["s"][-1] == node]
    return fmean([*ends, *(node_mean(group, c) for c in children(group, node))])


@SEEDS
def test_treerpo(seed):
    rows = tree_rows(Draw(seed))

    def advantage(group, node):
        siblings = [node_mean(group, c) for c in children(group, node // 10)]
        if max(siblings) - min(siblings) < 0.1:
            return 0.0
        mu = fmean(siblings)
        return (node_mean(group, node) - mu) / math.sqrt(mu * (1 - mu) + 1e-6)

    agrees(built("treerpo-step-group-advantage", OK, S), rows, lambda g: [[advantage(g, n) for n in r["s"]] for r in g])


@SEEDS
def test_rest_mcts(seed):
    rows = tree_rows(Draw(seed))

    def needed(group, node):
        """Stored number: 1 at a right leaf, else one more than the best child's; None without a right leaf below."""
        if any(r["ok"] and r["s"][-1] == node for r in group):
            return 1
        found = [n + 1 for c in children(group, node) if (n := needed(group, c)) is not None]
        return min(found) if found else None

    def values(group, r):
        v, still, out = 0.0, needed(group, 0), []
        for node in r["s"]:
            own = needed(group, node)
            if own is None and still is None:
                return [None] * len(r["s"])
            still = still if own is None else own
            v = max(v + (1 - v) / still * (1 if own is not None else -1), 0.0)
            out.append(v)
        return out

    agrees(rest_mcts_value(OK, S), rows, lambda g: [values(g, r) for r in g])


@SEEDS
def test_herl(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"r": draw.unit(), "w": draw.many(draw.unit)})

    def chosen(group):
        best = max(column(group, "r"))
        return [float(best < 1.0 and r["r"] == best) for r in group]

    def shaped(group):
        return [
            r["r"] + (0.05 * (max(r["w"]) - r["r"]) if c and r["w"] else 0.0)
            for r, c in zip(group, chosen(group), strict=True)
        ]

    def replaced(group):
        rewrites = flat([r["w"] for r in group])
        best = max(column(group, "r"))
        order = sorted((i for i, x in enumerate(rewrites) if x >= best), key=lambda i: (-rewrites[i], i))[:2]
        return cut([float(i in order) for i in range(len(rewrites))], [len(r["w"]) for r in group])

    rewrites = C("w", axis="rewrite")
    agrees(candidates(R), rows, chosen)
    agrees(built("herl-hindsight-experience-rubrics", R, rewrites), rows, shaped)
    agrees(chosen_rewrites(rewrites, R, top=2), rows, replaced)


@SEEDS
def test_diver(seed):
    draw = Draw(seed)
    rows = draw.rows(lambda: {"f": draw.many(lambda: draw.randint(1, 5)), "ok": draw.bit(), "bleu": draw.unit()})

    def unique(group):
        sets = [set(r["f"]) for r in group]
        if len(sets) < 2:
            return [None]
        return [len(s - set().union(*sets[:i], *sets[i + 1 :])) / len(s) if s else 0.0 for i, s in enumerate(sets)]

    def mixed(group):
        return [
            0.0 if not r["ok"] else None if d is None else 1 + 0.7 * min(d, 0.42) + 0.3 * (1 - max(r["bleu"], 0.09))
            for r, d in zip(group, unique(group), strict=True)
        ]

    def equal(group):
        decay, acc = (1 + math.cos(math.pi * 0.25)) / 2, fmean(column(group, "ok"))
        return [
            0.0 if not r["ok"] else None if d is None else 1 + min(d, 0.68) * acc * decay
            for r, d in zip(group, unique(group), strict=True)
        ]

    share = unique_share(C("f", axis="formula"))
    agrees(share, rows, unique)
    mix = built("diver-global-diversity-reward", OK, share, C("bleu"), equation_weight=0.7, text_weight=0.3)
    agrees(mix, rows, mixed)
    agrees(built("diver-global-diversity-reward", OK, share, step=25.0, mode="eq"), rows, equal)
