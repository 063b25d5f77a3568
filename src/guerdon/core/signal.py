"""Signals: the leaves of a reward. A user's plain function becomes one with ``@signal``."""

from __future__ import annotations

import inspect
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, overload

from guerdon.core.axis import lineage
from guerdon.core.errors import SignalError
from guerdon.core.fingerprint import digest
from guerdon.core.frame import Frame
from guerdon.core.interval import Interval
from guerdon.core.parameters import check_parameters
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout

Resource = Literal["cpu", "process", "sandbox", "lm", "judge", "embedder", "gpu"]
COST: Mapping[str, int] = {"cpu": 0, "process": 1, "embedder": 2, "sandbox": 3, "gpu": 4, "lm": 5, "judge": 6}
"""Resources from cheap to dear: where order does not matter, the cheap operand is asked first."""


@dataclass(frozen=True)
class Step:
    """One step of a rollout, as a signal on the step axis sees it."""

    rollout: Rollout
    index: int

    @property
    def text(self) -> str:
        """The step's text."""
        return self.rollout.step_text(self.index)

    def content(self, reads: Sequence[str] | None = None) -> str:
        """A stable hash of the step: its rollout's content and its place."""
        return digest(self.rollout.content(reads), self.index)


@dataclass(frozen=True)
class Group:
    """All rollouts of one prompt, as a signal that reads whole groups sees them."""

    rollouts: Sequence[Rollout]

    def __len__(self) -> int:
        return len(self.rollouts)

    def content(self, reads: Sequence[str] | None = None) -> str:
        """A stable hash of the group: its rollouts' contents in order."""
        return digest([r.content(reads) for r in self.rollouts])


@dataclass(frozen=True)
class Failure:
    """What becomes of an item whose signal raised, timed out or returned something that is no score.

    It is asked again ``retries`` times, and then is unknown, takes the number ``then``, or (``"abort"``) ends the run.
    Where more than the share ``alarm`` of at least 20 asked items failed, a `FailureRateWarning` is given.
    """

    then: Literal["unknown", "abort"] | float = "unknown"
    retries: int = 0
    alarm: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.then, str) and self.then not in ("unknown", "abort"):
            raise SignalError(f'then={self.then!r}: choose "unknown", "abort" or a number')
        if self.retries < 0 or not 0 <= self.alarm <= 1:
            raise SignalError("retries must be at least 0 and alarm between 0 and 1")


@dataclass(frozen=True)
class Manner:
    """How a signal is asked: declared once with `signal`, changed with `Signal.using`."""

    needs: Resource = "cpu"
    """Which resource serves it. ``"process"`` runs in worker processes that can be killed."""
    batch: bool = False
    """The function takes a list of items and returns a list of scores."""
    batch_size: int = 512
    timeout: float | None = None
    """Seconds an item (a batch, for batch functions) may run once it has started; waiting does not count."""
    failure: Failure = Failure()
    cache: bool | None = None
    """Keep scores in the session's cache; by default whatever is dearer than ``"cpu"``."""
    reads: tuple[str, ...] | None = None
    """The fields and columns that the score depends on, for the cache key; by default the whole rollout."""


class Signal(Reward):
    """A leaf: a function from a rollout (step, group...) to a score.

    ``per`` says what the function is called with: one item of ``axis``, or something above it, in which case it
    returns one score for each item below (``per="prompt"`` reads a whole group and scores its rollouts).
    Calling a signal with keyword parameters gives the signal with these set; calling it with an item runs the function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        axis: str = "rollout",
        per: str | None = None,
        range: tuple[float, float] | Interval | None = None,
        manner: Manner | None = None,
        key: str | None = None,
        version: int | str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        manner = manner or Manner()
        self.function = function
        self.axis = axis
        self.per = per or (axis if axis in ("prompt", "rollout", "step") else "rollout")
        if self.per not in lineage(axis) or self.per not in ("prompt", "rollout", "step"):
            raise SignalError(f"a signal on axis '{axis}' can't be asked per '{self.per}'")
        self.range = Interval.of(range)
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  # an object with an async __call__
        )
        if manner.needs not in COST:
            raise SignalError(f"needs={manner.needs!r}: choose {', '.join(COST)}")
        if manner.timeout is not None and not manner.timeout > 0:
            raise SignalError(f"timeout={manner.timeout}: give a number of seconds above 0")
        if manner.needs == "process" and self.is_async:
            raise SignalError('an async signal runs in the event loop; needs="process" is for sync functions')
        if manner.timeout is not None and not self.is_async and manner.needs != "process":
            if manner.needs != "cpu":
                raise SignalError(
                    f'a sync signal on "{manner.needs}" can\'t be stopped: make it async, or needs="process"'
                )
            manner = replace(manner, needs="process")  # only a process can be stopped
        self.manner = manner
        self.key = key or f"{module_of(function)}.{getattr(function, '__qualname__', repr(function))}"
        self.version = version
        self.params = dict(params or {})
        self.__doc__ = function.__doc__

    @overload
    def __call__(self, **params: Any) -> Signal: ...
    @overload
    def __call__(self, item: Any, /, *more: Any, **params: Any) -> Any: ...
    def __call__(self, *item: Any, **params: Any) -> Any:
        if item:
            return self.function(*item, **{**self.params, **params})
        check_parameters(self.key, self.function, self.parameters, params)
        made: Signal = self._with(params={**self.params, **params}, name=None)
        return made

    def using(self, **manner: Any) -> Signal:
        """The same signal asked in another manner: ``needs``, ``timeout``, ``failure``, ``cache``, ``reads``..."""
        wrong = [name for name in manner if name not in Manner.__dataclass_fields__]
        if wrong:
            raise SignalError(f"there is no {wrong[0]!r} to change; there are {', '.join(Manner.__dataclass_fields__)}")
        changed = replace(self.manner, **manner)
        return _rebuild({**self._recipe(), "function": self.function, "manner": changed})

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The function's keyword parameters: everything after the item."""
        found = list(inspect.signature(self.function).parameters.values())
        return {p.name: p for p in found[1:]}

    @property
    def cached(self) -> bool:
        """Whether its scores are kept in the session's cache."""
        return self.manner.needs != "cpu" if self.manner.cache is None else self.manner.cache

    def ready(self) -> Callable[..., Any]:
        """The function with its parameters set; an error that names a parameter that is still missing."""
        for name, p in self.parameters.items():
            if p.default is p.empty and name not in self.params and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise SignalError(f"{self.key} needs {name}=")
        return partial(self.function, **self.params) if self.params else self.function

    @property
    def stable(self) -> bool:
        """Whether a stable fingerprint can be taken of its code and parameters."""
        return self._stable_fingerprint is not None

    @cached_property
    def _stable_fingerprint(self) -> str | None:
        try:
            return digest(*self._identity())
        except SignalError:
            return None

    @cached_property
    def fingerprint(self) -> str:
        """Stable hash of code (or version) and parameters; one of this object only where that can't be taken."""
        return self._stable_fingerprint or digest("unstable", self.key, _token(self.function), repr(self.params))

    def _identity(self) -> tuple[object, ...]:
        made = self.version if self.version is not None else self.function
        settings = (self.axis, self.per, self.range.low, self.range.high, self.manner.failure.then)
        return ("signal", self.key, made, settings, self.params)

    def _with(self, **changes: object) -> Any:
        twin = super()._with(**changes)
        if "params" in changes:
            for name in ("fingerprint", "_stable_fingerprint"):
                twin.__dict__.pop(name, None)
        return twin

    def _describe(self) -> str:
        return " ".join([self.key, *[f"{k}={v!r:.40}" for k, v in self.params.items()]])

    def __reduce__(self) -> Any:
        return (_rebuild, (self._recipe(),))

    def _recipe(self) -> dict[str, Any]:
        fields = ("axis", "per", "range", "manner", "key", "version", "params", "name")
        return {"function": _portable(self.function), **{f: getattr(self, f) for f in fields}}


_TOKENS: weakref.WeakKeyDictionary[Callable[..., Any], str] = weakref.WeakKeyDictionary()


def _token(function: Callable[..., Any]) -> str:
    """A text that stands for this very function object, in this process."""
    return _TOKENS.setdefault(function, uuid.uuid4().hex)


def module_of(function: Callable[..., Any]) -> str:
    """The module a function was defined in; code run without one (an example of the docs) counts as ``__main__``."""
    return getattr(function, "__module__", None) or "__main__"


def _portable(function: Callable[..., Any]) -> tuple[str, str] | bytes:
    """What finds the function in another process: its place if it can be imported, else itself by value."""
    import sys

    import cloudpickle

    module, qualname = module_of(function), getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module) if module != "__main__" else None
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is function or (isinstance(found, Signal) and found.function is function):
        return module, qualname
    data: bytes = cloudpickle.dumps(function)
    return data


def _found(portable: tuple[str, str] | bytes | Callable[..., Any]) -> Callable[..., Any]:
    import importlib
    import pickle

    if callable(portable):
        return portable
    if isinstance(portable, bytes):
        function: Callable[..., Any] = pickle.loads(portable)  # our own bytes, inside a pickle that is loaded already
        return function
    found: Any = importlib.import_module(portable[0])
    for part in portable[1].split("."):
        found = getattr(found, part)
    return found.function if isinstance(found, Signal) else found


def _rebuild(recipe: dict[str, Any]) -> Signal:
    name, function = recipe.pop("name"), recipe.pop("function")
    made: Signal = Signal(_found(function), **recipe)._with(name=name)
    return made


class Portable:
    """A signal's function with its parameters, ready to be called in a worker process."""

    def __init__(self, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        self.function, self.params = function, dict(params)

    def __call__(self, item: Any) -> Any:
        return self.function(item, **self.params)

    def __reduce__(self) -> Any:
        return (_rebuild_portable, (_portable(self.function), self.params))


def _rebuild_portable(portable: tuple[str, str] | bytes, params: Mapping[str, Any]) -> Portable:
    return Portable(_found(portable), params)


def items_of(frame: Frame, per: str) -> Sequence[Any]:
    """What a signal asked per ``per`` is called with: rollouts, steps or groups of the frame."""
    if per == "rollout":
        return frame.rollouts
    if per == "step":
        return [Step(r, i) for r in frame.rollouts for i in range(len(r.steps or ()))]
    ends = frame.rollout.offsets
    assert ends is not None
    return [Group(frame.rollouts[a:b]) for a, b in pairwise(ends)]


@overload
def signal(function: Callable[..., Any], /) -> Signal: ...
@overload
def signal(
    *,
    axis: str = ...,
    per: str | None = ...,
    range: tuple[float, float] | None = ...,
    needs: Resource = ...,
    batch: bool = ...,
    batch_size: int = ...,
    timeout: float | None = ...,
    failure: Failure | Literal["unknown", "abort"] | float = ...,
    cache: bool | None = ...,
    reads: Sequence[str] | None = ...,
    key: str | None = ...,
    version: int | str | None = ...,
) -> Callable[[Callable[..., Any]], Signal]: ...
def signal(
    function: Callable[..., Any] | None = None,
    /,
    *,
    axis: str = "rollout",
    per: str | None = None,
    range: tuple[float, float] | None = None,
    needs: Resource = "cpu",
    batch: bool = False,
    batch_size: int = 512,
    timeout: float | None = None,
    failure: Failure | Literal["unknown", "abort"] | float = "unknown",
    cache: bool | None = None,
    reads: Sequence[str] | None = None,
    key: str | None = None,
    version: int | str | None = None,
) -> Any:
    """Make a leaf of a plain function, sync or async.

    The function is called with one item (a `Rollout`; a `Step` or `Group` where ``axis`` or ``per`` say so), or with a
    list of them (``batch=True``), and returns a number, a bool, a `Score` with evidence, or ``None`` for unknown; where
    it is asked ``per`` something above its axis, a sequence of these. Its further parameters become the signal's
    parameters. Whatever it raises, a non-finite number, and a number outside ``range`` is a *failure*: unknown, unless
    ``failure`` says otherwise; never silently a number.

    A sync function with a ``timeout`` (seconds from its own start) runs in a worker process, which is killed and
    replaced when the time is over, also when it is stuck in C code. ``version`` replaces the function's code in the
    fingerprint: raise it when the scores change.

    >>> @signal(range=(0, 1))
    ... def brief(rollout) -> float:
    ...     return len(rollout.text) < 100
    >>> brief.score([{"completion": "Yes."}]).scores.values.tolist()
    [1.0]
    """
    policy = failure if isinstance(failure, Failure) else Failure(then=failure)
    manner = Manner(needs, batch, batch_size, timeout, policy, cache, tuple(reads) if reads is not None else None)

    def wrap(inner: Callable[..., Any]) -> Signal:
        return Signal(inner, axis=axis, per=per, range=range, manner=manner, key=key, version=version)

    return wrap(function) if function is not None else wrap
