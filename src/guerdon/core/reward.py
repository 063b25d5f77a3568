"""Rewards are expressions: immutable nodes with children, an axis, a range and a fingerprint."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from guerdon.core.errors import SpecError
from guerdon.core.fingerprint import digest
from guerdon.core.interval import Interval
from guerdon.core.rollout import Rollout
from guerdon.core.scores import UnknownPolicy

if TYPE_CHECKING:
    from guerdon.core.frame import Frame
    from guerdon.core.scored import Scored
    from guerdon.core.session import Session


class Reward:
    """A node of a reward expression. Nodes are never changed; operators build new ones.

    ``a + b``, ``a - b``, ``a * b``, ``a / b``, ``-a``, comparisons, ``a & b``, ``a | b`` and ``~a`` work item by item;
    ``a.mean()``, ``a.min()``... reduce to the parent axis; scores on a coarser axis are repeated down.
    """

    name: str | None = None
    """What the node is called in a spec, in explanations and in scored files."""
    axis: str
    """The axis its scores live on."""
    range: Interval
    """Where its known values can lie."""
    children: tuple[Reward, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Stable hash of node type, version, parameters and children; the name is not part of it."""
        return digest(*self._identity())

    def _identity(self) -> tuple[object, ...]:
        raise NotImplementedError

    @property
    def stable(self) -> bool:
        """Whether the fingerprint is the same in every process; else it stands for this object only."""
        return True

    @property
    def label(self) -> str:
        """A short text for people: the name, or what the node does."""
        return self.name or self._describe()

    def _describe(self) -> str:
        return type(self).__name__.lower()

    def named(self, name: str) -> Self:
        """The same node under a name: a column of scored files, a key of specs."""
        if not name.isidentifier():
            raise SpecError(f"{name!r} is not a node name: use letters, digits and underscores")
        return self._with(name=name)

    def within(self, low: float, high: float) -> Reward:
        """The same node with a declared range: a known value outside it is a failure, never clipped."""
        return Bounded(self, Interval(low, high))

    def _with(self, **changes: object) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, **changes)
        return twin

    def walk(self) -> Iterator[Reward]:
        """This node and all below it, children first, a shared node once."""
        seen: dict[tuple[str, str | None], None] = {}
        stack: list[tuple[Reward, bool]] = [(self, False)]
        while stack:
            node, done = stack.pop()
            key = (node.fingerprint, node.name)
            if key in seen:
                continue
            if done:
                seen[key] = None
                yield node
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.children))

    def __repr__(self) -> str:
        inside = ", ".join(child.label for child in self.children)
        head = f"{self.name} = " if self.name else ""
        return f"{head}{self._describe()}({inside})" if inside else f"{head}{self._describe()}"

    # Scoring: one async core, and a thin sync face.

    def score(
        self,
        rollouts: Frame | Iterable[Rollout | Mapping[str, Any]],
        *,
        session: Session | None = None,
        unknown: UnknownPolicy = "keep",
    ) -> Scored:
        """Score ``rollouts`` (rollouts, plain mappings, or a frame), in any thread and inside a running event loop.

        ``unknown`` says what unknown scores become at this edge: ``"keep"``, ``"raise"``, ``"group-mean"`` or a number.
        """
        from guerdon.core.engine import evaluate, needs_loop
        from guerdon.core.runtime import drive, run_sync

        run = run_sync if needs_loop(self) else drive
        return run(evaluate(self, rollouts, session=session, unknown=unknown))

    async def ascore(
        self,
        rollouts: Frame | Iterable[Rollout | Mapping[str, Any]],
        *,
        session: Session | None = None,
        unknown: UnknownPolicy = "keep",
    ) -> Scored:
        """`score` for async code: signals that block run in threads or worker processes, not in the event loop."""
        from guerdon.core.engine import evaluate

        return await evaluate(self, rollouts, session=session, unknown=unknown, in_loop=True)

    def stream(
        self,
        batches: Iterable[Frame | Iterable[Rollout | Mapping[str, Any]]],
        *,
        session: Session | None = None,
        unknown: UnknownPolicy = "keep",
    ) -> Iterator[Scored]:
        """Score batch after batch, each of whole groups; only one batch is held at a time. State is carried along."""
        from guerdon.core.session import Session

        session = session or Session()
        for batch in batches:
            yield self.score(batch, session=session, unknown=unknown)

    async def astream(
        self,
        batches: Iterable[Frame | Iterable[Rollout | Mapping[str, Any]]],
        *,
        session: Session | None = None,
        unknown: UnknownPolicy = "keep",
    ) -> AsyncIterator[Scored]:
        """`stream` for async code."""
        from guerdon.core.session import Session

        session = session or Session()
        for batch in batches:
            yield await self.ascore(batch, session=session, unknown=unknown)

    def for_trl(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        """This reward as a reward function of TRL's trainers. The settings are those of `guerdon.connect.for_trl`."""
        connect: Any = importlib.import_module("guerdon.connect")  # by name: the core itself knows no trainer
        function: Callable[..., Any] = connect.for_trl(self, name, **settings)
        return function

    # Operators. The functions behind them are in core.operators; they are looked up late since they build on nodes.

    def __add__(self, other: object) -> Reward:
        return _operate("add", self, other)

    def __radd__(self, other: object) -> Reward:
        return _operate("add", other, self)

    def __sub__(self, other: object) -> Reward:
        return _operate("subtract", self, other)

    def __rsub__(self, other: object) -> Reward:
        return _operate("subtract", other, self)

    def __mul__(self, other: object) -> Reward:
        return _operate("multiply", self, other)

    def __rmul__(self, other: object) -> Reward:
        return _operate("multiply", other, self)

    def __truediv__(self, other: object) -> Reward:
        return _operate("divide", self, other)

    def __rtruediv__(self, other: object) -> Reward:
        return _operate("divide", other, self)

    def __neg__(self) -> Reward:
        return _operate("negate", self)

    def __invert__(self) -> Reward:
        return _operate("negation", self)

    def __and__(self, other: object) -> Reward:
        return _operate("both", self, other)

    def __rand__(self, other: object) -> Reward:
        return _operate("both", other, self)

    def __or__(self, other: object) -> Reward:
        return _operate("either", self, other)

    def __ror__(self, other: object) -> Reward:
        return _operate("either", other, self)

    def __lt__(self, other: object) -> Reward:
        return _operate("less", self, other)

    def __le__(self, other: object) -> Reward:
        return _operate("less_equal", self, other)

    def __gt__(self, other: object) -> Reward:
        return _operate("less", other, self)

    def __ge__(self, other: object) -> Reward:
        return _operate("less_equal", other, self)

    def __eq__(self, other: object) -> Reward:  # type: ignore[override]  # builds a node, as in polars
        return _operate("equal", self, other)

    def __ne__(self, other: object) -> Reward:  # type: ignore[override]
        return _operate("negation", _operate("equal", self, other))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "a reward is an expression, not a truth value: use & for and, | for or, ~ for not, gd.when for if"
        )

    def mean(self, *, to: str | None = None, missing: str = "unknown") -> Reward:
        """Mean up to the parent axis, or to the axis ``to``."""
        return _operate("mean", self, to=to, missing=missing)

    def sum(self, *, to: str | None = None, missing: str = "unknown") -> Reward:
        """Sum up to the parent axis, or to the axis ``to``."""
        return _operate("total", self, to=to, missing=missing)

    def min(self, *, to: str | None = None, missing: str = "unknown") -> Reward:
        """Least value up to the parent axis, or to the axis ``to``."""
        return _operate("least", self, to=to, missing=missing)

    def max(self, *, to: str | None = None, missing: str = "unknown") -> Reward:
        """Greatest value up to the parent axis, or to the axis ``to``."""
        return _operate("greatest", self, to=to, missing=missing)

    def product(self, *, to: str | None = None, missing: str = "unknown") -> Reward:
        """Product up to the parent axis, or to the axis ``to``."""
        return _operate("product", self, to=to, missing=missing)

    def last(self, *, to: str | None = None, missing: str = "unknown") -> Reward:
        """The last item's value up to the parent axis, or to the axis ``to``."""
        return _operate("last", self, to=to, missing=missing)


def _operate(name: str, *operands: object, **params: object) -> Reward:
    from guerdon.core import operators

    function: Callable[..., Any] = getattr(operators, name)
    result = function(*[as_reward(o) for o in operands], **params)
    assert isinstance(result, Reward)
    return result


def as_reward(value: object) -> Reward:
    """A reward as it is, a number as a constant."""
    if isinstance(value, Reward):
        return value
    if isinstance(value, (int, float)):
        return Constant(float(value))
    raise TypeError(f"expected a reward or a number, not {type(value).__name__} {value!r:.60}")


class Constant(Reward):
    """One number for everything."""

    axis = "prompt"

    def __init__(self, value: float) -> None:
        self.value = float(value)
        self.range = Interval(self.value, self.value)

    def _identity(self) -> tuple[object, ...]:
        return ("constant", self.value)

    def _describe(self) -> str:
        return f"{self.value:g}"


class Column(Reward):
    """A score that the data already holds."""

    def __init__(self, source: str, axis: str = "rollout", range: tuple[float, float] | Interval | None = None) -> None:
        self.source = source
        self.axis = axis
        self.range = Interval.of(range)

    def _identity(self) -> tuple[object, ...]:
        return ("column", self.source, self.axis, self.range.low, self.range.high)

    def _describe(self) -> str:
        return f'column("{self.source}")'


class Bounded(Reward):
    """A node whose known values must lie in a declared range."""

    def __init__(self, child: Reward, bounds: Interval) -> None:
        self.children = (child,)
        self.axis = child.axis
        self.bounds = bounds
        self.range = bounds

    def _identity(self) -> tuple[object, ...]:
        return ("bounded", self.bounds.low, self.bounds.high, self.children[0])

    def _describe(self) -> str:
        return f"within {self.bounds}"


def constant(value: float) -> Constant:
    """The same number for every rollout."""
    return Constant(value)


def column(name: str, axis: str = "rollout", *, range: tuple[float, float] | None = None) -> Column:
    """A score that the data already holds: the column ``name``, a number per rollout (or a list for finer axes).

    Missing values are unknown. With ``range``, a value outside it is unknown too, and counts as a failure.
    """
    return Column(name, axis, range)
