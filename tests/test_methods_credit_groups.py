"""Methods that compare the rollouts of a prompt: the catalogue's worked examples as literals, and its pitfalls."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.baselines import dapo_overlong, dr_grpo, grpo, rloo, search_r1
from guerdon.methods.gopo import gopo
from guerdon.methods.mo_grpo import mo_grpo
from guerdon.methods.reward_shifting import reward_shifting, value_offset
from guerdon.methods.rlrr import rlrr
from plain_python import tokened

R = gd.column("r")


def rows(values, prompt="p", **columns):
    return [{"prompt": prompt, "r": v, **{k: c[i] for k, c in columns.items()}} for i, v in enumerate(values)]


def scored(reward, data):
    return reward.score(data).values


# ---- baselines ----


def test_grpo_divides_by_the_sample_deviation_and_a_flat_group_gets_exactly_zero():
    assert scored(grpo(R), rows([1, 0, 0])) == pytest.approx([1.154700, -0.577350, -0.577350], abs=2e-6)
    assert scored(grpo(R), rows([0.1 + 0.2] * 3)).tolist() == [0.0, 0.0, 0.0]


def test_dr_grpo_and_rloo_do_not_divide():
    assert scored(dr_grpo(R), rows([1, 0, 0.5])).tolist() == [0.5, -0.5, 0.0]
    assert scored(rloo(R), rows([1, 0, 0.5])).tolist() == [0.75, -0.75, 0.0]


def test_search_r1_is_exact_match_of_the_last_answer_tag_after_normalisation():
    tool = [{"role": "tool", "content": "<answer>Paris</answer>"}, {"role": "assistant", "content": "I am not sure."}]
    rows = [
        {"completion": "<answer>Rome</answer> no: <answer> The PARIS. </answer>", "answer": ["Paris", "City of Paris"]},
        {"completion": "Paris", "answer": "Paris"},
        {"completion": tool, "answer": "Paris"},
        {"completion": "<answer>Paris</answer>"},
    ]
    scored = search_r1().score(rows)
    assert scored.scores.values[:3].tolist() == [1.0, 0.0, 0.0]
    assert scored.unknown == {"no reference answer": 1}


def test_dapo_overlong_falls_linearly_over_the_buffer():
    reward = dapo_overlong(R, gd.column("n"), limit=20480, buffer=4096)
    assert scored(reward, rows([1, 1, 1, 1], n=[16384, 18432, 20480, 30000])).tolist() == [1.0, 0.5, 0.0, 0.0]


def test_one_known_member_is_unknown_in_every_baseline():
    for method in (grpo, dr_grpo, rloo, gopo):
        out = method(R).score(rows([1.0, None])).scores
        assert not out.known.any()
        assert out.reason(0) == "fewer than two known members in the group"
        assert out.reason(1) == "column 'r' is missing"


TOKEN, VALUE = gd.column("logprobs", axis="token"), gd.column("v", axis="token")


def test_gae_pays_the_outcome_at_the_last_token_and_trusts_the_critic_in_between():
    data = [{"r": 1.0, **tokened([3]), "v": [0.5, 0.25, 0.75]}]
    # delta = (0.9 * 0.25 - 0.5, 0.9 * 0.75 - 0.25, 1 - 0.75) = (-0.275, 0.425, 0.25); A_t = delta_t + 0.72 A_t+1.
    out = scored(gd.method("gae", R, VALUE, gamma=0.9, lam=0.8), data)
    assert out == pytest.approx([0.1606, 0.605, 0.25])
    assert scored(gd.method("gae", R, VALUE, lam=1.0), data) == pytest.approx([0.5, 0.75, 0.25])  # 1 - V


def test_reinforce_plus_plus_whitens_over_all_tokens_of_the_batch():
    data = [{"r": 1.0, **tokened([1])}, {"r": 0.0, **tokened([3])}]
    out = scored(gd.method("reinforce-plus-plus", R, TOKEN, eps=0.0), data)
    assert out == pytest.approx([1.5, -0.5, -0.5, -0.5])  # mean 1/4, sample deviation 1/2
    assert scored(gd.method("reinforce-plus-plus", R, TOKEN), [{**row, "r": 1.0} for row in data]).tolist() == [0.0] * 4


def test_gdpo_whitens_the_sum_of_rewards_standardised_one_by_one():
    data = rows([1, 0.5, 0, 0.5], b=[100, 102, 101, 101])
    out = scored(gd.method("gdpo", [R, gd.column("b")]), data)
    sums = np.array([0, 1.224744, -1.224744, 0])
    assert out == pytest.approx(sums / np.std(sums, ddof=1), abs=2e-6)


# ---- gopo ----


def test_gopo_spaces_advantages_equally():
    assert scored(gopo(R), rows([0.9, 0.1, 0.5, 0.7])) == pytest.approx([2, -2, -2 / 3, 2 / 3])
    assert scored(gopo(R), rows([1, 1, 0, 0])) == pytest.approx([4 / 3, 4 / 3, -4 / 3, -4 / 3])
    assert scored(gopo(R), rows([1, 0, 0, 0])) == pytest.approx([2, -2 / 3, -2 / 3, -2 / 3])
    assert scored(gopo(R), rows([0.5] * 4)).tolist() == [0.0] * 4


def test_gopo_feels_no_monotone_change_of_the_reward():
    x = np.array([0.3, -2.0, 0.3, 5.0, 1.0])
    assert scored(gopo(R), rows(x)).tolist() == scored(gopo(R), rows(np.exp(x) - 3)).tolist()


def test_breaking_ties_by_index_gives_advantages_out_of_nothing_and_mid_ranks_do_not():
    by_index = 2 - 4 * np.arange(8) / 7  # what sorting an all-equal group by index gives
    assert np.abs(by_index).max() == 2.0
    assert scored(gopo(R), rows([1.0] * 8)).tolist() == [0.0] * 8


def test_noise_gets_full_weight_and_binary_rewards_only_a_new_scale():
    assert scored(gopo(R), rows([0.5, 0.5 + 1e-12])).tolist() == [-2.0, 2.0]
    for right in range(9):
        verdicts = [1.0] * right + [0.0] * (8 - right)
        assert scored(gopo(R), rows(verdicts)) == pytest.approx(scored(dr_grpo(R), rows(verdicts)) * 2 * 8 / 7)


# ---- mo-grpo ----


R1, R2 = [0, 10, 20, 30], [0.3, 0.3, 0.1, 0]


def corr(a, b):
    return float(np.corrcoef(a, b)[0, 1])


def test_mo_grpo_weighs_objectives_alike_where_a_plain_sum_follows_the_larger():
    data = rows(R1, b=R2)
    plain = scored(gd.shape.zscore(R + gd.column("b")), data)
    assert plain == pytest.approx([-1.345249, -0.44088, 0.445402, 1.340727], abs=1e-6)
    assert corr(plain, R1) == pytest.approx(0.999993, abs=1e-6)
    assert corr(plain, R2) == pytest.approx(-0.945504, abs=1e-6)
    fair = scored(mo_grpo([R, gd.column("b")]), data)
    assert fair == pytest.approx([-0.37939, 0.515037, -0.130137, -0.00551], abs=1e-6)
    assert corr(fair, R1) == pytest.approx(0.163203, abs=1e-6)
    assert corr(fair, R2) == pytest.approx(0.163203, abs=1e-6)
    moved = scored(mo_grpo([R, gd.column("b") * 1000 + 5]), data)
    assert moved == pytest.approx(fair, abs=1e-9)


def test_mo_grpo_gives_a_constant_reward_no_say_and_no_nan():
    data = rows([1, 0, 1, 0], b=[0.7] * 4)
    assert scored(mo_grpo([R, gd.column("b")]), data).tolist() == [1.0, -1.0, 1.0, -1.0]
    assert scored(mo_grpo([R, gd.column("b")], [2.0, 5.0]), data).tolist() == [2.0, -2.0, 2.0, -2.0]


def test_one_failure_of_a_format_reward_gets_a_huge_score():
    out = scored(mo_grpo([R]), rows([0] + [1] * 15))
    assert out[0] == pytest.approx(-np.sqrt(15))


def test_a_reward_that_is_nearly_constant_is_blown_up_to_unit_variance():
    noise = [1e-9, -1e-9, 2e-9, 0.0]
    out = scored(mo_grpo([R, gd.column("b")]), rows([1, 1, 0, 0], b=noise))
    assert np.std(out - scored(mo_grpo([R]), rows([1, 1, 0, 0]))) == pytest.approx(1.0)


def test_the_sum_of_agreeing_rewards_has_the_variance_of_their_number_squared():
    data = rows([1, 0, 1, 0], b=[5, 1, 5, 1], c=[0, -7, 0, -7])
    assert np.var(scored(mo_grpo([R, gd.column("b"), gd.column("c")]), data)) == pytest.approx(9.0)
    assert not mo_grpo([R]).score(rows([1.0])).scores.known.any()


# ---- pass@k ----


def passk(values, k, **params):
    return scored(gd.method("passk-training-analytic-advantage")(R, k=k, **params), rows(values))


def brute_passk(values, k, eps=1e-6):
    subsets = list(combinations(range(len(values)), k))
    best = np.array([max(values[i] for i in s) for s in subsets])
    spread = best.std() + eps
    mean = best.mean()
    own = [np.mean([b for s, b in zip(subsets, best, strict=True) if i in s]) for i in range(len(values))]
    return np.array([0.0 if best.min() == best.max() else (o - mean) / spread for o in own])


def test_pass_at_k_advantages_match_the_catalogue():
    assert passk([1, 1] + [0] * 6, 4) == pytest.approx([0.522232] * 2 + [-0.174077] * 6, abs=1e-6)
    assert passk([1] * 4 + [0] * 4, 4) == pytest.approx([0.120385] * 4 + [-0.120385] * 4, abs=1e-6)
    assert passk([1, 1] + [0] * 6, 1) == pytest.approx([1.732047] * 2 + [-0.577349] * 6, abs=1e-6)
    for c in (5, 6, 7, 8):
        assert passk([1] * c + [0] * (8 - c), 4).tolist() == [0.0] * 8
    mass = [np.abs(passk([1] * c + [0] * (8 - c), 4)).sum() for c in range(1, 6)]
    assert mass == pytest.approx([2.0, 2.0889, 1.6641, 0.9631, 0.0], abs=1e-4)
    assert passk([0] * 8, 4).tolist() == [0.0] * 8


def test_pass_at_k_advantages_match_all_subsets_for_graded_rewards_and_ties():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(2, 8))
        k = int(rng.integers(1, n + 1))
        values = rng.choice([-1.0, 0.0, 0.25, 1.0, rng.normal()], n)
        assert passk(values, k) == pytest.approx(brute_passk(values, k), abs=1e-9)


def test_pass_at_k_closed_form_of_binary_rewards():
    n, c, k = 8, 2, 4
    rho = 1 - comb(n - c, k) / comb(n, k)
    sigma = (rho * (1 - rho)) ** 0.5
    assert rho == pytest.approx(0.785714, abs=1e-6)
    assert sigma == pytest.approx(0.410326, abs=1e-6)
    assert scored(gd.credit.pass_at_k(R, k=k), rows([1] * c + [0] * (n - c))) == pytest.approx([rho] * n)


def test_pass_at_k_takes_minus_one_for_wrong_and_large_groups_without_overflow():
    assert passk([1, -1, -1, -1], 2) == pytest.approx(brute_passk([1, -1, -1, -1], 2))
    out = passk([1.0] * 10 + [0.0] * 2990, 64)
    assert np.isfinite(out).all()
    assert out[0] > 0 > out[-1]


def test_pass_at_k_with_fewer_than_k_known_members_is_unknown():
    out = gd.credit.pass_at_k_advantage(R, k=3).score(rows([1, 0, None])).scores
    assert not out.known.any()
    assert out.reason(0) == "fewer than 3 known members in the group"


def test_pass_at_one_is_grpo_with_the_population_deviation():
    verdicts = [1, 1, 0, 0, 0, 0, 0, 0]
    assert passk(verdicts, 1) == pytest.approx(scored(grpo(R, ddof=0), rows(verdicts)))


# ---- rlrr ----


def test_rlrr_breaks_ties_inside_right_and_wrong_but_never_across():
    data = rows([0.9, 0.2, 0.8, 0.1], v=[1, 1, 0, 0])
    assert scored(rlrr(R, gd.column("v")), data) == pytest.approx([1.25, 0.75, 0.25, -0.25])
    wrong = rows([0.9, 0.2, 0.8, 0.1], v=[0] * 4)
    assert scored(rlrr(R, gd.column("v")), wrong) == pytest.approx([0.25, -0.0833, 0.0833, -0.25], abs=1e-4)
    normed = scored(gd.credit.group_relative(rlrr(R, gd.column("v"))), wrong)
    assert normed == pytest.approx([1.3416, -0.4472, 0.4472, -1.3416], abs=1e-4)


def test_rlrr_uses_mid_ranks_and_leaves_a_lone_verdict_alone():
    assert scored(rlrr(R, gd.column("v")), rows([3, 3, 1], v=[0, 0, 1])).tolist() == [0.0, 0.0, 1.0]
    assert scored(rlrr(R), rows([5, 1, 5])).tolist() == [0.25, -0.5, 0.25]
    with pytest.raises(ValueError, match="beta"):
        rlrr(R, gd.column("v"), beta=1.0)


def test_the_least_bad_of_an_all_wrong_group_is_rewarded_like_a_right_answer_once_divided():
    reward = rlrr(R, gd.column("v"))
    wrong, mixed = (rows([0.9, 0.2, 0.8, 0.1], v=v) for v in ([0] * 4, [1, 0, 0, 0]))
    divided = gd.credit.group_relative(reward)
    assert scored(divided, wrong)[0] > 0.8 * scored(divided, mixed)[0]
    centred = gd.credit.group_relative(reward, scale="none")
    assert scored(centred, wrong)[0] < 0.4 * scored(centred, mixed)[0]


def test_the_place_bias_of_a_listwise_judge_cancels_over_both_orders():
    # A judge that ranks by place alone: 0 1 2 3 as shown, 3 2 1 0 for the reversed list.
    data = rows([0, 1, 2, 3], back=[3, 2, 1, 0], v=[0] * 4)
    assert np.ptp(scored(rlrr(R, gd.column("v")), data)) == 0.5
    assert scored(rlrr(R + gd.column("back"), gd.column("v")), data).tolist() == [0.0] * 4


# ---- reward shifting ----


def test_a_shift_moves_the_optimal_values_by_a_constant():
    p, r, gamma = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([1.0, -1.0]), 0.9
    shifted = scored(reward_shifting(R, shift=-0.5), rows(r))
    before = np.linalg.solve(np.eye(2) - gamma * p, r)
    after = np.linalg.solve(np.eye(2) - gamma * p, shifted)
    assert before == pytest.approx([-2.328767, -5.068493], abs=1e-6)
    assert after == pytest.approx([-7.328767, -10.068493], abs=1e-6)
    assert after - before == pytest.approx([value_offset(-0.5, gamma)] * 2)


def test_a_group_baseline_does_not_feel_a_shift_but_an_episode_that_ends_does():
    assert scored(rloo(reward_shifting(R, shift=3.0)), rows([1, 0])).tolist() == scored(rloo(R), rows([1, 0])).tolist()
    short, long = [1.0], [0.25, 0.25, 0.25]
    shifted = [sum(x + 0.5 for x in path) for path in (short, long)]
    assert sum(short) > sum(long)
    assert shifted[0] < shifted[1]
