"""Algebra of the verdict: symmetric, transitive within a policy, and blind to notation."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guerdon.verify.answers import equivalent

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "answers" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
]
STRINGS = sorted({row[side] for row in PAIRS for side in "ab"})

whole = st.integers(-10_000, 10_000)
ratio = st.fractions(min_value=-50, max_value=50, max_denominator=40)


def notations(value: Fraction) -> list[str]:
    """Ways of writing one rational number."""
    n, d = value.numerator, value.denominator
    out = [f"{n}/{d}", rf"\frac{{{n}}}{{{d}}}", rf"\dfrac{{{2 * n}}}{{{2 * d}}}", rf"$\frac{{{n}}}{{{d}}}$",
    rf"\boxed{{{n}/{d}}}",
           rf"{n}\cdot\frac{{1}}{{{d}}}", rf"\left(\frac{{{n}}}{{{d}}}\right)", f"x = {n}/{d}",
           f"**{n}/{d}**"]  # fmt: skip
    if n > d:
        q, r = divmod(n, d)
        out += [f"{q} {r}/{d}", rf"{q}\frac{{{r}}}{{{d}}}"] if r else [str(q), f"{q}.0", f"{q:,}"]
    if d in (1, 2, 4, 5, 8, 10, 20, 25, 40):
        decimal = format(n / d, ".10f").rstrip("0").rstrip(".")
        out += [
            decimal,
            decimal + ("0" if "." in decimal else ".00"),
            f"{n * 100 / d:g}\\%" if abs(n) < 500 else decimal,
        ]
    return out


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STRINGS), st.sampled_from(STRINGS))
def test_any_two_answers_get_the_same_verdict_in_either_order(a: str, b: str) -> None:
    assert equivalent(a, b, seconds=0).equal is equivalent(b, a, seconds=0).equal


@settings(max_examples=80, deadline=None)
@given(ratio, ratio, st.data())
def test_a_number_equals_itself_in_every_notation_and_no_other_number(
    x: Fraction, y: Fraction, data: st.DataObject
) -> None:
    a, b = data.draw(st.sampled_from(notations(x))), data.draw(st.sampled_from(notations(x)))
    assert equivalent(a, b).equal is True, (a, b)
    c = data.draw(st.sampled_from(notations(y)))
    if x != y:
        assert equivalent(a, c).equal is not True, (a, c)


POOLS = [
    ["50\\%", "0.5", "1/2", "50", "50.0", "0.50", "\\frac{1}{2}", "50 percent", "5\\%", "0.05", "5", "500\\%"],
    ["\\frac{1}{3}", "0.3333333333333333", "0.33333333333333", "0.\\overline{3}", "0.333333333333", "2/6",
    "0.33", "0.3334"],
    ["5\\text{ m}", "500\\text{ cm}", "0.005\\text{ km}", "5\\text{ cm}", "50 mm", "5000 mm", "0.05 m", "5 kg"],
    ["x=2", "2=x", "y=2", "x=3", "x=\\frac{4}{2}", "x=2.0"],
    ["(1,2)", "(1.0,2)", "(2,1)", "[1,2]", "(1,\\frac{4}{2})", "\\{1,2\\}", "\\{2,1\\}", "1,2", "2,1", "\\{1,1,2\\}"],
    ["x>2", "2<x", "(2,\\infty)", "x\\ge 2", "[2,\\infty)", "-x<-2", "x\\in(2,\\infty)", "2x>4"],
    ["y=2x+1", "2x-y+1=0", "2x+1", "4x-2y=-2", "y-1=2x", "y=2x-1", "2x-1"],
    ["\\sqrt{2}", "2^{1/2}", "\\frac{2}{\\sqrt{2}}", "1.4142135623730951", "1.414213562373", "1.414", "\\sqrt{3}"],
    ["(x+1)^2", "x^2+2x+1", "x(x+2)+1", "x^2+2x", "(1+x)^2", "(x+1)^3"],
    ["A", "(A)", "\\text{A}", "B", "A, B", "B, A", "A."],
    ["yes", "Yes", "no", "\\text{yes}", "true"],
    ["10^{-20}", "10^{-21}", "1e-20", "\\frac{1}{10^{20}}", "0"],
]  # fmt: skip


@pytest.mark.parametrize("pool", POOLS, ids=lambda p: p[0])
@pytest.mark.parametrize("percent", ["fraction", "number", "strict"])
def test_equality_is_transitive_within_a_policy(pool: list[str], percent: str) -> None:
    equal = {(a, b): equivalent(a, b, percent=percent, missing_unit="reject").equal for a in pool for b in pool}
    for a, b in equal:
        assert equal[a, b] is equal[b, a]
    for a, b, c in permutations(pool, 3):
        if equal[a, b] and equal[b, c]:
            assert equal[a, c] is True, (a, b, c)
        if equal[a, b]:
            assert equal[a, c] is not (not equal[b, c] if equal[b, c] is not None else 0), (a, b, c)


@settings(max_examples=60, deadline=None)
@given(st.lists(ratio, min_size=1, max_size=6, unique=True), st.randoms(), st.booleans())
def test_the_order_of_a_set_never_matters(values: list[Fraction], random, bare: bool) -> None:
    shuffled = values[:]
    random.shuffle(shuffled)
    left, right = (", ".join(rf"\frac{{{v.numerator}}}{{{v.denominator}}}" for v in vs) for vs in (values, shuffled))
    assert equivalent(rf"\{{{left}\}}", right if bare else rf"\{{{right}\}}").equal is True
    changed = [values[0] + 1000, *values[1:]]
    other = ", ".join(str(v) for v in changed)
    assert equivalent(rf"\{{{left}\}}", rf"\{{{other}\}}").equal is False


@settings(max_examples=60, deadline=None)
@given(st.lists(whole, min_size=2, max_size=5), st.lists(whole, min_size=2, max_size=5))
def test_tuples_are_equal_exactly_when_their_entries_are_in_order(a: list[int], b: list[int]) -> None:
    left, right = (f"({', '.join(map(str, v))})" for v in (a, b))
    assert equivalent(left, right).equal is (a == b)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=5), st.integers(1, 9), st.integers(-9, 9).filter(bool))
def test_expanding_adding_zero_and_scaling_an_equation_change_nothing(
    coefficients: list[int], shift: int, factor: int
) -> None:
    terms = "+".join(f"({c})x^{{{k}}}" for k, c in enumerate(coefficients))
    reversed_terms = "+".join(f"{c}*x**{k}" for k, c in reversed(list(enumerate(coefficients))))
    assert equivalent(terms, reversed_terms).equal is True
    assert equivalent(terms, f"{terms}+0").equal is True
    assert equivalent(terms, rf"\frac{{{shift}({terms})}}{{{shift}}}").equal is True
    assert equivalent(terms, f"{terms}+{shift}").equal is False
    if any(coefficients[1:]):
        scaled = f"{factor}({terms}) = {factor}y^2"
        assert equivalent(f"{terms} = y^2", scaled).equal is True
        assert equivalent(f"y^2 = {terms}", f"{terms} = y^2").equal is True
        assert equivalent(f"{terms} = y^2+{shift}", scaled).equal is False


@settings(max_examples=60, deadline=None)
@given(st.integers(-99, 99), st.integers(-99, 99), st.sampled_from(["<", "<=", ">", ">="]), st.integers(1, 9))
def test_an_inequality_may_be_flipped_scaled_or_written_as_an_interval(a: int, b: int, op: str, k: int) -> None:
    flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
    interval = {"<": rf"(-\infty,{a})", "<=": rf"(-\infty,{a}]", ">": rf"({a},\infty)", ">=": rf"[{a},\infty)"}[op]
    for other in (f"{a}{flipped}x", f"-x {flipped} {-a}", f"{k}x {op} {k * a}", interval, rf"x \in {interval}"):
        assert equivalent(f"x {op} {a}", other).equal is True, other
        if a != b:
            assert equivalent(f"x {op} {b}", other).equal is False, other
    assert equivalent(f"x {op} {a}", f"x {flipped} {a}").equal is False


@settings(max_examples=40, deadline=None)
@given(st.integers(10**18, 10**40), st.integers(1, 9))
def test_large_integers_are_compared_to_the_last_digit(n: int, k: int) -> None:
    assert equivalent(str(n), f"{n:,}").equal is True
    assert equivalent(str(n), str(n + k)).equal is False
    assert equivalent(rf"\frac{{1}}{{{n}}}", rf"\frac{{1}}{{{n + k}}}").equal is False
    assert equivalent(f"{n}x", f"{n + k}x").equal is False


WRAPPINGS = [
    "{}", "${}$", r"\({}\)", r"\[{}\]", r"\boxed{{{}}}", r"$\boxed{{{}}}$", "**{}**", "{}.", " {} ", "{{{}}}", "({})",
    r"\displaystyle {}", r"\left({}\right)",
]  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPPINGS)
@pytest.mark.parametrize("answer", ["5", r"\frac{1}{2}", "x^2+1", r"\sqrt{3}", "2\\pi", "-7"])
def test_wrapping_an_answer_changes_nothing(wrap: str, answer: str) -> None:
    assert equivalent(wrap.format(answer), answer).equal is True
    assert equivalent(wrap.format(answer), "17").equal is False
