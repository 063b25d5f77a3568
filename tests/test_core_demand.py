"""A branch that asks for some items of a rollout gets the right numbers from what reads the rollout as a whole."""

from __future__ import annotations

import pytest

import guerdon as gd
from guerdon import credit, shape
from guerdon.methods.b_coder import recovered_reward
from guerdon.methods.easy_to_hard import over_two_tokens
from guerdon.methods.faithrl_step import repeat_penalty
from guerdon.methods.pica import over_budget
from guerdon.methods.prorl import centred
from guerdon.methods.relc import span_marks

MARK, WORTH = gd.column("mark", axis="step"), gd.column("worth")


@gd.signal(axis="step", range=(0, 1), key="tests.length_share", version=1)
def length_share(step) -> float:
    """A measurement of each step by itself, so that the engine can ask about some of them only."""
    return len(step.text) / 4.0


ALONG = {
    "prefix_min": credit.prefix_min(length_share),
    "suffix_min": credit.suffix_min(length_share),
    "prefix_sum": credit.prefix_sum(length_share),
    "prefix_sum, skipping": credit.prefix_sum(length_share, missing="skip"),
    "prefix_mean": credit.prefix_mean(length_share),
    "returns": credit.returns(length_share, gamma=0.5),
    "drop": credit.drop(length_share),
    "soft_min": credit.soft_min(length_share),
    "window_mean": credit.window_mean(length_share, width=2),
    "potential_shaping": credit.potential_shaping(length_share),
    "gae": credit.gae(WORTH, length_share),
    "lambda_return": credit.lambda_return(WORTH, length_share),
    "n_step": credit.n_step(WORTH, length_share, n=2),
    "pay_last": credit.pay_last(length_share, WORTH),
    "before_error": credit.before_error(length_share, below=0.3),
    "rollout_relative": credit.rollout_relative(length_share),
    "place_relative": credit.place_relative(length_share, least=1),
    "delta": shape.delta(length_share),
    "gain": shape.gain(length_share),
    "until": shape.until(length_share < 0.3),
    "dag_gate": shape.dag_gate(length_share, parents=[[], [0], [1], [2]]),
    "over_two_tokens": over_two_tokens(length_share),
    "span_marks": span_marks(length_share > 0.3),
    "repeat_penalty": repeat_penalty(length_share, credit.place(length_share) * 0.0, near=0.3),
    "over_budget": over_budget(credit.prefix_sum(length_share)),
    "recovered_reward": recovered_reward(length_share * -1.0, length_share),
    "centred": centred(length_share),
}
ROWS = [{"prompt": "p", "completion": "aaabbcccc", "steps": ["aaa", "b", "b", "cccc"], "worth": 1.0}]


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("mark", [[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 1, 0]])
def test_what_is_masked_out_still_counts_for_the_others(name, mark):
    whole = ALONG[name].score(ROWS).framed
    part = gd.when(MARK, ALONG[name], -9.0).score([{**ROWS[0], "mark": mark}]).framed
    assert part.known.all()
    assert part.values.tolist() == [v if m else -9.0 for v, m in zip(whole.values.tolist(), mark, strict=True)]


def test_what_works_item_by_item_is_asked_for_the_items_that_count_only():
    asked = []

    @gd.signal(axis="step", key="tests.asked", version=1)
    def judged(step) -> float:
        asked.append(step.text)
        return 1.0

    gd.when(MARK, judged * 2.0 + 1.0, 0.0).score([{**ROWS[0], "mark": [1, 0, 0, 1]}])
    assert asked == ["aaa", "cccc"]


def test_statistics_that_run_over_batches_see_the_whole_batch_whoever_asks():
    @gd.signal(key="tests.cost", version=1)
    def cost(rollout) -> float:
        return rollout.extra["cost"]

    rows = [{"prompt": "p", "completion": "", "ok": ok, "cost": c} for ok, c in ((0, 4.0), (1, 9.0), (1, 16.0))]

    def paced(part):
        return shape.self_paced([part, part * 0.5], rate=0.5)

    whole = (shape.running_zscore, shape.running_minmax, shape.running_clip, shape.running_quantile_scale, paced)
    for running in whole:
        live, written = (gd.when(gd.column("ok"), running(x), 0.0) for x in (cost, gd.column("cost")))
        sessions = gd.Session(), gd.Session()
        got = [e.score(rows, session=s).values.tolist() for e, s in zip((live, written), sessions, strict=True)]
        assert got[0] == got[1]
        assert list(sessions[0].state.values()) == list(sessions[1].state.values())
