"""Units: names, conversion to base dimensions, and reading a unit expression such as ``km/h`` or ``cm^2``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

__all__ = ["UNITS", "Unit", "parse_unit"]

Dimension = tuple[tuple[str, int], ...]


class Unit(NamedTuple):
    """A unit as ``factor`` times a product of base dimensions; ``text`` is how it was written.

    A unit word that isn't in the table (apples, pages) is its own dimension, named by its singular.
    """

    factor: Fraction
    dimension: Dimension
    text: str
    known: bool = True


# name(s) -> factor, dimension. Written "a|b" for synonyms; a plural s is accepted for words of 3 letters and more.
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("m|meter|metre", "1", "L"), ("in|inch|inches", "0.0254", "L"), ("ft|foot|feet", "0.3048", "L"),
    ("yd|yard", "0.9144", "L"), ("mi|mile", "1609.344", "L"), ("nm_|nanometer", "1e-9", "L"),
    ("km|kilometer|kilometre", "1000", "L"), ("cm|centimeter|centimetre", "0.01", "L"),
    ("mm|millimeter|millimetre", "0.001", "L"), ("dm|decimeter|decimetre", "0.1", "L"),
    ("nm|nanometre", "1e-9", "L"), ("um|micrometer|micron", "1e-6", "L"), ("AU", "149597870700", "L"),
    ("g|gram|gramme", "1", "M"), ("kg|kilogram|kilo", "1000", "M"), ("mg|milligram", "0.001", "M"),
    ("ton|tonne", "1000000", "M"), ("lb|lbs|pound", "453.59237", "M"), ("oz|ounce", "28.349523125", "M"),
    ("s|sec|second", "1", "T"), ("min|mins|minute", "60", "T"), ("h|hr|hrs|hour", "3600", "T"),
    ("d|day", "86400", "T"), ("week|wk", "604800", "T"), ("month|mo", "1", "month"), ("year|yr|yrs", "12", "month"),
    ("ms|millisecond", "0.001", "T"), ("ns|nanosecond", "1e-9", "T"), ("us|microsecond", "1e-6", "T"),
    ("decade", "120", "month"), ("century|centuries", "1200", "month"),
    ("l|L|liter|litre", "0.001", "L3"), ("ml|mL|milliliter|millilitre", "0.000001", "L3"),
    ("gal|gallon", "0.003785411784", "L3"), ("quart|qt", "0.000946352946", "L3"),
    ("pint|pt", "0.000473176473", "L3"), ("cup", "0.0002365882365", "L3"), ("cc", "0.000001", "L3"),
    ("acre", "4046.8564224", "L2"), ("hectare|ha", "10000", "L2"),
    ("mph", "0.44704", "L/T"), ("kmh|kph|kmph", "5/18", "L/T"),
    ("N|newton", "1000", "ML/T2"), ("J|joule", "1000", "ML2/T2"), ("W|watt", "1000", "ML2/T3"),
    ("kN|kilonewton", "1000000", "ML/T2"), ("kJ|kilojoule", "1000000", "ML2/T2"),
    ("kW|kilowatt", "1000000", "ML2/T3"), ("MW|megawatt", "1000000000", "ML2/T3"),
    ("kWh|kilowatthour", "3600000000", "ML2/T2"),
    ("cal|calorie", "4184", "ML2/T2"), ("kcal|kilocalorie", "4184000", "ML2/T2"),
    ("eV|electronvolt", "1.602176634e-16", "ML2/T2"),
    ("Pa|pascal", "1000", "M/LT2"), ("kPa|kilopascal", "1000000", "M/LT2"), ("atm|atmosphere", "101325000", "M/LT2"),
    ("Hz|hertz", "1", "/T"), ("kHz|kilohertz", "1000", "/T"), ("MHz|megahertz", "1000000", "/T"),
    ("GHz|gigahertz", "1000000000", "/T"), ("rpm", "1/60", "/T"),
    ("A|amp|ampere", "1", "I"), ("mA|milliampere", "0.001", "I"),
    ("V|volt", "1000", "ML2/T3I"), ("kV|kilovolt", "1000000", "ML2/T3I"), ("mV|millivolt", "1", "ML2/T3I"),
    ("C|coulomb", "1", "TI"), ("ohm|Ω|Ohm", "1000", "ML2/T3I2"), ("K|kelvin", "1", "Θ"),
    ("mol|mole", "1", "mol"),
    ("deg|degree|°", "1", "angle"), ("rad|radian", "1", "radian"), ("°C|celsius", "1", "celsius"),
    ("°F|fahrenheit", "1", "fahrenheit"),
    ("dollar|usd|USD|bucks|buck|$", "1", "usd"), ("cent|¢", "0.01", "usd"), ("dime", "0.1", "usd"),
    ("euro|EUR|eur|€", "1", "eur"), ("GBP|£", "1", "gbp"),
    ("yen|JPY|¥", "1", "jpy"), ("yuan|RMB|rmb|CNY|元", "1", "cny"), ("rupee|rs|Rs|INR|₹", "1", "inr"),
    ("won|₩", "1", "krw"), ("peso", "1", "peso"), ("ruble|rouble|₽", "1", "rub"),
    ("dozen", "12", ""), ("hundred", "100", ""), ("thousand", "1000", ""), ("million", "1000000", ""),
    ("billion", "1000000000", ""), ("trillion", "1000000000000", ""), ("people|person|persons", "1", "person"),
    ("bit", "1", "bit"), ("byte|B", "8", "bit"), ("kB|KB|kilobyte", "8000", "bit"), ("MB|megabyte", "8000000", "bit"),
    ("GB|gigabyte", "8000000000", "bit"),
    ("unit|sq_unit", "1", "unit"),
)  # fmt: skip

_DIM = re.compile(
    r"([A-ZΘ]|month|radian|angle|celsius|fahrenheit|usd|eur|gbp|jpy|cny|inr|krw|peso|rub|mol|person|bit|unit)(\d?)"
)


def _dimension(code: str) -> Dimension:
    powers: dict[str, int] = {}
    for sign, part in zip((1, -1), code.split("/"), strict=False):
        for base, power in _DIM.findall(part):
            powers[base] = powers.get(base, 0) + sign * int(power or 1)
    return tuple(sorted((b, p) for b, p in powers.items() if p))


def _build() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for names, factor, code in _TABLE:
        for name in names.split("|"):
            unit = Unit(Fraction(factor), _dimension(code), name)
            table[name] = unit
            if len(name) >= 3 and name.isalpha() and name.islower() and not name.endswith("s"):
                table[name + "s"] = unit
    return table


UNITS: dict[str, Unit] = _build()
# Read as a unit only where written as text or clearly after a plain number: as letters these are usually variables.
SOFT = frozenset(n for n in UNITS if len(n) == 1 and n.isalpha()) | {"in", "min", "mi", "pt", "mo", "us", "rs", "cal"}
_POWER_WORDS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cubed": 3, "cu": 3}
_PIECE = re.compile(
    r"\s?(?:(°[CF]?|[A-Za-zµμΩ$€£¥₹₩₽¢元]+\.?)|(?:\^\s?\{?\s?|(?<=[A-Za-z]))(-?\d)(?!\s?\d)\s?\}?|([/*·])|(\\cdot|\\times))"
)


def _combine(powers: dict[str, int], unit: Unit, power: int) -> Fraction:
    for base, p in unit.dimension:
        powers[base] = powers.get(base, 0) + p * power
    if not unit.dimension and not unit.known:
        powers[unit.text] = powers.get(unit.text, 0) + power
    return unit.factor**power


def _pieces(text: str) -> list[tuple[str, str, str]] | None:
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None or match.end() == at:
            return None
        found.append((match[1] or "", match[2] or "", match[3] or match[4] or ""))
        at = match.end()
    return found


def parse_unit(text: str) -> Unit | None:
    """The unit written in ``text``, or ``None`` if any part of it isn't in the table.

    Example:
        >>> parse_unit("km/h").factor == parse_unit("m/s").factor * 5 / 18
        True
        >>> parse_unit("apples") is None
        True
    """
    if not text or len(text) > 60:
        return None
    whole = UNITS.get(text.strip())
    if whole is not None:
        return whole
    pieces = _pieces(text)
    if not pieces:
        return None
    factor, powers, sign, prefix_power = Fraction(1), dict[str, int](), 1, 1
    last: tuple[Unit, int] | None = None
    for word, power, operator in pieces:
        if operator:
            sign = -1 if operator == "/" else sign
            last = None if operator == "/" else last
        elif power:
            if last is None:
                return None
            factor *= _combine(powers, last[0], last[1] * (int(power) - 1))
        elif word.lower() in ("per", "an", "a") or word == "p":
            sign, last = (-1, None) if word.lower() == "per" else (sign, last)
        elif word in _POWER_WORDS:
            if last is not None and word in ("squared", "cubed"):
                factor *= _combine(powers, last[0], last[1] * (_POWER_WORDS[word] - 1))
            else:
                prefix_power = _POWER_WORDS[word]
        else:
            unit = UNITS.get(word) or UNITS.get(word.rstrip(".")) or UNITS.get(word.lower().rstrip("."))
            if unit is None:
                return None
            last = (unit, sign)
            factor *= _combine(powers, unit, sign * prefix_power)
            last, prefix_power = (unit, sign * 1), 1
    if last is None and not powers:
        return None
    return Unit(factor, tuple(sorted((b, p) for b, p in powers.items() if p)), text.strip())
