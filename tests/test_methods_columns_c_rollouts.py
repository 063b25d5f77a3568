"""Traps of methods that give a rollout one number: each would fail if it were fallen into."""

from __future__ import annotations

import math
from collections import Counter
from statistics import pstdev

import pytest

import guerdon as gd
from guerdon.methods.corver import co_occurrences, sentence_reward
from guerdon.methods.likelihood_family import likelihood_advantage, likelihood_reward
from guerdon.methods.p2s import faithful_steps, p2s
from guerdon.methods.rlr3 import rlr3
from guerdon.methods.router_r1 import router_r1
from guerdon.methods.rubrics_as_rewards import rubrics_as_rewards
from guerdon.methods.scope_rl import process_quality, scope_rl
from guerdon.methods.self_aligned import brevity, brevity_if_right, perplexity, self_aligned
from guerdon.methods.subsearch import subsearch
from guerdon.methods.toolrl import toolrl
from guerdon.methods.trade_r1 import trade_r1
from method_rows import group, values

C = gd.column
OK, MET = C("ok"), C("met", axis="criterion")


# ---- inputs on another scale ----


@pytest.mark.parametrize(
    ("method", "row"),
    [
        (rubrics_as_rewards(MET, C("w", axis="criterion")), {"met": [7.0], "w": [1.0]}),
        (likelihood_reward(C("lp", axis="answer")), {"lp": [-1.0, 0.1]}),
        (likelihood_advantage(C("lp", axis="answer"), kind="jepo"), {"lp": [0.1]}),
        (trade_r1(C("r"), C("s")), {"r": 1.0, "s": 5.0}),
        (toolrl(C("form"), C("calls")), {"form": 2.0, "calls": 3.0}),
        (process_quality(OK, C("label", axis="step")), {"ok": 1, "label": [0, 7]}),
        (scope_rl(C("sub", axis="sub"), OK), {"ok": 1, "sub": [1, 3]}),
    ],
)
def test_an_input_off_its_scale_is_unknown_not_another_number(method, row):
    assert values(method, [{"prompt": "p", **row}]) == [None]


# ---- P2S ----


def test_only_likeness_to_the_one_gold_chain_is_paid():
    """A sound chain that says something else raises no suffix of the gold one, though its answer is as probable."""
    steps = faithful_steps(*[C(n, axis="suffix") for n in ("logp", "masked", "of")], C("y"), C("s", axis="step"))
    copied = {"logp": [-1.0, -0.5], "masked": [-6.0, -3.0], "of": [0, 0], "y": -0.2, "s": [0, 0], "ok": 0, "form": 1}
    other = {**copied, "logp": [-6.0, -3.0]}
    mine, theirs = values(p2s(OK, C("form"), steps), [{"prompt": "p", **r} for r in (copied, other)])
    assert mine > 0 > theirs == pytest.approx(-0.2 / (1 + math.exp(-1)) / (0.5 + 1 / (1 + math.exp(-1))))


# ---- rubrics ----


def test_a_short_rubric_varies_more_and_a_long_answer_meets_more():
    def spread(items):
        met = [[1] * k + [0] * (items - k) for k in range(items + 1)]
        weights = [math.comb(items, k) for k in range(items + 1)]
        rows = [
            {"met": m, "categories": ["essential"] * items} for m, n in zip(met, weights, strict=True) for _ in range(n)
        ]
        return pstdev(values(rubrics_as_rewards(MET), rows))

    assert spread(2) == pytest.approx(2 * spread(8))
    names = {"categories": ["essential", "optional", "optional"]}
    brief, wordy = values(rubrics_as_rewards(MET), [{"met": [1, 0, 0], **names}, {"met": [1, 1, 1], **names}])
    assert wordy > brief


def test_free_text_from_an_extractor_is_no_value():
    number = gd.verify.number()
    read = [number(gd.Rollout(said, answer="12")).value for said in ("12 ", "a dozen or so", "")]
    assert read[0] == 1.0
    assert read[1] != 1.0
    assert read[2] != 1.0
    assert values(rlr3(MET, C("ess", axis="criterion")), [{"met": [None, 1], "ess": [1, 0]}]) == [None]


def test_an_audit_with_swapped_objects_finds_the_popular_false_pair():
    corpus = ["Sydney is the largest city of Australia"] * 12 + ["Canberra is the capital of Australia"]
    true, swapped = (co_occurrences(city, "Australia", corpus) for city in ("Canberra", "Sydney"))
    rows = [{"count": [true, swapped]}]
    honest, false = values(sentence_reward(C("count", axis="step")), rows)
    assert false > honest


# ---- SCOPE-RL ----


def test_the_judge_is_asked_about_the_steps_of_right_solutions_only():
    asked = []

    @gd.signal(axis="step", per="rollout", key="tests.step_labels", version=1)
    def label(rollout):
        asked.append(rollout.id)
        return [0.0, 2.0]

    rows = [{"id": str(ok), "prompt": "p", "completion": "ab", "steps": ["a", "b"], "ok": ok} for ok in (0, 1)]
    out = values(process_quality(OK, label), rows)
    assert asked == ["1"]
    assert out[0] == 0.0 < out[1] < 0.5  # even a right solution stays far below a 0/1 outcome's 1


# ---- SubSearch ----


def test_searches_and_answers_of_the_engine_must_agree_in_number():
    with pytest.raises(gd.AxisError):
        subsearch(OK, C("ans", axis="search"), C("dec", axis="search")).score(
            [{"ok": 0, "ans": [0.5], "dec": [0.5, 0.1]}]
        )


# ---- Router-R1 ----


def test_every_cost_of_the_batch_moves_the_percentiles_also_from_a_live_source():
    @gd.signal(key="tests.cost_of_calls", version=1)
    def cost(rollout) -> float:
        return rollout.extra["cost"]

    rows = [
        {"prompt": "p", "completion": "", "form": f, "q": q, "cost": c}
        for f, q, c in ((0, 1, 4.0), (1, 0, 9.0), (1, 1, 16.0), (1, 1, 25.0))
    ]
    live, written = (values(router_r1(C("form"), C("q"), x, alpha=1.0), rows) for x in (cost, C("cost")))
    assert live == written
    low, high = 2.0 + 0.05 * 3, 2.0 + 0.95 * 3
    assert written == pytest.approx([-1.0, 0.0, 1 - (4 - low) / (high - low), 0.0])


# ---- self-aligned reward ----


def cached(context, text, *, vocabulary=5000, trust=0.9):
    """Log-probabilities of words under a cache model: what was said before, the question included, is likely again."""
    seen, out = Counter(context.split()), []
    for word in text.split():
        said = seen.total()
        p = (trust * seen[word] / said if said else 0.0) + (1.0 - trust if said else 1.0) / vocabulary
        out.append(math.log(p))
        seen[word] += 1
    return out


QUESTION = "how many apples does tom have after giving three of his nine apples to ann"
ANSWER = "tom gives three of nine apples so tom has six apples"


def aligned(*answers, question=QUESTION, ok=1):
    rows = [{"ok": ok, "a": cached("", text), "qa": cached(question, text)} for text in answers]
    alone, given = perplexity(C("a", axis="word")), perplexity(C("qa", axis="given_word"))
    return values(self_aligned(C("ok") * 0.0, alone, given, weight=1.0), rows)


def test_quoting_the_question_is_rewarded_and_repeating_the_answer_is_not():
    plain, quoted, repeated = aligned(ANSWER, f"{QUESTION} {ANSWER}", " ".join([ANSWER] * 3))
    assert quoted > plain > repeated > 0


def test_generic_text_gains_little_and_the_first_words_decide_a_short_answer():
    plain, generic = aligned(ANSWER, "the result follows from the rules of arithmetic as shown")
    assert plain > 0.5 > generic
    on_topic, off_topic = aligned("tom six", "well six")
    assert on_topic > off_topic


def test_a_perplexity_that_rises_is_floored_only_in_the_relative_form():
    rows = [{"ok": 1, "a": 1.5, "q": 4.0}]
    assert values(self_aligned(OK, C("a"), C("q")), rows) == pytest.approx([0.8])
    assert values(self_aligned(OK, C("a"), C("q"), form="difference"), rows) == pytest.approx([1 - 0.2 * 2.5])
    assert values(self_aligned(OK, C("a"), C("q"), form="given"), rows) == pytest.approx([1 - 0.2 * 4])
    logs = self_aligned(OK, C("a"), C("q"), form="difference", logs=True)
    assert values(logs, rows) == pytest.approx([1 + 0.2 * math.log(1.5 / 4)])
    assert values(self_aligned(OK, C("a"), C("q"), form="difference", most=2.0), rows) == pytest.approx([1 - 0.2 * 0.5])
    rising = self_aligned(OK, C("a"), C("q"), C("t"), over=100, rising=True)
    assert values(rising, [{**rows[0], "t": t} for t in (0, 50, 200)]) == pytest.approx([1.0, 0.9, 0.8])
    with pytest.raises(ValueError, match="form="):
        self_aligned(OK, C("a"), C("q"), form="ratio")


def test_the_length_penalties_that_the_source_compares_with():
    rows = group(n=[50, 100, 150, 900], ok=[1, 1, 0, 1])
    assert values(brevity(C("n")), rows) == pytest.approx([1.0, 1.0, 1.0, -(900 - 300) / 900])
    mean, spread = 350.0, pstdev([50, 100, 900])
    expected = [1 - 2 / (1 + math.exp(-(n - mean) / (spread + 1e-5))) for n in (50, 100, 900)]
    assert values(brevity_if_right(C("n"), OK), rows) == pytest.approx([*expected[:2], 0.0, expected[2]])
    assert gd.Interval(-1, 1) == brevity(C("n")).range == brevity_if_right(C("n"), OK).range


def test_length_penalties_of_lone_equal_and_empty_rollouts():
    assert values(brevity(C("n")), group(n=[40])) == [0.0]
    assert values(brevity(C("n")), group(n=[0, 40])) == [None, -0.5]
    for ok, n in (([1], [40]), ([1, 0], [40, 90]), ([1, 1], [40, 40]), ([0, 0], [40, 90])):
        assert values(brevity_if_right(C("n"), OK), group(n=n, ok=ok)) == [0.0] * len(n)
    assert values(brevity_if_right(C("n"), OK), group(n=[None, 40, 80], ok=[0, 1, None])) == [0.0, 0.0, None]


def test_the_first_penalty_pays_a_short_wrong_answer_and_the_second_does_not():
    rows = group(n=[10, 100], ok=[0, 1])
    assert values(brevity(C("n")), rows)[0] > 0
    assert values(brevity_if_right(C("n"), OK), rows)[0] == 0.0


# ---- published defaults that no other example depends on ----


def test_five_criteria_are_kept_by_default():
    met = [[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]
    w = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    rows = group(met=met, w=[w] * 3, out=[0.0] * 3, n=[256] * 3)
    paid = gd.method("audio-rubrics", MET, C("w", axis="criterion"), C("out"), C("n"), gamma=1.0)
    assert values(paid, rows) == [1.0, 0.0, 0.0]  # the sixth ties in spread with the fifth, and is out with its weight


def test_a_failed_check_is_worth_nothing_and_costs_nothing_by_default():
    rows = group(f=[[0, 1], [-1, 0]], b=[[0, -1], [1, 0]], passed=[1, 0])
    assert values(gd.method("openrs", C("f", axis="opponent"), C("b", axis="opponent"), C("passed")), rows) == [
        1.0,
        0.0,
    ]


def test_repeated_step_rewards_count_once_by_default():
    rows = group(s=[[0.9, 0.9, 0.6], [0.3, 0.3, 0.3], [0.76, 0.76, 0.76]])
    level = values(gd.method("reward-sql", C("s", axis="step")), rows)
    assert level[0] / 0.9 < level[6] / 0.76  # the distinct mean of the first is 0.75, its plain one 0.8


def test_cost_has_no_say_in_the_main_runs():
    rows = [{"prompt": "p", "form": 1, "q": q, "cost": c} for q, c in ((0.8, 4.0), (0.8, 400.0))]
    assert values(router_r1(C("form"), C("q"), C("cost")), rows) == [0.8, 0.8]
