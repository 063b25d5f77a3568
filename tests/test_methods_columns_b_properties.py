"""What holds for every method of these: finite, in range, blind to order and to other prompts, holes stay holes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import guerdon as gd
from guerdon import shape
from guerdon.methods import find
from guerdon.methods.progressive_confidence import is_progressive
from guerdon.methods.specbench import gap_bound, gap_error
from guerdon.methods.subsearch import accuracy_gate, format_layer, intermediate_weight
from guerdon.spec import dump_spec, load_spec
from shape_strategies import listed, same

KINDS = {
    "u": ([0.0, 0.1, 0.25, 0.5, 0.97, 1.0], (0, 1)), "b": ([0.0, 1.0], (0, 1)),
    "x": ([-1.7e308, -1e6, -1.0, 0.0, 0.3, 150.0, 1e6, 1.7e308], None), "i": ([-1.0, 0.0, 0.0, 1.0, 2.0, 3.0], None),
}  # fmt: skip
AXES = {"step": 3, "token": 4, "test": 3, "hidden": 2, "checkpoint": 6, "option": 3, "rewrite": 2, "question": 2}
AXES |= {"formula": 3, "search": 2}
RAGGED = ("step", "token", "test", "hidden", "rewrite", "question", "formula", "search")
CLUSTERS = shape.mutual_clusters(gd.column("opponent_b", axis="opponent", range=(0, 1)))


def c(kind, axis="rollout"):
    return gd.column(kind if axis == "rollout" else f"{axis}_{kind}", axis=axis, range=KINDS[kind][1])


PERMUTED = gd.column("option_p", axis="option")
BUILT = {
    "reward-sql": [(c("u", "step"),), (c("u", "step"), c("b"))],
    "birm": [(c("u", "step"), c("x", "step"))],
    "trade-r1": [(c("x"), c("u"))],
    "relc": [(c("x"), c("b", "token"), c("b", "token"))],
    "faithrl-step": [
        (c("b"), c("u", "step"), c("b", "step"), c("u"), c("u")),
        (c("b"), c("u", "step"), c("b", "step"), c("u"), c("u"), c("u", "step"), c("i", "step")),
    ],
    "progressive-confidence-shaping": [(c("x"), c("u", "checkpoint"))],
    "subsearch": [
        (c("b"), c("u", "search"), c("u", "search")),
        (c("b"), c("x", "search"), c("u", "search"), intermediate_weight(c("x"))),
    ],
    "acre-option-shuffle-consistency": [(c("i"), c("i"), PERMUTED, c("i"), c("u"))],
    "craft-answer-faithful-traces": [(c("b"), c("u"), c("u"), c("b", "question"))],
    "probe-penalised-reward": [(c("x"), c("x"))],
    "herl-hindsight-experience-rubrics": [
        (c("u"), c("u", "rewrite")),
        (c("u"), c("u", "rewrite"), c("b", "token")),
    ],
    "rltr-transfer-reward": [(c("b"), c("b"), c("u")), (c("b"), c("b", "question"))],
    "csr-semantic-calibration": [(c("b"), c("i")), (c("b"), CLUSTERS)],
    "diver-global-diversity-reward": [(c("b"), c("u"), c("u"), c("x"))],
    "implicit-step-reward-istar": [(c("b"), c("x", "step"), c("u", "step"))],
    "pica-pivot-credit": [(c("u", "step"), c("b"))],
    "trace-turn-credit": [
        (c("b"), -c("u", "step"), -c("u")),
        (c("b"), -c("u", "step"), -c("u"), c("b", "step")),
    ],
    "capo": [(c("b"), c("b", "step"))],
    "red-redistribution": [(c("x", "token"), c("x"))],
    "t-reg": [(c("x", "token"), c("x", "token"))],
    "taco-dapr-ogar": [
        (c("b"), c("b", "step"), c("b", "step")),
        (c("b"), c("b", "step"), c("u", "step"), c("b", "step")),
    ],
    "treerpo-step-group-advantage": [(c("b"), gd.column("step_node", axis="step"))],
    "rest-mcts-star": [(c("b"), gd.column("step_node", axis="step"))],
    "reinforce-step-by-step": [(c("u", "step"),)],
    "verpo-dense-test-reward": [
        (c("b", "test"),),
        (c("b", "test"), c("i", "test"), gd.column("test_turn", axis="test"), c("u", "step")),
    ],
    "specbench-gap": [(c("b", "test"), c("b", "hidden"))],
}
CASES = {f"{key}-{i}": (key, parts) for key, several in BUILT.items() for i, parts in enumerate(several)}
PARTS = {
    "gate": accuracy_gate(c("u") * 0.1 + 0.05, c("b")),
    "layer": format_layer(c("u"), c("b"), c("b"), c("b"), monotone=True),
    "progressive": is_progressive(c("u", "checkpoint")),
    "gap error": gap_error(c("b", "test"), c("b", "hidden")),
    "gap bound": gap_bound(c("b", "test"), c("b", "hidden"), upper=True),
    "live rate": shape.live_rate(c("b", "test"), c("i"), c("i", "test")),
    "ever passed": shape.ever_positive(c("b", "test"), c("i"), c("i", "test"), patience=1),
}


def built(name):
    if name in PARTS:
        return PARTS[name]
    key, parts = CASES[name]
    return find(key).build(*parts)


def batch(seed):
    """Rollouts of up to two prompts; every axis has a column of each kind, with ties and holes, and may be empty."""
    rng = np.random.default_rng(seed)

    def cell(kind):
        return None if rng.random() < 0.1 * (seed % 3) else float(rng.choice(KINDS[kind][0]))

    rows = []
    for prompt in rng.choice(["a", "a", "b"], size=rng.integers(1, 7)):
        row = {"prompt": str(prompt)} | {k: cell(k) for k in KINDS}
        for axis, most in AXES.items():
            size = int(rng.integers(0, most + 1)) if axis in RAGGED else most
            row |= {f"{axis}_{kind}": [cell(kind) for _ in range(size)] for kind in KINDS}
        row["option_p"] = rng.permutation(np.arange(3.0)).tolist()
        path = rng.integers(1, 3, size=len(row["step_u"]))
        row["step_node"] = [float("".join(map(str, path[: t + 1]))) for t in range(len(path))]
        turns = max(len(row["step_u"]), 1)
        row["test_turn"] = [float(rng.integers(0, turns)) for _ in row["test_u"]]
        rows.append(row | {"tokens": list(range(len(row["token_u"])))})
    for row in rows:
        row["opponent_b"] = [cell("b") for r in rows if r["prompt"] == row["prompt"]]
    return rows


BATCHES = [batch(seed) for seed in range(18)]


def per_rollout(scored):
    flat, axis = listed(scored.scores), scored.scores.axis
    ends = axis.offsets_over("rollout") if axis.has("rollout") else range(len(flat) + 1)
    return [flat[ends[i] : ends[i + 1]] for i in range(len(ends) - 1)]


@pytest.mark.parametrize("name", [*CASES, *PARTS])
def test_known_scores_are_finite_and_lie_in_the_declared_range(name):
    expr, seen = built(name), 0
    for rows in BATCHES:
        framed = expr.score(rows).framed
        known = framed.values[framed.known]
        assert np.isfinite(known).all()
        assert (known >= expr.range.low - 1e-9).all()
        assert (known <= expr.range.high + 1e-9).all()
        assert all(framed.reason(int(i)) for i in np.flatnonzero(~framed.known))
        seen += len(known)
    assert seen > 5


@pytest.mark.parametrize("name", CASES)
def test_neither_the_order_of_the_rollouts_nor_other_prompts_play_a_part(name):
    expr = built(name)
    for seed, rows in enumerate(BATCHES):
        plain = per_rollout(expr.score(rows))
        if name != "csr-semantic-calibration-1":  # whose columns name members by their place
            order = np.random.default_rng(seed).permutation(len(rows))
            mixed = per_rollout(expr.score([rows[i] for i in order]))
            assert all(same(plain[i], mixed[place]) for place, i in enumerate(order))
        mine = [i for i, r in enumerate(rows) if r["prompt"] == "a"]
        alone = per_rollout(expr.score([rows[i] for i in mine]))
        assert all(same(plain[i], alone[place]) for place, i in enumerate(mine))


@pytest.mark.parametrize("name", [*CASES, *PARTS])
def test_a_batch_without_any_evidence_gives_no_number(name):
    def blank(key, cell):
        if not isinstance(cell, list):
            return cell if key == "prompt" else None
        fixed = key == "tokens" or key.startswith(("token_", "opponent"))
        return cell if key == "tokens" else [None] * (len(cell) if fixed else max(len(cell), 1))

    for rows in BATCHES[:4]:
        holes = [{key: blank(key, cell) for key, cell in row.items()} for row in rows]
        assert not built(name).score(holes).framed.known.any()


@pytest.mark.parametrize("name", [*CASES, *PARTS])
def test_a_method_can_be_pickled_and_no_rollouts_are_no_scores(name):
    expr = built(name)
    assert pickle.loads(pickle.dumps(expr)).fingerprint == expr.fingerprint
    assert load_spec(dump_spec(expr)).reward.fingerprint == expr.fingerprint
    assert len(expr.score([])) == 0


@pytest.mark.parametrize("key", BUILT)
def test_an_entry_says_what_it_is_where_it_comes_from_and_how_to_use_it(key):
    entry = find(key)
    assert len(entry.text) > 300
    assert "Trap" in entry.text
    assert "guerdon.methods." in entry.usage
    assert "arXiv:" in entry.source
