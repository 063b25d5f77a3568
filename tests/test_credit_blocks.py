"""The credit blocks on small literal examples: axes, unknowns, empty rollouts, and what is an error."""

import numpy as np
import pytest

import guerdon as gd
from guerdon import credit

S, R, N = gd.column("s", axis="step"), gd.column("r"), gd.column("n", axis="step")
TOKEN = gd.column("logprobs", axis="token")


def tokened(step_tokens, **more):
    n = sum(step_tokens)
    return {
        "prompt": "p", "completion": "x" * n, "steps": ["x"] * len(step_tokens), "step_tokens": list(step_tokens),
        "tokens": list(range(n)), "logprobs": [-1.0] * n, **more,
    }  # fmt: skip


# ---- spreading ----


def test_spreading_from_steps_to_tokens_three_ways():
    data = [tokened([1, 2], s=[1.0, 3.0]), tokened([3], s=[6.0])]
    assert credit.spread(S, TOKEN).score(data).scores.values.tolist() == [1, 3, 3, 6, 6, 6]
    assert credit.spread(S, TOKEN, how="last").score(data).scores.values.tolist() == [1, 0, 3, 0, 0, 6]
    assert credit.spread(S, TOKEN, how="share").score(data).scores.values.tolist() == [1, 1.5, 1.5, 2, 2, 2]


def test_a_reward_that_no_token_can_carry_makes_its_rollout_unknown_and_a_zero_does_not():
    data = [tokened([2, 0], s=[1.0, 3.0]), tokened([2, 0], s=[1.0, 0.0]), tokened([1, 1], s=[1.0, 3.0])]
    for how in ("last", "share"):
        out = credit.spread(S, TOKEN, how=how).score(data).scores
        assert out.known.tolist() == [False, False, True, True, True, True]
        assert out.reason(0) == "a step has no token to carry its score"
    assert credit.spread(S, TOKEN).score(data).scores.known.all()


def test_a_group_score_is_paid_to_every_rollout_not_only_to_the_last():
    data = [tokened([2], r=1.0), tokened([1], r=0.0)]
    rate = gd.shape.group_statistic(R, "mean")
    assert credit.spread(rate, TOKEN, how="last").score(data).scores.values.tolist() == [0.0, 0.5, 0.5]


def test_an_unknown_step_is_unknown_in_its_tokens_only_when_repeated():
    out = credit.spread(S, TOKEN).score([tokened([1, 2], s=[None, 3.0])]).scores
    assert out.known.tolist() == [False, True, True]


def test_spreading_upwards_or_with_another_word_is_an_error():
    data = [tokened([1, 2], s=[1.0, 3.0])]
    with pytest.raises(ValueError, match="how"):
        credit.spread(S, TOKEN, how="first").score(data)
    with pytest.raises(gd.AxisError):
        credit.spread(TOKEN, S).score(data)


def test_a_reward_is_paid_at_the_last_item_and_an_empty_rollout_has_none():
    data = [{"s": [0.0, 0.0], "r": 1.0}, {"s": [], "r": 5.0}, {"s": [0.5], "r": None}]
    out = credit.pay_last(S, R, weight=2.0).score(data).scores
    assert out.values[:2].tolist() == [0.0, 2.0]
    assert out.known.tolist() == [True, True, False]
    assert out.reason(2) == "column 'r' is missing"


def test_evidence_and_reasons_follow_scores_down_to_tokens():
    @gd.signal(range=(0, 1))
    def judged(rollout):
        return gd.Score(0.5, why=rollout.text) if rollout.text == "xx" else gd.Score.unknown("no verdict")

    out = credit.spread(judged, TOKEN).score([tokened([2]), tokened([1])]).framed
    assert [out.evidence[i] for i in range(2)] == [{"why": "xx"}] * 2
    assert out.reason(2) == "no verdict"


# ---- along a rollout ----


def test_running_forms_on_one_rollout():
    data = [{"s": [0.5, 0.2, 0.9]}]
    expected = {
        credit.prefix_min: [0.5, 0.2, 0.2], credit.suffix_min: [0.2, 0.2, 0.9], credit.prefix_sum: [0.5, 0.7, 1.6],
        credit.prefix_mean: [0.5, 0.35, 1.6 / 3], credit.returns: [1.6, 1.1, 0.9], credit.left: [3, 2, 1],
        credit.place: [0, 1, 2],
    }  # fmt: skip
    for block, values in expected.items():
        assert block(S).score(data).scores.values == pytest.approx(values), block


def test_skipping_an_unknown_step_keeps_the_others():
    data = [{"s": [0.5, None, 0.9]}]
    out = credit.prefix_min(S, missing="skip").score(data).scores
    assert out.known.tolist() == [True, False, True]
    assert out.values[[0, 2]].tolist() == [0.5, 0.5]
    whole = credit.prefix_min(S).score(data).scores
    assert not whole.known.any()
    assert whole.reason(0) == "step 1: column 's' is missing"
    with pytest.raises(ValueError, match="missing"):
        credit.prefix_min(S, missing="zero").score(data)


def test_what_overflows_is_unknown_and_never_infinite():
    out = credit.prefix_sum(S).score([{"s": [1e308, 1e308]}, {"s": [1.0]}]).scores
    assert out.known.tolist() == [True, False, True]
    assert out.reason(1) == "not a finite number"


def test_the_caller_s_scores_are_left_as_they_were():
    frame = gd.Frame.of([{"prompt": "p", "s": [0.5, 0.25], "r": 1.0}, {"prompt": "p", "s": [1.0], "r": 0.0}])
    s, r = S.score(frame).framed, R.score(frame).framed
    before = s.values.copy(), r.values.copy()
    for call in (
        lambda: credit.gae(r, s), lambda: credit.gae(s, s), lambda: credit.lambda_return(s, s), lambda:
        credit.n_step(s, s), lambda: credit.returns(s, gamma=0.5), lambda: credit.batch_whiten(s), lambda:
        credit.pay_last(s, r), lambda: credit.potential_shaping(s, r), lambda: credit.reinforce_plus_plus(r, s,
        gamma=0.5), lambda: credit.drop(s, before_last=True),
    ):  # fmt: skip
        call()
        assert s.values.tolist() == before[0].tolist()
        assert r.values.tolist() == before[1].tolist()


# ---- temporal differences ----


def test_gae_by_hand():
    data = [{"s": [0.5, 0.25, 0.75], "r": 1.0}]
    delta = np.array([0.9 * 0.25 - 0.5, 0.9 * 0.75 - 0.25, 1.0 - 0.75])
    last = delta[2]
    middle = delta[1] + 0.45 * last
    expected = [delta[0] + 0.45 * middle, middle, last]
    out = credit.gae(R, S, gamma=0.9, lam=0.5).score(data).scores
    assert out.values == pytest.approx(expected)
    target = credit.lambda_return(R, S, gamma=0.9, lam=0.5).score(data).scores
    assert target.values == pytest.approx(np.add(expected, [0.5, 0.25, 0.75]))


def test_step_rewards_reach_the_tokens_whose_window_holds_their_end():
    data = [tokened([2, 2], s=[1.0, 10.0])]
    zero = TOKEN * 0.0
    assert credit.n_step(S, zero, n=2).score(data).scores.values.tolist() == [1.0, 1.0, 10.0, 10.0]
    assert credit.n_step(S, zero, n=3, gamma=0.5).score(data).scores.values.tolist() == [0.5, 3.5, 5.0, 10.0]
    dense = credit.spread(S, TOKEN, how="last")
    assert credit.n_step(dense, zero, n=3, gamma=0.5).score(data).scores.values.tolist() == [0.5, 3.5, 5.0, 10.0]


def test_parameters_outside_their_range_are_errors():
    data = [{"s": [0.5], "r": 1.0}]
    for bad in (
        credit.gae(R, S, gamma=1.1), credit.gae(R, S, lam=-0.1), credit.returns(S, gamma=2.0), credit.n_step(R, S, n=0),
        credit.potential_shaping(S, gamma=-1.0), credit.window_mean(S, width=0), credit.pass_at_k(R, k=0),
        credit.position_mean(S, growth=-1.0), credit.geometric_mean(S, floor=0.0), credit.place_relative(S,
        scale="max"), credit.group_relative(R, scale="max"), credit.pass_at_k_advantage(R, k=1, scale="max"),
        credit.node_relative(R, S, scale="max"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must|choose|holds"):
            bad.score(data)


# ---- first error ----


@pytest.mark.parametrize(
    ("steps", "index"),
    [([0.9, 0.2, 0.8], 1), ([0.9], 1), ([], 0), ([0.2, None], 0), ([None, 0.2], None), ([0.9, None], None), ([0.5], 1)],
)
def test_the_first_error_is_three_valued(steps, index):
    out = credit.first_error(S).score([{"s": steps}]).scores
    assert (out.values[0] if out.known[0] else None) == index


def test_steps_before_the_first_error():
    data = [{"s": [0.9, 0.2, 0.8]}, {"s": [0.9, 0.6]}, {"s": [None, 0.1]}]
    out = credit.before_error(S).score(data).scores
    assert out.values[:5].tolist() == [1, 0, 0, 1, 1]
    assert not out.known[5:].any()
    assert out.reason(5) == "step 0: column 's' is missing"


# ---- places ----


def test_places_are_positions_or_given_labels():
    data = [{"prompt": "p", "s": [1.0, 4.0], "n": [7, 8]}, {"prompt": "p", "s": [3.0, 8.0], "n": [8, 7]}]
    assert credit.place_relative(S, scale="none").score(data).scores.values.tolist() == [-1, -2, 1, 2]
    assert credit.place_relative(S, N, scale="none").score(data).scores.values.tolist() == [-3.5, 0.5, -0.5, 3.5]
    assert credit.place_leave_one_out(S, N).score(data).scores.values.tolist() == [-7, 1, -1, 7]


def test_a_lone_place_is_unknown_unless_one_is_enough():
    data = [{"prompt": "p", "s": [1.0, 4.0]}, {"prompt": "p", "s": [3.0]}]
    out = credit.place_relative(S).score(data).scores
    assert out.known.tolist() == [True, False, True]
    assert out.reason(1) == "fewer than two known members in the group"
    assert credit.place_relative(S, least=1).score(data).scores.values.tolist() == [-1.0, 0.0, 1.0]


def test_equal_scores_at_a_place_give_exactly_zero_even_where_the_mean_rounds():
    data = [{"prompt": "p", "s": [0.1 + 0.2]} for _ in range(3)]
    assert credit.place_relative(S).score(data).scores.values.tolist() == [0.0] * 3
    assert credit.place_leave_one_out(S).score(data).scores.values.tolist() == [0.0] * 3
    tenths = [{"prompt": "p", "r": 0.1, "s": [0.1]} for _ in range(4)]
    assert (0.1 * 4 - 0.1) / 3 != 0.1
    for block in (
        credit.leave_one_out(R), credit.place_leave_one_out(S), credit.group_relative(R, scale="none"),
        credit.place_relative(S, scale="none"),
    ):  # fmt: skip
        assert block.score(tenths).scores.values.tolist() == [0.0] * 4


def test_a_rollout_with_an_unknown_step_moves_no_token_baseline():
    data = [tokened([1, 2], s=s) for s in ([1.0, 4.0], [2.0, 0.5], [None, 8.0])]
    out = credit.token_leave_one_out(S, TOKEN, width=6).score(data).scores
    assert out.values[:6] == pytest.approx([1 - 3 / 6, 4 - 3 / 6, 4 - 3 / 6, 2 - 9 / 6, 0.5 - 9 / 6, 0.5 - 9 / 6])
    assert out.known.tolist() == [True] * 6 + [False] * 3
    assert out.reason(6) == "step 0: column 's' is missing"
    alone = credit.token_leave_one_out(S, TOKEN).score(data[1:]).scores
    assert not alone.known.any()
    assert alone.reason(0) == "fewer than two known members in the group"


def test_a_step_without_a_tree_number_leaves_its_rollout_out():
    data = [{"prompt": "p", "n": n, "r": r} for n, r in (([1, 2], 1), ([1, 3], 0), ([1, None], 1))]
    out = credit.node_value(R, N).score(data).scores
    assert out.values[:4].tolist() == [0.5, 1.0, 0.5, 0.0]
    assert out.known.tolist() == [True] * 4 + [False] * 2
    assert out.reason(4) == "step 1: column 'n' is missing"
    assert credit.node_share(N).score(data).scores.values[:4].tolist() == [0.5, 1.0, 0.5, 1.0]


def test_equal_node_numbers_of_two_prompts_are_two_nodes():
    data = [{"prompt": p, "n": [1], "r": r} for p, r in (("a", 1), ("b", 0))]
    assert credit.node_value(R, N).score(data).scores.values.tolist() == [1.0, 0.0]


# ---- batches ----


def test_whitening_weighs_rollouts_by_their_tokens():
    data = [tokened([3], r=1.0), tokened([1], r=0.0)]
    out = credit.batch_whiten(R, TOKEN, eps=0.0).score(data).scores
    tokens = np.array([1.0, 1.0, 1.0, 0.0])
    assert out.values == pytest.approx((tokens - tokens.mean()) / tokens.std(ddof=1))
    kept = credit.batch_whiten(R, TOKEN, eps=0.0, shift=False).score(data).scores
    assert kept.values == pytest.approx(out.values + 0.75)


def test_whitening_without_spread_is_zero_and_of_one_item_unknown():
    assert credit.batch_whiten(R).score([{"r": 0.1 + 0.2}] * 3).values.tolist() == [0.0] * 3
    assert credit.batch_whiten(R, shift=False).score([{"r": 2.0}] * 3).values.tolist() == [2.0] * 3
    alone = credit.batch_whiten(R).score([{"r": 1.0}, {"r": None}]).scores
    assert not alone.known.any()
    assert alone.reason(0) == "fewer than two known items in the batch"


def test_reinforce_plus_plus_discounts_from_the_end_and_takes_a_group_baseline():
    data = [tokened([2], r=1.0), tokened([2], r=0.0)]
    returns = np.array([0.5, 1.0, 0.0, 0.0])
    out = credit.reinforce_plus_plus(R, TOKEN, gamma=0.5, eps=0.0).score(data).scores
    assert out.values == pytest.approx((returns - returns.mean()) / returns.std(ddof=1))
    based = credit.reinforce_plus_plus(R, TOKEN, group_baseline=True, eps=0.0).score(data).scores
    centred = np.array([0.5, 0.5, -0.5, -0.5])
    assert based.values == pytest.approx(centred / centred.std(ddof=1))


def test_gdpo_gives_a_part_without_spread_no_say_in_its_group():
    data = [{"prompt": p, "r": r, "b": b} for p, r, b in (("a", 1, 5), ("a", 0, 5), ("b", 1, 3), ("b", 1, 4))]
    out = credit.gdpo([R, gd.column("b")], weights=[1.0, 2.0], eps=0.0, whiten_eps=0.0).score(data).values
    summed = np.array([1, -1, -2, 2]) / np.sqrt(2)
    assert out == pytest.approx(summed / summed.std(ddof=1))
    with pytest.raises(ValueError, match="weights"):
        credit.gdpo([R], weights=[1.0, 2.0]).score(data)


def test_advantages_come_back_in_the_order_the_rollouts_came_in():
    data = [{"prompt": p, "r": r} for p, r in (("a", 1.0), ("b", 5.0), ("a", 0.0), ("b", 9.0))]
    assert credit.group_relative(R).score(data).values.tolist() == [1.0, -1.0, -1.0, 1.0]


def test_a_spread_too_large_for_a_number_is_unknown_and_never_a_silent_zero():
    out = credit.batch_whiten(R).score([{"r": 1.7e308}, {"r": 1.7e308}, {"r": -1.7e308}]).scores
    assert not out.known.any()
    assert out.reason(0) == "not a finite number"
    large = credit.batch_whiten(R).score([{"r": 1e200}, {"r": -1e200}]).values
    assert large == pytest.approx([2**-0.5, -(2**-0.5)])
    small = credit.batch_whiten(R, eps=0.0).score([{"r": 1e-300}, {"r": 0.0}]).values
    assert small == pytest.approx([2**-0.5, -(2**-0.5)])
    graded = credit.pass_at_k_advantage(R, k=1).score([{"prompt": "p", "r": r} for r in (1e200, -1e200)]).values
    assert graded == pytest.approx([1.0, -1.0])


def test_an_overflow_stays_in_its_own_rollout():
    rows = [{"s": [0.5] * 150}, {"s": [1.7e308] * 150}, {"s": [0.5] * 150}]
    for gamma in (0.9, 1.0):
        out = credit.returns(S, gamma=gamma).score(rows).scores
        alone = credit.returns(S, gamma=gamma).score(rows[:1]).scores
        assert out.values[:150] == pytest.approx(alone.values)
        assert out.values[300:] == pytest.approx(alone.values)
        assert not out.known[150:290].any()
