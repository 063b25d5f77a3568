"""Methods over learned scores: their worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.discretised import PairAgreement, discretised, dropout_is_off, pair_agreement
from guerdon.methods.gpm import gpm
from guerdon.methods.irrl import irrl
from guerdon.methods.par import par
from guerdon.methods.uncertainty import uncertainty_aware
from method_rows import group, values, with_tokens
from shape_strategies import UNIT, given

C = gd.column


# Discretised reward models.

MEANS, TRUTH = [1.00, 1.05, 1.10, 2.00, 2.04], [0, 0, 0, 1, 1]


def passes_with(mean, spread=0.1):
    """Two passes of that mean and population deviation."""
    return [[m - spread, m + spread] for m in mean]


def test_scores_within_the_models_own_noise_share_a_cluster():
    rows = group(passes=passes_with(MEANS), truth=TRUTH)
    clusters = discretised(C("passes", axis="pass"))
    assert values(clusters, rows) == [0, 0, 0, 1, 1]
    raw, binned = C("passes", axis="pass").mean().score(rows).framed, clusters.score(rows).framed
    truth = C("truth").score(rows).framed
    assert pair_agreement(raw, truth) == PairAgreement(1.0, 0.0)
    assert pair_agreement(binned, truth) == PairAgreement(1.0, 1.0)


def test_equal_answers_get_equal_advantages():
    rows = group(passes=passes_with(MEANS))
    raw = gd.credit.group_relative(C("passes", axis="pass").mean())
    binned = gd.credit.group_relative(discretised(C("passes", axis="pass")))
    assert values(raw, rows) == pytest.approx([-0.919, -0.814, -0.709, 1.180, 1.264], abs=1e-3)
    assert values(binned, rows) == pytest.approx([-0.816] * 3 + [1.225] * 2, abs=1e-3)


def test_chained_clusters_lose_the_signal_and_can_be_rescued():
    rows = group(passes=passes_with([0.0, 0.1, 0.2, 0.3, 0.4]))
    assert values(discretised(C("passes", axis="pass")), rows) == [0.0] * 5
    rescued = values(discretised(C("passes", axis="pass"), rescue=True), rows)
    assert rescued == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


def test_a_model_without_dropout_is_noticed():
    fused = C("passes", axis="pass").score(group(passes=[[1.0, 1.0], [2.0, 2.0]])).framed
    live = C("passes", axis="pass").score(group(passes=[[1.0, 1.1], [2.0, 2.0]])).framed
    single = C("passes", axis="pass").score(group(passes=[[1.0], [2.0]])).framed
    assert [dropout_is_off(x) for x in (fused, live, single)] == [True, False, False]


def test_a_single_pass_or_a_single_response_is_no_error():
    assert values(discretised(C("passes", axis="pass")), group(passes=[[1.0], [1.0], [1.01]])) == [0, 0, 1]
    assert values(discretised(C("passes", axis="pass")), [{"passes": [1.0, 2.0]}, {"passes": [None, 1.0]}]) == [0, None]
    alone = C("x").score([{"x": 1.0}]).framed
    assert pair_agreement(alone, alone) == PairAgreement(None, None)


def test_pairs_of_different_prompts_are_not_compared():
    rows = [{"prompt": p, "s": s, "q": q} for p, s, q in (("a", 1, 1), ("b", 0, 0), ("a", 0, 1), ("b", 1, 1))]
    agreement = pair_agreement(C("s").score(rows).framed, C("q").score(rows).framed)
    assert agreement == PairAgreement(1.0, 0.0)


def test_a_cluster_can_be_paid_by_the_mean_of_its_members():
    rows = group(passes=passes_with(MEANS))
    paid = discretised(C("passes", axis="pass"), values="mean")
    assert values(paid, rows) == pytest.approx([1.05, 1.05, 1.05, 2.02, 2.02])


def test_a_score_that_cannot_tell_better_from_worse_does_not_discriminate():
    rows = group(s=[1.0, 1.0, 2.0], q=[0, 1, 2])
    agreement = pair_agreement(C("s").score(rows).framed, C("q").score(rows).framed)
    assert agreement == PairAgreement(2 / 3, None)


def test_the_deviation_of_the_passes_is_the_populations():
    rows = group(passes=passes_with([0.0, 0.15]))  # 0.15 > sqrt(2) 0.1, but not sqrt(2) 0.1414
    assert values(discretised(C("passes", axis="pass")), rows) == [0, 1]


# Internally rewarded RL.


def test_linear_and_logarithmic_gains_over_the_prior():
    rows = [{"q": 0.7}, {"q": 0.05}]
    assert values(irrl(C("q"), 0.1), rows) == pytest.approx([0.6, 0])
    assert values(irrl(C("q"), 0.1, form="linear"), rows) == pytest.approx([0.6, -0.05])
    assert values(irrl(C("q"), 0.1, form="log"), rows) == pytest.approx([1.945910, -0.693147], abs=5e-7)
    assert values(irrl(C("q"), 0.1, form="clipped-log"), rows) == pytest.approx([1.945910, 0], abs=5e-7)


def test_a_probability_of_zero_has_a_finite_logarithmic_reward():
    assert values(irrl(C("q"), 0.1, form="log"), [{"q": 0.0}]) == pytest.approx([math.log(1e-8) - math.log(0.1)])


def test_the_logarithm_amplifies_the_noise_of_an_immature_discriminator():
    noisy = np.clip(0.1 + np.random.default_rng(0).normal(0, 0.1, 10_000), 1e-3, 1)
    rows = [{"q": float(q)} for q in noisy]
    log_variance = np.var(values(irrl(C("q"), 0.1, form="log"), rows))
    variance = np.var(values(irrl(C("q"), 0.1), rows))
    assert log_variance == pytest.approx(3.470, abs=5e-4)
    assert variance == pytest.approx(0.00338, abs=5e-6)
    assert log_variance > 100 * variance


def test_below_chance_nothing_is_told_apart_and_the_range_is_that_of_gains():
    assert values(irrl(C("q"), 0.1), [{"q": 0.01}, {"q": 0.09}]) == [0.0, 0.0]
    assert irrl(C("q", range=(0, 1)), 0.1).range == gd.Interval(0.0, 0.9)


def test_a_prior_that_is_not_that_of_the_labels_turns_a_gain_into_a_loss():
    assert values(irrl(C("q"), C("p"), form="linear"), [{"q": 0.3, "p": 0.1}, {"q": 0.3, "p": 0.5}]) == pytest.approx(
        [0.2, -0.2]
    )
    assert values(irrl(C("q"), C("p"), form="log"), [{"q": 0.3, "p": 0.0}]) == [None]


# PAR.

REFS = C("refs", axis="reference")


def test_the_reward_is_the_probability_of_beating_a_reference():
    assert values(par(C("r"), REFS), [{"r": 1.0, "refs": [0.5]}]) == pytest.approx([0.6224593])
    assert values(par(C("r"), REFS), [{"r": 2.0, "refs": [1, 3]}]) == [0.5]
    assert values(par(C("r"), REFS, C("n")), [{"r": 5.0, "refs": [3.5], "n": 400}]) == pytest.approx([0.6224593])
    assert values(par(C("r"), REFS), [{"r": 1.0, "refs": []}, {"r": -1e6, "refs": [0]}]) == [None, 0.0]


def test_the_alternatives_at_known_points():
    row = [{"r": 2.0, "refs": [1.0, 3.0]}]
    assert values(par(C("r"), REFS, form="centred"), row) == [0.0]
    assert values(par(C("r"), REFS, form="tanh"), row) == pytest.approx([0.0])
    assert values(par(C("r"), REFS, form="arctan"), [{"r": 1, "refs": [0, 0]}]) == pytest.approx([math.pi / 4])
    assert values(par(C("r"), REFS, form="shifted"), [{"r": 3, "refs": [0]}]) == [0.5]
    top = 2 + 1.0364 * (1 + 1e-5)
    assert values(par(C("r"), REFS, form="log-sigmoid"), row) == pytest.approx([-math.log1p(math.exp(top - 2))])
    assert values(par(C("r"), REFS, form="ceiling", ceiling=0.5), row) == [0.5]
    with pytest.raises(ValueError, match="choose one of par"):
        par(C("r"), REFS, form="softmax")


def test_running_statistics_include_the_batch_they_shape():
    session = gd.Session()
    expr = par(C("r"), REFS, form="zscore")
    expr.score([{"r": 1.0}, {"r": 2.0}], session=session)
    assert values(expr, [{"r": 3.0}], session=session) == pytest.approx([1 / 0.8164966])
    assert values(par(C("r"), REFS, form="minmax"), [{"r": 2.0}, {"r": 2.0}]) == [0, 0]


def test_group_normalisation_undoes_affine_shaping_but_not_this():
    rows = group(r=[0.0, 1.0, 4.0], refs=[[0.0]] * 3)
    plain = values(gd.credit.group_relative(C("r")), rows)
    assert values(gd.credit.group_relative(C("r") * 3 - 1), rows) == pytest.approx(plain)
    assert values(gd.credit.group_relative(par(C("r"), REFS)), rows) != pytest.approx(plain, abs=0.05)


def test_a_policy_that_beats_all_references_saturates_the_reward():
    rows = group(r=[20.0, 25.0], refs=[[0.0]] * 2)
    assert np.std(values(par(C("r"), REFS), rows)) < 1e-8


def test_bounded_shaping_slows_hacking_of_a_proxy_down():
    true, proxy = np.array([0.0, 1.0, -1.0]), [0.0, 1.0, 5.0]

    def after(rewards):
        logits = np.zeros(3)
        for _ in range(400):
            p = np.exp(logits - logits.max())
            p /= p.sum()
            logits = logits + 0.05 * p * (rewards - p @ rewards)
        p = np.exp(logits - logits.max())
        return float(true @ (p / p.sum()))

    shaped = np.array(values(par(C("r"), REFS), group(r=proxy, refs=[[0.0]] * 3)))
    assert after(np.array(proxy)) == pytest.approx(-0.987, abs=1e-3)
    assert after(shaped) == pytest.approx(-0.713, abs=1e-3)


def test_tokens_get_the_reward_at_the_last_one_and_their_kl_term_everywhere():
    tokens = par(C("r"), REFS, log_ratio=C("ratio", axis="token"))
    row = {"r": 1.0, "refs": [0.5], **with_tokens([2, 1]), "ratio": [1.0, -2.0, 0.5]}
    assert values(tokens, [row]) == pytest.approx([-0.005, 0.01, 0.6224593 - 0.0025])
    assert values(par(C("r"), REFS, log_ratio=C("ratio", axis="token"), kl=0.0), [row]) == pytest.approx(
        [0.0, 0.0, 0.6224593]
    )
    assert values(tokens, [{**row, "ratio": [1.0, None, 0.5]}, {**row, "refs": []}]) == [None] * 6


def test_the_shaped_score_neither_over_nor_underflows():
    assert values(par(C("r"), REFS), [{"r": r, "refs": [0]} for r in (-1e300, 1e300, 0)]) == [0.0, 1.0, 0.5]


def test_running_forms_divide_by_one_at_first_and_move_with_what_they_see():
    equal = [{"r": 2.0}, {"r": 2.0}]
    assert values(par(C("r"), REFS, form="zscore"), equal) == [0.0, 0.0]
    clipped, session = par(C("r"), REFS, form="running-clip"), gd.Session()
    assert values(clipped, [{"r": 1.0}, {"r": 2.0}], session=session) == [1.0, 2.0]
    assert values(clipped, [{"r": 3.0}], session=session) == pytest.approx([2 + 0.8164966])  # 3 before, 2.82 now
    moving, session = par(C("r"), REFS, form="minmax"), gd.Session()
    seen = [values(moving, [{"r": 1.0}, {"r": r}], session=session)[0] for r in (2.0, 0.0, -8.0)]
    assert seen == pytest.approx([0.0, 0.5, 0.9])


# Ensembles.

MEMBERS = C("members", axis="member")


def test_disagreement_makes_moving_away_from_the_reference_dear():
    row = [{"members": [1, 2, 3], "ratio": 0.5}]
    assert values(uncertainty_aware(MEMBERS, C("ratio")), row) == pytest.approx([1.95])
    assert values(gd.shape.ensemble_lower_bound(MEMBERS), row) == [1.0]
    assert values(gd.shape.ensemble_min(MEMBERS), row) == [1.0]
    assert values(uncertainty_aware(MEMBERS, C("ratio")), [{"members": [1], "ratio": 0.5}]) == [None]


def test_below_the_reference_the_penalty_is_a_bonus_unless_it_is_cut():
    row = [{"members": [1, 2, 3], "ratio": -0.5}]
    assert values(uncertainty_aware(MEMBERS, C("ratio")), row) == pytest.approx([2.05])
    assert values(uncertainty_aware(MEMBERS, C("ratio"), only_above=True), row) == pytest.approx([2.0])


def test_a_lower_bound_picks_as_well_with_less_variance():
    generator = np.random.default_rng(0)
    noise = generator.uniform(0.1, 2, 50)
    picks = {"mean": [], "bound": []}
    member = gd.Axis.under(gd.Axis.under(gd.Axis("prompt", 1), [50], "rollout"), np.full(50, 8), "member")
    for _ in range(500):
        true = generator.normal(0, 1, 50)
        seen = true[:, None] + noise[:, None] * generator.normal(0, 1, (50, 8))
        scores = gd.Scores.of(member, seen.reshape(-1))
        picks["mean"].append(true[np.argmax(gd.shape.ensemble_mean(scores).values)])
        picks["bound"].append(true[np.argmax(gd.shape.ensemble_lower_bound(scores).values)])
    assert np.var(picks["bound"]) < np.var(picks["mean"])
    assert np.mean(picks["bound"]) == pytest.approx(np.mean(picks["mean"]), abs=0.15)


@given(st.lists(UNIT, min_size=2, max_size=5), st.floats(0.1, 10))
def test_unscaled_members_make_the_disagreement_meaningless(scores, scale):
    agree = [{"members": [s, s]} for s in scores]
    assert set(values(gd.shape.ensemble_spread(MEMBERS), agree)) == {0.0}
    off = [{"members": [s, scale * s + 1]} for s in scores]
    measured = values(gd.shape.ensemble_spread(MEMBERS), off)
    assert measured == pytest.approx([abs((scale - 1) * s + 1) * math.sqrt(0.5) for s in scores], abs=1e-9)


def test_a_bound_needs_two_members_and_two_say_little_about_a_variance():
    assert values(gd.shape.ensemble_lower_bound(MEMBERS), [{"members": [1]}]) == [None]
    assert values(gd.shape.ensemble_min(MEMBERS), [{"members": [1]}]) == [1.0]
    draws = np.random.default_rng(0).normal(0, 1, (2000, 10))
    error = {}
    for count in (2, 10):
        spread = values(gd.shape.ensemble_spread(MEMBERS), [{"members": row[:count].tolist()} for row in draws])
        error[count] = np.std(np.square(spread))
    assert error[2] == pytest.approx(math.sqrt(2), abs=0.15)  # of a variance of 1
    assert error[10] == pytest.approx(math.sqrt(2 / 9), abs=0.05)


def test_an_error_that_all_members_share_shows_in_no_spread():
    wrong_alike = [{"members": [1, 2, 3]}, {"members": [101, 102, 103]}]
    assert values(gd.shape.ensemble_spread(MEMBERS), wrong_alike) == [1.0, 1.0]


# GPM.


def at(*degrees):
    return [[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees]


V = C("v", axis="dimension")


def test_a_cycle_of_preferences_has_a_score_and_sums_to_nothing():
    ring = group(v=at(0, 120, 240))
    matrix = gd.shape.skew_preference(V).score(ring).framed.values.reshape(3, 3)
    assert [matrix[0, 1], matrix[1, 2], matrix[2, 0]] == pytest.approx([0.866025] * 3, abs=5e-7)
    chance = gd.shape.sigmoid(gd.shape.skew_preference(V), 1 / 0.1).score(ring).framed.values.reshape(3, 3)
    assert (chance[0, 1], chance[1, 0]) == pytest.approx((0.999827, 0.000173), abs=5e-7)
    assert values(gpm(V), ring) == pytest.approx([0, 0, 0], abs=1e-12)
    assert values(gpm(V, probability=True), ring) == pytest.approx([0.5] * 3)


def test_the_score_is_the_mean_over_the_other_members():
    assert values(gpm(V), group(v=at(0, 30, 90))) == pytest.approx([0.75, (0.8660254 - 0.5) / 2, -(1 + 0.8660254) / 2])
    assert values(gpm(V), group(v=at(10))) == [None]


def test_scores_depend_on_whom_one_is_compared_with():
    weak, strong = values(gpm(V), group(v=at(0, 60)))[0], values(gpm(V), group(v=at(0, -60)))[0]
    assert weak > 0 > strong


def test_a_vector_without_direction_is_unknown_and_left_out_of_the_others():
    rows = group(v=[*at(0, 90), [0.0, 0.0]])
    assert values(gpm(V), rows) == pytest.approx([1.0, -1.0, None])
    assert values(gpm(V), group(v=[[1.0, 0.0, 0.0]] * 2)) == [None, None]


def test_bradley_and_terry_can_not_fit_a_cycle_but_the_embedding_does():
    wins = group(beats=[[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]])
    b = np.array(values(gd.shape.bradley_terry(C("beats", axis="opponent")), wins))
    assert -np.mean(np.log(1 / (1 + np.exp(b[[1, 2, 0]] - b)))) == pytest.approx(math.log(2))
    chance = gd.shape.sigmoid(gd.shape.skew_preference(V), 10).score(group(v=at(0, 120, 240))).framed.values
    assert (chance.reshape(3, 3)[[0, 1, 2], [1, 2, 0]] > 0.5).all()


def test_strengths_weigh_each_pair_of_coordinates():
    # v = (1, 0, 0, 1) / sqrt(2), w = (0, 1, 1, 0) / sqrt(2): the two pairs give 1/2 and -1/2.
    rows = group(v=[[1, 0, 0, 1], [0, 1, 1, 0]], lam=[[1.0, 0.5]] * 2)
    assert values(gpm(V), rows) == pytest.approx([0.0, 0.0])
    assert values(gpm(V, C("lam", axis="block")), rows) == pytest.approx([0.25, -0.25])


def test_a_low_temperature_saturates_the_chance():
    rows = group(v=at(0, 60))
    sharp, soft = (values(gpm(V, probability=True, temperature=t), rows)[0] for t in (0.1, 10.0))
    assert sharp > 0.999
    assert 0.5 < soft < 0.53


def test_angles_fitted_to_cyclic_preferences_reach_every_label():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 3)
    for _ in range(300):  # gradient of -log sigmoid(sin(b - a) / 0.1) for the pairs 1 > 2 > 3 > 1
        slope = 1 / (1 + np.exp(np.sin(np.roll(angle, -1) - angle) / 0.1)) * np.cos(np.roll(angle, -1) - angle) / 0.1
        angle = angle - 0.01 * (slope - np.roll(slope, 1))
    chance = gd.shape.sigmoid(gd.shape.skew_preference(V), 10)
    fitted = chance.score(group(v=[[math.cos(a), math.sin(a)] for a in angle])).framed.values.reshape(3, 3)
    assert (fitted[[0, 1, 2], [1, 2, 0]] > 0.5).all()
