"""The TRL connector: its contract without TRL, and one complete training run of a tiny random model on CPU."""

from __future__ import annotations

import asyncio
import gc
import math
import pickle

import pytest

import guerdon as gd


def batch(**columns):
    count = len(next(iter(columns.values())))
    return {
        "prompts": ["p"] * count,
        "completions": [f"so {i}" for i in range(count)],
        "completion_ids": [[i] for i in range(count)],
        **columns,
    }


class Log:
    """Receives what reward functions log, as TRL's trainer does."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.extras: dict[str, list] = {}

    def given(self):
        return {"log_metric": self.metrics.__setitem__, "log_extra": self.extras.__setitem__, "trainer_state": None}


def test_unknown_rows_are_none_and_the_components_are_logged():
    right = gd.verify.number().named("right")
    reward = (right + 0.5 * gd.column("bonus").named("bonus")).named("total")
    score, log = reward.for_trl("mathematics"), Log()
    assert score.__name__ == "mathematics"
    got = score(**batch(answer=[0, "7", None, 3], bonus=[1, 0, 1, None]), **log.given())
    assert got == [1.5, 0.0, None, None]
    assert log.metrics == {
        "mathematics/unknown": 0.5,
        "mathematics/right": 2 / 3,
        "mathematics/bonus": 2 / 3,
        "mathematics/total": 0.75,
    }
    assert log.extras["mathematics/right"] == [1.0, 0.0, None, 1.0]
    assert log.extras["mathematics/reason"] == ["", "", "no reference answer", "column 'bonus' is missing"]


def test_logging_can_be_left_out_and_callers_without_logs_are_served():
    log = Log()
    assert gd.column("x").for_trl("quiet", log_components=False)(**batch(x=[1]), **log.given()) == [1.0]
    assert (log.metrics, log.extras) == ({}, {})
    assert gd.column("x").for_trl("plain")(**batch(x=[1])) == [1.0]


@pytest.mark.parametrize(
    ("unknown", "expected"), [("drop", [1.0, None, 0.0]), (-2.0, [1.0, -2.0, 0.0]), ("group-mean", [1.0, 0.5, 0.0])]
)
def test_the_caller_says_what_unknown_becomes(unknown, expected):
    assert gd.column("x").for_trl("policy", unknown=unknown)(**batch(x=[1, None, 0])) == expected


def test_unknown_can_be_an_error():
    with pytest.raises(gd.UnknownScoreError):
        gd.column("x").for_trl("strict", unknown="raise")(**batch(x=[1, None]))


def test_a_value_that_float32_can_not_hold_never_reaches_the_trainer():
    assert gd.column("x").for_trl("large")(**batch(x=[1e39, -1e39, 3e38])) == [None, None, 3e38]


def test_names_are_unique_for_different_rewards_and_stable_for_one():
    one, two = gd.column("u1").for_trl("same"), gd.column("u2").for_trl("same")
    assert (one.__name__, two.__name__, gd.column("u1").for_trl("same").__name__) == ("same", "same_2", "same")
    del one, two
    gc.collect()
    assert gd.column("u3").for_trl("same").__name__ == "same"  # names of functions that are gone are free
    assert gd.verify.exact.named("my_name").for_trl().__name__ == "my_name"


def test_columns_map_to_fields_and_all_others_are_extra():
    @gd.signal
    def look(rollout) -> float:
        assert (rollout.answer, rollout.id, rollout.tokens) == ("7", "row-1", [0])
        assert rollout.extra == {"level": 3, "steps": "of the reference"}
        return 1.0

    score = look.for_trl("mapped", columns={"answer": "solution"})
    assert score(**batch(solution=["7"], id=["row-1"], level=[3], steps=["of the reference"])) == [1.0]
    with pytest.raises(gd.DataError, match=r"no column solution \(for answer\)"):
        score(**batch(level=[3]))
    with pytest.raises(gd.DataError, match="can't map reference"):
        look.for_trl("mapped", columns={"reference": "solution"})


def test_a_group_is_a_run_of_rows_with_one_prompt_or_of_a_given_size():
    @gd.signal(per="prompt")
    def size(group) -> list[float]:
        return [float(len(group))] * len(group)

    rows = {"prompts": ["a", "a", "b", "a"], "completions": ["x"] * 4, "completion_ids": [[1]] * 4}
    assert size.for_trl("runs")(**rows) == [2.0, 2.0, 1.0, 1.0]
    assert size.for_trl("runs")(**rows, answer=[1, 2, 2, 2]) == [1.0] * 4
    assert size.for_trl("runs", group_size=4)(**rows) == [4.0] * 4
    with pytest.raises(gd.DataError, match="no whole number of groups of 3"):
        size.for_trl("runs", group_size=3)(**rows)


def test_conversations_are_graded_by_what_the_assistant_said():
    chat = [
        {"role": "assistant", "content": "Let me look.", "tool_calls": []},
        {"role": "tool", "content": "18"},
        {"role": "assistant", "content": "It is 17."},
    ]
    score = gd.verify.number().for_trl("chat")
    prompts = [[{"role": "user", "content": "12 + 6?"}]]
    assert score(prompts=prompts, completions=[chat], completion_ids=[[1]], answer=["18"]) == [0.0]


def test_a_reward_on_a_finer_axis_is_refused():
    with pytest.raises(gd.DataError, match="not per step: reduce it"):
        gd.column("x", axis="step").for_trl("steps")(**batch(x=[[1, 2]]))


def test_a_reward_that_waits_is_async_and_one_that_does_not_is_sync():
    @gd.signal(range=(0, 1), needs="lm")
    async def slow(rollout) -> float:
        await asyncio.sleep(0.01)
        return 1.0

    assert asyncio.iscoroutinefunction(slow.for_trl("slow").__call__)
    assert asyncio.run(slow.for_trl("slow")(**batch(x=[1, 2]))) == [1.0, 1.0]
    assert slow.for_trl("slow", asynchronous=False)(**batch(x=[1, 2])) == [1.0, 1.0]
    assert not asyncio.iscoroutinefunction(gd.column("x").for_trl("fast").__call__)


@gd.transform("test.count_batches", version=1, initial=lambda: {"n": 0})
def count_batches(x: gd.Scores, *, state: dict | None = None) -> tuple[gd.Scores, dict]:
    """Adds how many batches were scored so far."""
    n = state["n"] + 1
    return gd.Scores.of(x.axis, x.values + n, x.known, x), {"n": n}


def test_a_sync_function_works_off_the_main_thread_as_some_trainers_call_it():
    score = gd.verify.number().using(timeout=20.0).for_trl("off_thread", asynchronous=False)

    async def main():
        return await asyncio.gather(*[asyncio.to_thread(score, **batch(answer=[0, 7])) for _ in range(3)])

    assert asyncio.run(main()) == [[1.0, 0.0]] * 3


def test_memory_is_kept_from_batch_to_batch_and_survives_pickling():
    score = count_batches(gd.column("x")).for_trl("memory")
    assert [score(**batch(x=[0.0])) for _ in range(3)] == [[1.0], [2.0], [3.0]]
    twin = pickle.loads(pickle.dumps(score))
    assert twin(**batch(x=[0.0])) == [4.0]
    assert twin.__name__ == "memory"


# One complete training run.


@pytest.fixture(scope="module")
def tiny():
    """A random one-layer Llama and a word tokenizer with a chat template, made here."""
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("trl")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    torch.set_num_threads(1)
    words = ["<pad>", "<eos>", "<unk>", *(str(i) for i in range(60))]
    plain = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config), tokenizer


@gd.signal(per="prompt", range=(0, 1))
def third_is_unknown(group) -> list:
    """Scores 0, 1, unknown, 1 within each group of four."""
    return [0.0, 1.0, gd.Score.unknown("the grader gave up"), 1.0][: len(group)]


def train(tiny, tmp_path, reward_funcs, prompts):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = tiny
    config = GRPOConfig(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=8, num_generations=4, logging_steps=1,
        max_completion_length=4, report_to="none", use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True,
        learning_rate=1e-2, beta=0.0,
    )  # fmt: skip
    data = Dataset.from_dict({"prompt": prompts, "answer": ["7", "8", "9", "10"], "level": [1, 2, 3, 4]})
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward_funcs, args=config, train_dataset=data, processing_class=tokenizer
    )
    before = [p.detach().clone() for p in trainer.model.parameters()]
    trainer.train()
    moved = any((a != b).any() for a, b in zip(before, trainer.model.parameters(), strict=True))
    return trainer, moved


@pytest.mark.trainer
def test_a_complete_training_run_leaves_unknown_rows_out_of_the_baseline(tiny, tmp_path):
    reward = third_is_unknown.named("graded") + 0.0 * gd.column("level").named("level")
    trainer, moved = train(tiny, tmp_path, [reward.for_trl("guerdon_run")], ["1 2", "3 4", "5 6", "7 8"])
    steps = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert len(steps) == 2
    assert moved
    for entry in steps:
        assert entry["reward"] == pytest.approx(2 / 3)  # of the three known rows; 0.5 if unknown counted as 0
        assert entry["rewards/guerdon_run/mean"] == pytest.approx(2 / 3)
        assert entry["guerdon_run/unknown"] == pytest.approx(0.25)
        assert entry["guerdon_run/graded"] == pytest.approx(2 / 3)
        assert 1 <= entry["guerdon_run/level"] <= 4
        assert math.isfinite(entry["loss"])
        assert math.isfinite(entry["grad_norm"])
    spread = math.sqrt(((2 / 3) ** 2 + 2 * (1 / 3) ** 2) / 2) + 1e-4
    expected = [-2 / 3 / spread, 1 / 3 / spread, 0.0, 1 / 3 / spread]
    got = list(trainer._logs["advantages"])
    assert got[:8] == pytest.approx(expected * 2, abs=1e-3)
    assert list(trainer._logs["extra"]["guerdon_run/graded"])[:4] == [0.0, 1.0, None, 1.0]
    assert list(trainer._logs["extra"]["guerdon_run/reason"])[2] == "the grader gave up"


@gd.signal(range=(0, 1), needs="lm")
async def said_something(rollout) -> float:
    """An async signal beside the sync one, on conversations."""
    await asyncio.sleep(0.001)
    assert isinstance(rollout.completion, list)
    return min(len(rollout.final.split()) / 4, 1.0)


@pytest.mark.trainer
def test_sync_and_async_rewards_train_together_on_conversations(tiny, tmp_path):
    chats = [[{"role": "user", "content": text}] for text in ("1 2", "3 4", "5 6", "7 8")]
    funcs = [gd.verify.number().for_trl("right"), said_something.for_trl("spoke")]
    trainer, moved = train(tiny, tmp_path, funcs, chats)
    steps = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert len(steps) == 2
    for entry in steps:
        for name in (func.__name__ for func in funcs):
            assert 0 <= entry[f"rewards/{name}/mean"] <= 1
            assert entry[f"{name}/unknown"] == 0.0
    assert moved or all(entry["frac_reward_zero_std"] == 1 for entry in steps)
