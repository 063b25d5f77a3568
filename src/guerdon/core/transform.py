"""Functions on scores that also build expressions: given rewards they make a node, given scores they compute."""

from __future__ import annotations

import inspect
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import Any, Literal, overload

from guerdon.core.axis import BoolArray, finest
from guerdon.core.errors import SignalError
from guerdon.core.fingerprint import digest
from guerdon.core.interval import Interval
from guerdon.core.parameters import signature_of
from guerdon.core.reward import Constant, Reward, as_reward
from guerdon.core.scored import Scored
from guerdon.core.scores import Scores

Wanted = Callable[[int, Sequence[Scores | None]], BoolArray | None]
State = Mapping[str, Any]


@dataclass(frozen=True)
class Laziness:
    """Which operand is asked about which items.

    ``stages(count)`` lists operand positions in the order they are asked; those of one stage run at the same time.
    ``wanted(position, earlier)`` gives, from the operands known so far, the items that the value still depends on
    (``None``: all). ``reorder`` allows the engine to ask cheap operands first.
    """

    stages: Callable[[int], Sequence[Sequence[int]]]
    wanted: Wanted
    reorder: bool = False
    when: Callable[[Sequence[Interval]], bool] = field(default=lambda ranges: True)


@dataclass(frozen=True)
class Traits:
    """What the engine must know of a function on scores, beyond its code."""

    key: str
    version: int | None = None
    groups: bool | Literal["rollout", "batch"] = False
    """Reads whole groups (or rollouts, or the whole batch), so that a demand for one item is one for all of these."""
    range: Callable[..., Interval] | None = None
    """From the arguments, with intervals in place of scores, to the interval of the result."""
    axis: Callable[..., str] | None = None
    """From the arguments, with axis names in place of scores, to the axis of the result."""
    lazy: Laziness | None = None
    initial: Callable[..., State] | None = None
    """Makes the first state of a function with memory: it takes ``state=`` and returns ``(scores, state)``."""


class Transform:
    """A function on scores, usable on `Scores` (computes) and on `Reward` (builds a larger reward)."""

    def __init__(self, function: Callable[..., Any], traits: Traits) -> None:
        self.function = function
        self.traits = traits
        self.signature = inspect.signature(function)
        self.operands = tuple(n for n, p in self.signature.parameters.items() if "Scores" in str(p.annotation))
        if not self.operands:
            raise SignalError(f"{traits.key}: annotate the parameters that take scores with Scores")
        update_wrapper(self, function)

    @cached_property
    def fingerprint(self) -> str:
        """Stable hash of the function: its key and version, or its code where no version is declared."""
        made = self.traits.version if self.traits.version is not None else self.function
        return digest("transform", self.traits.key, made)

    @overload
    def __call__(self, first: Reward, /, *rest: Any, **params: Any) -> Reward: ...
    @overload
    def __call__(self, first: Scores | Scored, /, *rest: Any, **params: Any) -> Scores: ...
    @overload
    def __call__(self, *args: Any, **params: Any) -> Any: ...
    def __call__(self, *args: Any, **params: Any) -> Any:
        try:
            bound = self.signature.bind(*args, **params)
        except TypeError as error:
            raise TypeError(f"{self.traits.key}: {error}; it takes {signature_of(self.function)}") from None
        given = list(leaves([bound.arguments.get(name) for name in self.operands]))
        if any(isinstance(x, Reward) for x in given):
            bound.apply_defaults()
            return Apply(self, bound)
        scored = next((x for x in given if isinstance(x, Scored)), None)
        like = next((x.framed if isinstance(x, Scored) else x for x in given if isinstance(x, (Scored, Scores))), None)
        if like is None:
            raise TypeError(f"{self.traits.key} needs scores or rewards, not {given!r:.80}")
        plain = self.replaced(bound, lambda x: _as_scores(x, like))
        result = self.function(*plain.args, **plain.kwargs)
        return scored.frame.in_input_order(result) if scored is not None and isinstance(result, Scores) else result

    def replaced(self, bound: inspect.BoundArguments, swap: Callable[[Any], Any]) -> inspect.BoundArguments:
        """The same arguments with every operand passed through ``swap``."""
        fresh = {n: _mapped(v, swap) if n in self.operands else v for n, v in bound.arguments.items()}
        return inspect.BoundArguments(self.signature, OrderedDict(fresh))

    def __repr__(self) -> str:
        return f"<transform {self.traits.key}{self.signature}>"

    def __reduce__(self) -> Any:
        module, qualname = self.function.__module__, self.function.__qualname__
        if module not in (None, "__main__") and "<locals>" not in qualname:
            return (_find, (module, qualname))
        import cloudpickle

        return (_rebuild, (cloudpickle.dumps((self.function, self.traits)),))

    def __get__(self, instance: object, owner: type | None = None) -> Transform:
        return self


class Apply(Reward):
    """A function on scores, applied to rewards."""

    def __init__(self, transform: Transform, bound: inspect.BoundArguments) -> None:
        self.transform = transform
        self.bound = transform.replaced(bound, lambda x: as_reward(x.reward if isinstance(x, Scored) else x))
        self.children = tuple(leaves([self.bound.arguments.get(n) for n in transform.operands]))
        traits = transform.traits
        self.axis = self._rule(traits.axis, lambda r: r.axis) or finest([c.axis for c in self.children])
        self.range = self._rule(traits.range, lambda r: r.range) or Interval()
        self.fingerprint  # noqa: B018  # taken now, so that deep expressions do not recurse later

    def _rule(self, rule: Callable[..., Any] | None, view: Callable[[Reward], Any]) -> Any:
        if rule is None:
            return None
        seen = self.transform.replaced(self.bound, view)
        return rule(*seen.args, **seen.kwargs)

    def compute(self, operands: Sequence[Scores], **more: Any) -> Any:
        """The function's result on ``operands``, one for each child."""
        queue = iter(operands)
        filled = self.transform.replaced(self.bound, lambda _: next(queue))
        return self.transform.function(*filled.args, **{**filled.kwargs, **more})

    def initial_state(self) -> State:
        """The first state of a function with memory, made from its parameters."""
        assert self.transform.traits.initial is not None
        params = {n: v for n, v in self.bound.arguments.items() if n not in (*self.transform.operands, "state")}
        return self.transform.traits.initial(**params)

    def _identity(self) -> tuple[object, ...]:
        return ("apply", self.transform, dict(self.bound.arguments))

    def _describe(self) -> str:
        return " ".join([self.transform.traits.key, *[f"{n}={v!r:.40}" for n, v in self.params.items()]])

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        declared = self.transform.signature.parameters
        given = self.bound.arguments.items()
        return {n: v for n, v in given if n not in self.transform.operands and v is not declared[n].default}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "bound": dict(self.bound.arguments)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        bound = inspect.BoundArguments(state["transform"].signature, OrderedDict(state.pop("bound")))
        self.__dict__.update(state, bound=bound)


@overload
def transform(function: Callable[..., Any], /) -> Transform: ...
@overload
def transform(
    key: str | None = None,
    /,
    *,
    version: int | None = ...,
    groups: bool | Literal["rollout", "batch"] = ...,
    range: Callable[..., Interval] | None = ...,
    axis: Callable[..., str] | None = ...,
    lazy: Laziness | None = ...,
    initial: Callable[..., State] | None = ...,
) -> Callable[[Callable[..., Any]], Transform]: ...
def transform(
    key: str | Callable[..., Any] | None = None,
    /,
    *,
    version: int | None = None,
    groups: bool | Literal["rollout", "batch"] = False,
    range: Callable[..., Interval] | None = None,
    axis: Callable[..., str] | None = None,
    lazy: Laziness | None = None,
    initial: Callable[..., State] | None = None,
) -> Any:
    """Turn a pure function ``Scores -> Scores`` into one that also takes rewards and then builds a node.

    It stands with or without arguments: ``@transform``, ``@transform("key", groups=True)``.

    Parameters annotated with ``Scores`` (also in a sequence or mapping) are operands; all others are parameters, which
    must be plain data. ``groups=True`` says that it reads whole groups, ``"rollout"`` all items of a rollout,
    ``"batch"`` the whole batch: what a branch that asks for a part of them would else leave out. ``range`` and ``axis``
    are called with the function's own arguments, where each operand is its interval or axis name. A function with
    memory declares ``initial`` (called with its parameters), takes ``state=`` and returns ``(scores, state)``.

    >>> from guerdon.core.interval import Interval
    >>> @transform("double", range=lambda x: x + x)
    ... def double(x: "Scores") -> "Scores":
    ...     return Scores.of(x.axis, 2 * x.values, x.known, x)
    >>> double(Constant(3.0)).range
    Interval(low=6.0, high=6.0)
    """

    def wrap(function: Callable[..., Any]) -> Transform:
        name = key if isinstance(key, str) else f"{function.__module__}.{function.__qualname__}"
        return Transform(function, Traits(name, version, groups, range, axis, lazy, initial))

    return wrap(key) if callable(key) else wrap


def leaves(value: Any) -> Iterator[Any]:
    """The operands inside an argument: itself, or the items of a sequence or the values of a mapping."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield value


def _mapped(value: Any, swap: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {k: _mapped(v, swap) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_mapped(v, swap) for v in value)
    return None if value is None else swap(value)


def _as_scores(value: Any, like: Scores) -> Scores:
    if isinstance(value, Scored):
        return value.framed
    if isinstance(value, Scores):
        return value
    if isinstance(value, (int, float)):
        return Scores.constant(like.axis, float(value))
    raise TypeError(f"expected scores or a number, not {type(value).__name__} {value!r:.60}")


def _rebuild(data: bytes) -> Transform:
    return Transform(*pickle.loads(data))  # our own bytes, inside a pickle that is loaded already


def _find(module: str, qualname: str) -> Any:
    import importlib

    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


__all__ = ["Apply", "Constant", "Laziness", "State", "Traits", "Transform", "transform"]
