"""Methods that audit, disturb or correct a reward: the catalogue's worked examples as literals, and its pitfalls."""

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.baselines import dr_grpo, grpo
from guerdon.methods.fapo import fapo, fapo_judge
from guerdon.methods.noisy_reward import calibrated, flipped, reasoning_pattern
from guerdon.methods.variance_profile import (
    DenseProfile,
    amplification,
    dense_profile,
    dense_signal_verdict,
    guarded_zscore,
)

R = gd.column("r")


def rows(values, prompt="p", **columns):
    return [{"prompt": prompt, "r": v, **{k: c[i] for k, c in columns.items()}} for i, v in enumerate(values)]


def scored(reward, data):
    return reward.score(data).values


# ---- variance profile ----


DENSE = [0.1, 0.4, 0.2, 0.3]


@pytest.mark.parametrize("lam", [1.0, 0.01])
def test_the_z_score_of_an_all_fail_group_does_not_feel_the_bonus_weight(lam):
    z = scored(gd.shape.zscore(R * lam), rows(DENSE))
    assert z == pytest.approx([-1.341641, 1.341641, -0.447214, 0.447214], abs=1e-6)
    assert scored(dr_grpo(R * lam), rows(DENSE)) == pytest.approx(np.array([-0.15, 0.15, -0.05, 0.05]) * lam)


def test_a_guarded_z_score_cannot_blow_a_small_spread_up():
    assert scored(guarded_zscore(R * 0.01, floor=0.1), rows(DENSE)) == pytest.approx([-0.015, 0.015, -0.005, 0.005])
    assert scored(guarded_zscore(R, floor=0.1), rows([2.0, 2.0])).tolist() == [0.0, 0.0]


def test_amplification_is_the_batch_deviation_over_the_groups_and_unknown_without_spread():
    data = rows([0.0, 0.02], "a") + rows([1.0, 0.0], "b") + rows([1.0, 1.0], "c")
    out = amplification(R).score(data).scores
    batch = np.std([0, 0.02, 1, 0, 1, 1])
    assert out.values[[0, 2]] == pytest.approx([batch / 0.01, batch / 0.5])
    assert out.known.tolist() == [True, True, True, True, False, False]


def test_a_dense_profile_counts_groups_without_any_success():
    data = rows([0, 0], "a", d=[0.1, 0.3]) + rows([1, 0], "b", d=[0.5, 0.5])
    profile = dense_profile(R.score(data).framed, gd.column("d").score(data).framed, top=1.0)
    assert profile.all_fail == 0.5
    assert profile.mastery == pytest.approx(0.35)
    assert profile.variance == pytest.approx(0.005)


def test_the_verdict_flags_variance_that_mastery_does_not_shrink_while_most_groups_fail():
    grows = [DenseProfile(0.9, m, v) for m, v in ((0.1, 0.1), (0.5, 0.2), (0.9, 0.3))]
    shrinks = [DenseProfile(0.9, m, v) for m, v in ((0.1, 0.3), (0.5, 0.2), (0.9, 0.1))]
    constant = [DenseProfile(0.9, m, 0.2) for m in (0.1, 0.5)]
    assert dense_signal_verdict(grows).safe is False
    assert dense_signal_verdict(shrinks).safe is True
    assert dense_signal_verdict(constant).safe is False
    assert dense_signal_verdict(constant).correlation == 0.0
    assert dense_signal_verdict([DenseProfile(0.2, p.mastery, p.variance) for p in grows]).safe is True
    assert dense_signal_verdict([DenseProfile(0.9, 0.1, 0.0)] * 3).safe is True
    assert dense_signal_verdict(grows[:1]).safe is None
    assert dense_signal_verdict([DenseProfile(0.9, 0.5, v) for v in (0.1, 0.2)]).safe is None
    assert dense_signal_verdict([]).safe is None


def test_an_epsilon_hides_the_effect_only_where_the_weight_is_about_as_small():
    large, small, tiny = (scored(gd.shape.zscore(R * lam, eps=1e-6), rows(DENSE))[1] for lam in (1.0, 1e-2, 1e-6))
    assert small == pytest.approx(large, rel=1e-3)
    assert tiny < 0.2 * large


def test_mixed_groups_hide_the_amplification_in_an_average_but_not_by_class():
    task, dense = gd.column("t"), gd.column("t") + R * 0.01
    data = [row for p in "abcd" for row in rows([0.0, 1.0], p, t=[0, 1])] + rows([0.0, 1.0], "e", t=[0, 0])
    factor, kind = amplification(dense).score(data).values[::2], gd.shape.group_class(task).score(data).values[::2]
    assert factor[kind == gd.shape.ALL_FAIL].tolist() == pytest.approx([100], rel=0.1)
    assert factor[kind == gd.shape.MIXED].tolist() == pytest.approx([1.0] * 4, abs=0.05)
    assert np.median(factor) < 1.05


def test_a_correlation_of_tiny_variances_is_still_one():
    tiny = [DenseProfile(0.9, m, v) for m, v in ((0.1, 1e-300), (0.5, 2e-300), (0.9, 3e-300))]
    assert dense_signal_verdict(tiny).correlation == pytest.approx(1.0)
    assert dense_signal_verdict(tiny).safe is False


def test_a_single_look_is_no_verdict_and_a_profile_needs_something_to_look_at():
    assert dense_signal_verdict([DenseProfile(0.9, 0.1, 0.0)]).safe is None
    known, unknown = R.score(rows([1.0, 0.0])).framed, R.score(rows([None, None])).framed
    with pytest.raises(ValueError, match="above 0"):
        dense_profile(known, known, top=0.0)
    with pytest.raises(ValueError, match="known task and dense scores"):
        dense_profile(known, unknown, top=1.0)


# ---- noisy rewards ----


PHRASES = ["let me check", "therefore", "wait", "thus"]
VALID = gd.column("ok")


def test_three_phrases_give_fifteen_hundredths():
    out = reasoning_pattern(phrases=PHRASES).score([{"completion": "Wait. Let me check: 2. Therefore 2."}])
    assert out.values[0] == pytest.approx(0.15)


def test_a_phrase_hits_inside_a_word_and_short_text_has_no_repetition():
    assert reasoning_pattern(phrases=PHRASES).score([{"completion": "An enthusiast."}]).values[0] == pytest.approx(0.05)


def test_repetition_and_forbidden_marks_are_subtracted():
    looped = "wait " * 100
    out = reasoning_pattern(phrases=PHRASES).score([{"completion": looped}, {"completion": "wait user: x"}])
    # 81 20-grams of one word, one of them distinct and repeated: 1/81 is taken off.
    assert out.values.tolist() == [pytest.approx(0.05 - 1 / 81), 0.0]


def test_a_low_reward_is_softened_and_a_high_one_stays():
    reward = calibrated(R, gd.column("rpr"), VALID)
    data = rows([0.3, 0.6, 0.3, 0.499], rpr=[0.15, 0.9, 0.15, 1.0], ok=[1, 1, 0, 1])
    assert scored(reward, data) == pytest.approx([0.315, 0.6, 0.0, 0.599])


def test_a_flip_turns_whole_groups_and_observed_means_follow_the_law():
    rng = np.random.default_rng(1)
    data = []
    for p in range(4000):
        data += rows((rng.random(2) < 0.75).astype(float), str(p))
    out = flipped(R, share=0.4, seed=3).score(data)
    changed = (out.values != [d["r"] for d in data]).reshape(-1, 2)
    assert (changed[:, 0] == changed[:, 1]).all()
    assert out.values.mean() == pytest.approx(0.55, abs=0.02)
    assert pytest.approx(0.41) == (1 - 2 * 0.4) * 0.05 + 0.4
    assert pytest.approx(0.2) == (1 - 2 * 0.4)


def test_flips_go_on_from_batch_to_batch_and_repeat_with_the_seed():
    data = [rows([1.0], str(p)) for p in range(50)]
    session = gd.Session()
    one = [flipped(R, share=0.5, seed=7).score(d, session=session).values[0] for d in data]
    whole = flipped(R, share=0.5, seed=7).score([r for d in data for r in d]).values
    assert one == whole.tolist()
    assert len(set(one)) == 2


def test_stuffing_phrases_earns_the_whole_pattern_reward_whatever_the_answer():
    phrases = [f"phrase {i:02d}" for i in range(40)]
    out = reasoning_pattern(phrases=phrases).score([{"completion": ". ".join(phrases)}, {"completion": "2 + 2 = 4"}])
    assert out.values.tolist() == [1.0, 0.0]


def test_a_phrase_listed_twice_in_another_case_counts_once_and_an_empty_one_never():
    out = reasoning_pattern(phrases=["Wait", "WAIT", ""]).score([{"completion": "wAit."}])
    assert out.values[0] == pytest.approx(0.05)


def test_a_passage_of_twenty_words_said_twice_is_one_repeated_gram_of_twenty_one():
    passage = " ".join(f"w{i}" for i in range(20))
    phrases = [f"w{i}" for i in range(20)]
    out = reasoning_pattern(phrases=phrases).score([{"completion": f"{passage} {passage}"}, {"completion": passage}])
    assert out.values == pytest.approx([1 - 1 / 21, 1.0])


def test_flips_shrink_the_gap_between_a_strong_and_a_weak_policy():
    observed = {}
    for accuracy in (0.75, 0.05):
        rng = np.random.default_rng(2)
        data = [rows([float(rng.random() < accuracy)], str(p))[0] for p in range(20000)]
        observed[accuracy] = flipped(R, share=0.4, seed=5).score(data).values.mean()
    assert observed[0.75] == pytest.approx(0.55, abs=0.01)
    assert observed[0.05] == pytest.approx(0.41, abs=0.01)
    assert (observed[0.75] - observed[0.05]) / 0.7 == pytest.approx(0.2, abs=0.02)


# ---- fapo ----


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((1, 2, 5), [1.9843, 0.6614, -0.6614]),
        ((3, 2, 3), [1.0801, 0, -1.0801]),
        ((5, 2, 1), [0.6614, -0.6614, -1.9843]),
    ],
)
def test_a_flawed_positive_is_pushed_up_early_and_down_late(shares, expected):
    clean, flawed, wrong = shares
    data = rows([1] * (clean + flawed) + [0] * wrong, e=[-1] * clean + [2] * flawed + [None] * wrong)
    out = scored(grpo(fapo(R, gd.column("e"))), data)
    assert [out[0], out[clean], out[-1]] == pytest.approx(expected, abs=1e-4)


def test_a_judge_failure_leaves_a_right_rollout_unknown_and_is_not_asked_about_a_wrong_one():
    out = fapo(R, gd.column("e")).score(rows([1, 0], e=[None, None])).scores
    assert out.known.tolist() == [False, True]
    assert out.values[1] == -1.0


def test_the_judges_own_reward_falls_with_distance():
    def judged(p, g, n=8):
        data = [{"p": p, "g": g, "n": n}]
        return fapo_judge(gd.column("p"), gd.column("g"), gd.column("n")).score(data).values[0]

    assert judged(3, 5) == 0.75
    assert judged(-1, -1) == 1.0
    assert judged(2, -1) == -1.0
    assert judged(-1, 5) == -1.0
    assert judged(None, 5) == -1.0
    assert judged(8, 5) == -1.0
    assert judged(2.5, 5) == -1.0


def test_the_penalty_sets_what_a_flawed_positive_earns_and_an_index_below_minus_one_is_none():
    data = rows([1, 1, 1, 0], e=[-1, 0, -2, -2])
    out = fapo(R, gd.column("e"), penalty=0.25).score(data)
    assert out.scores.values[[0, 1, 3]].tolist() == [1.0, 0.75, -1.0]
    assert out.scores.known.tolist() == [True, True, False, True]
    assert out.unknown.total() == 1  # counted, not taken for clean
