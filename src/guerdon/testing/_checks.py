"""The checks. Each takes the subject and raises `AssertionError` with the cause where the reward does not hold up."""

from __future__ import annotations

import asyncio
import importlib.util
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from guerdon.core.errors import SpecError
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.session import Session
from guerdon.core.signal import Signal
from guerdon.core.transform import Apply
from guerdon.testing._examples import HOSTILE, HUGE, with_text
from guerdon.testing._fresh import in_fresh_interpreter
from guerdon.testing._subject import Outcome, Subject, alike, outcomes, plain_evidence


class Skipped(Exception):
    """The check does not apply to this reward; the message says why."""


@dataclass(frozen=True)
class Check:
    """One check of the battery."""

    name: str
    says: str
    """What must hold."""
    run: Callable[[Subject], None]

    def __call__(
        self,
        reward: Reward,
        rollouts: Iterable[Rollout | Mapping[str, Any]] | None = None,
        *,
        deadline: float = 20.0,
    ) -> None:
        """Raise `AssertionError` unless ``reward`` passes this check. One that does not apply passes."""
        try:
            self.run(Subject.of(reward, rollouts, deadline))
        except Skipped:
            return

    def __str__(self) -> str:
        return self.name


_checks: list[Check] = []


def _check(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
    _checks.append(Check(function.__name__, (function.__doc__ or "").strip(), function))
    return function


@_check
def sound(subject: Subject) -> None:
    """One score per rollout, finite, within the declared range; reasons and plain evidence."""
    scored = subject.within_deadline(lambda: subject.reward.score(subject.rollouts, session=Session()))
    outcomes(scored, len(subject.rollouts))
    plain_evidence(scored)


@_check
def deterministic(subject: Subject) -> None:
    """Scoring the same rollouts twice gives the same scores and reasons."""
    first, again = subject.outcomes(subject.rollouts), subject.outcomes(subject.rollouts)
    alike(first, again, "the same rollouts scored twice", reasons=True)


@_check
def order_free(subject: Subject) -> None:
    """Results follow the rollouts when these come in another order, groups scattered."""
    count = len(subject.rollouts)
    step = next(k for k in range(count // 2 + 1, 2 * count + 2) if _coprime(k, count))
    order = [(i * step + 1) % count for i in range(count)]
    moved = subject.outcomes([subject.rollouts[i] for i in order])
    straight = subject.outcomes(subject.rollouts)
    alike([straight[i] for i in order], moved, "the rollouts in another order")


@_check
def groups_apart(subject: Subject) -> None:
    """A group's scores do not depend on which other groups are scored with it."""
    if any(isinstance(n, Apply) and n.transform.traits.initial for n in subject.reward.walk()):
        raise Skipped("the reward has memory")
    together = subject.outcomes(subject.rollouts)
    for members in _groups(subject.rollouts):
        alone = subject.outcomes([subject.rollouts[i] for i in members])
        alike([together[i] for i in members], alone, "a group scored with others and alone")


@_check
def missing_answer(subject: Subject) -> None:
    """A signal that grades against the reference answer is unknown without one; it does not make up a number."""
    others = list(dict.fromkeys(str(r.answer) for r in subject.rollouts if r.answer is not None))
    if not others:
        raise Skipped("the rollouts have no reference answers")
    changed = [
        replace(r, answer=next((o for o in [*others, "something else"] if o != str(r.answer)), r.answer))
        for r in subject.rollouts
    ]
    blank = [replace(r, answer=None) for r in subject.rollouts]
    for leaf in _leaves(subject.reward):
        _unknown_where_it_matters(subject, leaf, changed, blank, "the reference answer")


@_check
def missing_columns(subject: Subject) -> None:
    """A signal that depends on a column of the data is unknown where that column is missing."""
    names = sorted({name for r in subject.rollouts for name in r.extra})
    if not names:
        raise Skipped("the rollouts have no columns of their own")
    for name in names:
        values = [r.extra.get(name) for r in subject.rollouts]
        turned = values[1:] + values[:1]
        changed = [replace(r, extra={**r.extra, name: v}) for r, v in zip(subject.rollouts, turned, strict=True)]
        blank = [replace(r, extra={k: v for k, v in r.extra.items() if k != name}) for r in subject.rollouts]
        for leaf in _leaves(subject.reward):
            _unknown_where_it_matters(subject, leaf, changed, blank, f"column '{name}'")


@_check
def empty_input(subject: Subject) -> None:
    """No rollouts give no scores; an empty completion, message list or step list is scored like any other."""
    assert subject.outcomes([]) == []
    first = subject.rollouts[0]
    bare: dict[str, Any] = {"steps": None, "tokens": None, "logprobs": None, "step_tokens": None}
    odd = [
        replace(first, completion="", **bare),
        replace(first, completion=[], **bare),
        replace(first, completion=[{"role": "assistant", "content": None}], **bare),
        replace(first, completion="", steps=[], tokens=[], logprobs=[], step_tokens=[]),
        replace(first, prompt=None, group="g"),
    ]
    for rollout in odd:
        subject.outcomes([rollout])


@_check
def huge_input(subject: Subject) -> None:
    """A completion of a million characters is scored before the deadline."""
    subject.outcomes([with_text(subject.rollouts[0], HUGE), *subject.rollouts[1:]])


@_check
def hostile_text(subject: Subject) -> None:
    """Broken and hostile texts give sound scores and writable evidence, and leave the others' scores alone."""
    clean = subject.rollouts[-1]
    expected = subject.outcomes([replace(clean, group="clean")])
    for what, text in HOSTILE.items():
        rows = [with_text(replace(r, group="hostile"), text) for r in subject.rollouts[:2]]
        batch = [*rows, replace(clean, group="clean")]
        try:
            scored = subject.within_deadline(lambda batch=batch: subject.reward.score(batch, session=Session()))  # type: ignore[misc]
            got = outcomes(scored, len(batch))
            plain_evidence(scored)
            alike(expected, got[-1:], "a clean rollout alone and beside a hostile one")
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None


@_check
def message_form(subject: Subject) -> None:
    """A completion given as an assistant message scores like the same text."""
    plain = [r for r in subject.rollouts if isinstance(r.completion, str)]
    if not plain:
        raise Skipped("the rollouts are messages already")
    chat = [replace(r, completion=[{"role": "assistant", "content": r.completion}]) for r in plain]
    alike(subject.outcomes(plain), subject.outcomes(chat), "completions as text and as messages")


@_check
def tool_output(subject: Subject) -> None:
    """What a tool returned is not credited to the policy: other tool output, same score."""
    rows = [(r, r.final) for r in subject.rollouts]
    one = subject.outcomes([_with_tool(r, said, str(r.answer)) for r, said in rows])
    two = subject.outcomes([_with_tool(r, said, "no result") for r, said in rows])
    alike(one, two, "with the reference answer as tool output, and without")


@_check
def threads(subject: Subject) -> None:
    """Eight calls at the same time, from eight threads, give equal scores."""
    expected = subject.outcomes(subject.rollouts)
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: subject.outcomes(subject.rollouts), range(8)):
            alike(expected, got, "one call and eight at a time")


@_check
def running_loop(subject: Subject) -> None:
    """``score`` inside a running event loop and ``await ascore`` give what ``score`` gives."""

    async def both() -> tuple[list[Outcome], list[Outcome]]:
        inside = subject.reward.score(subject.rollouts, session=Session())
        awaited = await subject.reward.ascore(subject.rollouts, session=Session())
        return outcomes(inside, len(subject.rollouts)), outcomes(awaited, len(subject.rollouts))

    expected = subject.outcomes(subject.rollouts)
    inside, awaited = subject.within_deadline(lambda: asyncio.run(both()))
    alike(expected, inside, "outside and inside a running event loop")
    alike(expected, awaited, "score and ascore")


@_check
def pickling(subject: Subject) -> None:
    """The reward survives pickling: same fingerprint, same scores."""
    twin = pickle.loads(pickle.dumps(subject.reward))
    _stable(subject.reward)
    assert twin.fingerprint == subject.reward.fingerprint, "the pickled reward has another fingerprint"
    alike(subject.outcomes(subject.rollouts), subject.outcomes(subject.rollouts, twin), "before and after pickling")


@_check
def fresh_process(subject: Subject) -> None:
    """In a fresh interpreter with another hash seed the reward has the same fingerprint and gives the same scores."""
    _stable(subject.reward)
    fingerprint, got = in_fresh_interpreter(subject.reward, subject.rollouts, subject.deadline)
    assert fingerprint == subject.reward.fingerprint, "the fingerprint depends on the process: scores can't be cached"
    alike(subject.outcomes(subject.rollouts), got, "here and in a fresh interpreter")


@_check
def spec_round_trip(subject: Subject) -> None:
    """Written down as a spec and read back, the reward has the same fingerprint."""
    if importlib.util.find_spec("guerdon.spec") is None:
        raise Skipped("guerdon.spec is not there")
    from guerdon.spec import dump_spec, load_spec

    try:
        text = dump_spec(subject.reward)
        back = load_spec(text).reward
    except SpecError as why:
        raise Skipped(str(why)) from None
    assert back.fingerprint == subject.reward.fingerprint, f"the spec describes another reward:\n{text}"


ALL = tuple(_checks)


def _leaves(reward: Reward) -> list[Signal]:
    """The signals of a reward, those apart whose failures are declared to be a number."""
    return [n for n in reward.walk() if isinstance(n, Signal) and n.manner.failure.then == "unknown"]


def _unknown_where_it_matters(
    subject: Subject, leaf: Signal, changed: Sequence[Rollout], blank: Sequence[Rollout], what: str
) -> None:
    """Raise where ``leaf`` scores a rollout differently when something changes, and yet gives a number without it."""
    given, other, without = (subject.outcomes(rows, leaf) for rows in (subject.rollouts, changed, blank))
    for i, (a, b, c) in enumerate(zip(given, other, without, strict=True)):
        depends = [x for x, _ in a] != [y for y, _ in b]
        if depends and any(value is not None for value, _ in c):
            raise AssertionError(
                f"{leaf.label}: the score of rollout {i} depends on {what}, but is {c[0][0]:g} without it"
            )


def _with_tool(rollout: Rollout, said: str, output: str) -> Rollout:
    """The rollout as a conversation in which a tool said ``output`` before and after the policy's reply."""
    chat: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Let me look.", "tool_calls": [{"id": "1", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "1", "content": output},
        {"role": "assistant", "content": said},
        {"role": "tool", "tool_call_id": "2", "content": output},
    ]
    return replace(rollout, completion=chat)


def _groups(rollouts: Sequence[Rollout]) -> list[list[int]]:
    keys: dict[str, list[int]] = {}
    for i, r in enumerate(rollouts):
        keys.setdefault(r.group if r.group is not None else f"prompt {r.prompt!r}", []).append(i)
    return list(keys.values())


def _stable(reward: Reward) -> None:
    for node in reward.walk():
        assert node.stable, f"{node.label} has no stable fingerprint: give it version=, and plain data as parameters"


def _coprime(a: int, b: int) -> bool:
    from math import gcd

    return gcd(a, b) == 1
