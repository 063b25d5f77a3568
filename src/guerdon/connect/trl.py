"""A reward as a reward function of TRL's trainers (GRPO, RLOO), with their convention for what is unknown.

TRL calls a reward function with ``prompts``, ``completions``, ``completion_ids`` and every other dataset column as
lists of one length, and expects as many numbers, or ``None`` where there is none. A row whose only reward function
gives ``None`` is left out of its group's baseline and gets advantage 0. With several reward functions TRL counts a
single ``None`` as 0, so combine signals inside one reward instead of passing several functions.
"""

from __future__ import annotations

import re
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from guerdon.core.engine import needs_loop
from guerdon.core.errors import DataError
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scored import Scored
from guerdon.core.scores import check_policy
from guerdon.core.session import Session

Unknown = Literal["drop", "raise", "group-mean"] | float
"""What an unknown score becomes: ``"drop"`` gives ``None``, with which TRL leaves the row out."""

_FIELDS = ("id", "answer")
"""Dataset columns that are taken for fields of the rollout by their name alone."""
_NO_COLUMNS = ("trainer_state", "log_extra", "log_metric", "environments")
_MAPPABLE = frozenset({"id", "group", "answer", "steps", "step_tokens", "logprobs"})
_LARGEST = float(np.finfo(np.float32).max)


def for_trl(
    reward: Reward,
    name: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    unknown: Unknown = "drop",
    log_components: bool = True,
    group_size: int | None = None,
    asynchronous: bool | None = None,
    session: Session | None = None,
) -> TrlReward | AsyncTrlReward:
    """``reward`` as a function for ``GRPOTrainer(reward_funcs=...)``.

    ``name`` is what TRL's logs call it (by default the reward's own name); a name that a function of another reward
    still has gets a number. ``columns`` maps fields of a rollout to dataset columns (``{"answer": "solution"}``);
    ``id`` and ``answer`` are also found by name, all other columns land in ``extra``. Consecutive rows with one prompt
    are a group, or every ``group_size`` rows. ``unknown`` says what an unknown score becomes. ``log_components`` logs
    for each named node its mean as the metric ``<name>/<node>`` and its values as a column of the completions table,
    and the share of unknown rows as ``<name>/unknown``. A reward that waits for models or processes is made an async
    function, which TRL runs beside the others, unless ``asynchronous`` says otherwise. The session, with its cache and
    the state of rewards with memory, is kept from batch to batch.

    Values that no float32 can hold are unknown to the trainer. Errors in the data are raised.

    >>> from guerdon.core.reward import column
    >>> score = for_trl(column("right"), "right")
    >>> score(prompts=["p", "p"], completions=["a", "b"], completion_ids=[[1], [2]], right=[1, None])
    [1.0, None]
    """
    wrong = set(columns or {}) - _MAPPABLE
    if wrong:
        raise DataError(
            "columns", 0, f"can't map {', '.join(sorted(wrong))}; fields are {', '.join(sorted(_MAPPABLE))}"
        )
    if group_size is not None and group_size < 1:
        raise ValueError(f"group_size={group_size}: give a whole number of at least 1")
    check_policy(unknown, ("drop", "raise", "group-mean"))
    if reward.axis not in ("prompt", "rollout"):
        raise DataError(reward.label, 0, f"a trainer needs one score per rollout, not per {reward.axis}: reduce it")
    wait = needs_loop(reward) if asynchronous is None else asynchronous
    settings = {
        "columns": dict(columns or {}), "unknown": unknown, "log_components": log_components, "group_size": group_size,
    }  # fmt: skip
    kind = AsyncTrlReward if wait else TrlReward
    made = kind(reward, _free(name or reward.name or _plain(reward.label), reward), settings, session or Session())
    _named[made.__name__] = made
    return made


class _Adapter:
    """What the sync and the async function share: rows in, trainer's numbers and logs out."""

    def __init__(self, reward: Reward, name: str, settings: Mapping[str, Any], session: Session) -> None:
        self.reward, self.__name__, self.session = reward, name, session
        self._settings = settings

    def __getstate__(self) -> tuple[Any, ...]:
        return self.reward, self.__name__, self._settings, dict(self.session.state)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        reward, name, settings, memory = state
        _Adapter.__init__(self, reward, name, settings, Session(state=memory))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__}: {self.reward!r}>"

    @property
    def _policy(self) -> Any:
        return "keep" if self._settings["unknown"] == "drop" else self._settings["unknown"]

    def _rollouts(
        self, prompts: Sequence[Any], completions: Sequence[Any], ids: Sequence[Any] | None, given: Mapping[str, Any]
    ) -> list[Rollout]:
        """One rollout for each row of a trainer's batch."""
        count = len(prompts)
        table = {k: v for k, v in given.items() if k not in _NO_COLUMNS and _is_column(v, count)}
        mapped = {field: field for field in _FIELDS if field in table} | self._settings["columns"]
        missing = [f"{c} (for {f})" for f, c in mapped.items() if c not in table]
        if missing or len(completions) != count or (ids is not None and len(ids) != count):
            what = f"no column {', '.join(missing)}" if missing else "prompts, completions and ids differ in number"
            raise DataError("the trainer's batch", 0, what)
        extra = [key for key in table if key not in mapped.values()]
        fields = [{field: table[c][i] for field, c in mapped.items()} for i in range(count)]
        groups = _groups(prompts, [f.get("answer") for f in fields], self._settings["group_size"])
        return [
            Rollout.of(
                {
                    "prompt": prompts[i], "completion": completions[i], "group": groups[i], **fields[i],
                    "tokens": None if ids is None else ids[i], "extra": {key: table[key][i] for key in extra},
                },
                i,
            )
            for i in range(count)
        ]  # fmt: skip

    def _rewards(self, scored: Scored, given: Mapping[str, Any]) -> list[float | None]:
        """Numbers for the trainer, after the components were logged."""
        scores = scored.scores
        usable = scores.known & (np.abs(scores.values) <= _LARGEST)
        if len(usable) and not usable.any():
            self._warn_of_nothing(scored, given)
        if self._settings["log_components"]:
            self._log(scored, usable, given.get("log_metric"), given.get("log_extra"))
        return [float(v) if known else None for v, known in zip(scores.values, usable, strict=True)]

    def _warn_of_nothing(self, scored: Scored, given: Mapping[str, Any]) -> None:
        """A batch that teaches nothing is more often a column under another name than a fact."""
        why = ", ".join(f"{reason} ({n})" for reason, n in scored.unknown.most_common(3)) or "beyond float32"
        table = ", ".join(k for k, v in given.items() if k not in _NO_COLUMNS and _is_column(v, len(scored.scores)))
        warnings.warn(
            f"{self.__name__}: no completion of this batch has a score: {why}; its columns are {table or 'none'}"
            ' (for_trl(columns={"answer": ...}) maps them)',
            stacklevel=4,
        )

    def _log(
        self, scored: Scored, usable: Any, metric: Callable[..., Any] | None, extra: Callable[..., Any] | None
    ) -> None:
        nodes = {k: s for k, s in scored.nodes.items() if k != self.__name__}
        if metric is not None and len(usable):
            metric(f"{self.__name__}/unknown", float(1.0 - usable.mean()))
            for key, scores in nodes.items():
                if scores.known.any():
                    metric(f"{self.__name__}/{key}", float(scores.values[scores.known].mean()))
        if extra is not None:
            for key, scores in nodes.items():
                if scores.axis.name == "rollout":
                    values = zip(scores.values.tolist(), scores.known.tolist(), strict=True)
                    extra(f"{self.__name__}/{key}", [v if known else None for v, known in values])
            extra(f"{self.__name__}/reason", [scored.scores.reason(i) or "" for i in range(len(usable))])


class TrlReward(_Adapter):
    """A reward function that TRL calls in the training process. Made by `for_trl`."""

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **given: Any,
    ) -> list[float | None]:
        """The batch's rewards, ``None`` where unknown."""
        rows = self._rollouts(prompts, completions, completion_ids, given)
        return self._rewards(self.reward.score(rows, session=self.session, unknown=self._policy), given)


class AsyncTrlReward(_Adapter):
    """A reward function that TRL awaits beside the others. Made by `for_trl`."""

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **given: Any,
    ) -> list[float | None]:
        """The batch's rewards, ``None`` where unknown."""
        rows = self._rollouts(prompts, completions, completion_ids, given)
        return self._rewards(await self.reward.ascore(rows, session=self.session, unknown=self._policy), given)


_named: weakref.WeakValueDictionary[str, _Adapter] = weakref.WeakValueDictionary()
"""The functions in use, by name."""


def _groups(prompts: Sequence[Any], answers: Sequence[Any], size: int | None) -> list[str]:
    """The group of each row: every ``size`` rows, or each run of rows with one prompt and one reference."""
    if size is not None:
        if len(prompts) % size:
            raise DataError("the trainer's batch", 0, f"{len(prompts)} rows are no whole number of groups of {size}")
        return [str(i // size) for i in range(len(prompts))]
    run, out = 0, []
    for i in range(len(prompts)):
        if i and (prompts[i] != prompts[i - 1] or answers[i] != answers[i - 1]):
            run += 1
        out.append(str(run))
    return out


def _is_column(value: Any, count: int) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == count


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "_", label).strip("_")[:40] or "reward"


def _free(name: str, reward: Reward) -> str:
    """The name, or, where a function of another reward has it, the name with the next free number."""
    number, candidate = 1, name
    while (other := _named.get(candidate)) is not None and other.reward.fingerprint != reward.fingerprint:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
