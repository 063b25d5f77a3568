"""Constants of integration: two antiderivatives that differ by a constant are the same answer, by policy."""

from __future__ import annotations

import re

from .nodes import Expr, Num, Op, Sym, free_names, size, substitute
from .policy import Policy
from .scalar import compare_scalars
from .verdict import Outcome, Reason, same, undecided

__all__ = ["compare_with_constants"]

_CONSTANT = re.compile(r"^[CcK](?:_?\d)?$|^\\?const$")
ZERO = Num(0, -1, 0)


def compare_with_constants(a: Expr, b: Expr, policy: Policy, before: Outcome) -> Outcome:
    """``before`` unless the two differ only in free constants (additive, or renamed)."""
    if policy.constant != "free" or before.equal is True:
        return before
    ca = sorted(n for n in free_names(a) if _CONSTANT.match(n))
    cb = sorted(n for n in free_names(b) if _CONSTANT.match(n))
    if not (ca or cb) or max(size(a), size(b)) > 300:
        return before
    if ca and cb and ca != cb and len(ca) == len(cb) <= 3:
        renamed = b
        for i, name in enumerate(cb):
            renamed = substitute(renamed, name, Sym(f"@{i}"))
        for i, name in enumerate(ca):
            renamed = substitute(renamed, f"@{i}", Sym(name))
        outcome = compare_scalars(a, renamed, policy)
        if outcome.equal:
            return same(outcome.tier, "equal up to the names of the constants")
    if len(ca) > 1 or len(cb) > 1:
        return before
    return _additive(a, b, ca, cb, policy, before)


def _additive(a: Expr, b: Expr, ca: list[str], cb: list[str], policy: Policy, before: Outcome) -> Outcome:
    bare_a, bare_b = (substitute(e, c[0], ZERO) if c else e for e, c in ((a, ca), (b, cb)))
    variables = free_names(bare_a) | free_names(bare_b)
    if not variables or not all(
        _is_additive(e, bare, c, policy) for e, bare, c in ((a, bare_a, ca), (b, bare_b, cb)) if c
    ):
        return before
    if ca and cb:
        gap: Expr = Op("add", (bare_a, Op("neg", (bare_b,))))
        fixed = gap
        for i, name in enumerate(sorted(variables)):
            fixed = substitute(fixed, name, Num(2 + i, -1, 1))
        if compare_scalars(gap, fixed, policy).equal:
            return same("evaluation", "equal up to a constant of integration")
        return before
    if compare_scalars(bare_a, bare_b, policy).equal:
        return undecided(Reason.POLICY, "structure", "a constant of integration on one side only")
    return before


def _is_additive(expr: Expr, bare: Expr, names: list[str], policy: Policy) -> bool:
    """Whether the constant is only added: expr = bare ± C."""
    constant: Expr = Sym(names[0])
    return any(
        compare_scalars(expr, Op("add", (bare, term)), policy).equal for term in (constant, Op("neg", (constant,)))
    )
