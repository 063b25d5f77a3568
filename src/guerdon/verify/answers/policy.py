"""What a caller decides about answers that mathematics alone doesn't settle."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

__all__ = ["Policy"]

KINDS = ("math", "number", "choice", "text", "units")


@dataclass(frozen=True)
class Policy:
    """Choices under which two answers are compared; the defaults are documented in ``docs/answers.md``.

    * ``missing_unit``: one side has a unit, the other none. ``"accept"``: compare the numbers;
      ``"reject"``: different; ``"unknown"``: no verdict. Two stated units must always agree after conversion.
    * ``percent``: ``"fraction"``: 50 % is 0.5 (and 50 against 50 % is a matter of policy, so unknown);
      ``"number"``: 50 % is 50; ``"strict"``: a percentage equals only a percentage.
    * ``digits``: a decimal with at least two more significant digits than this, most of them after the point,
      stands for any value that agrees with it to ``digits`` significant digits.
    * ``rounding``: a shorter decimal that is a correct rounding of the other, exact value:
      ``"unknown"`` (precision was not asked for), ``"accept"`` or ``"reject"``.
    * ``decimal_places``: when set, both numbers are first rounded half-even to that many places.
    * ``tuple_order``: ``"strict"`` or ``"free"`` for parenthesised tuples; sets and bare lists have no order.
    * ``duplicates``: whether a repeated member of a set or bare list matters (``"ignore"`` or ``"count"``).
    * ``constant``: constants of integration: ``"free"``: antiderivatives that differ by a constant are equal
      when both carry one; ``"literal"``: C is a symbol like any other.
    * ``which``: the answer taken from a completion with several: ``"last"``, ``"first"`` or ``"all"``
      (all stated answers must agree, else there is no answer).
    * ``tags``: XML-like tags whose content is the answer.
    * ``options``: letters that are valid choices; ``choices`` the option texts in the same order.
    * ``case``: whether case matters in text answers (``"ignore"`` or ``"strict"``).
    * ``unclosed_box``: whether ``\\boxed{5`` without its closing brace counts.
    * ``seconds``: deadline of the computer-algebra step (0 turns that step off).

    Example:
        >>> Policy(percent="number").percent
        'number'
    """

    missing_unit: Literal["accept", "reject", "unknown"] = "accept"
    percent: Literal["fraction", "number", "strict"] = "fraction"
    digits: int = 10
    rounding: Literal["unknown", "accept", "reject"] = "unknown"
    decimal_places: int | None = None
    tuple_order: Literal["strict", "free"] = "strict"
    duplicates: Literal["ignore", "count"] = "ignore"
    constant: Literal["free", "literal"] = "free"
    which: Literal["last", "first", "all"] = "last"
    tags: tuple[str, ...] = ("answer",)
    options: str = "ABCDEFGHIJ"
    choices: tuple[str, ...] = ()
    case: Literal["ignore", "strict"] = "ignore"
    unclosed_box: bool = False
    seconds: float = 1.0

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a choice that doesn't exist, naming the field and what it may be."""
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"Policy.{name} is {value!r}; it may be {', '.join(map(repr, allowed))}")
        if not 4 <= self.digits <= 40:
            raise ValueError(f"Policy.digits is {self.digits}; it may be 4 to 40")
        if self.decimal_places is not None and not 0 <= self.decimal_places <= 40:
            raise ValueError(f"Policy.decimal_places is {self.decimal_places}; it may be 0 to 40, or None")
        if not 0 <= self.seconds <= 3600:
            raise ValueError(f"Policy.seconds is {self.seconds}; it may be 0 to 3600")
        object.__setattr__(self, "tags", tuple(self.tags))
        object.__setattr__(self, "choices", tuple(self.choices))


ALLOWED: dict[str, tuple[str, ...]] = {
    "missing_unit": ("accept", "reject", "unknown"),
    "percent": ("fraction", "number", "strict"),
    "rounding": ("unknown", "accept", "reject"),
    "tuple_order": ("strict", "free"),
    "duplicates": ("ignore", "count"),
    "constant": ("free", "literal"),
    "which": ("last", "first", "all"),
    "case": ("ignore", "strict"),
}
FIELDS = frozenset(f.name for f in fields(Policy))
DEFAULT = Policy()


def policy_from(options: dict[str, object]) -> Policy:
    """Policy from keyword arguments; ``TypeError`` naming the valid ones for an unknown keyword."""
    if not options:
        return DEFAULT
    given = dict(options)
    base = given.pop("policy", DEFAULT)
    if not isinstance(base, Policy):
        raise TypeError(f"policy must be a Policy, not {type(base).__name__}")
    unknown = set(given) - FIELDS
    if unknown:
        raise TypeError(f"unknown policy option {sorted(unknown)}; the options are {sorted(FIELDS)}")
    values = {name: getattr(base, name) for name in FIELDS} | given
    return Policy(**values)  # the field types are checked in __post_init__
