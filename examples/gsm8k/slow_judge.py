"""A slow leaf, as a judge model would be: it waits like a call over the network, and then checks something real."""

from __future__ import annotations

import asyncio
import re
from fractions import Fraction

import guerdon as gd

STEP = re.compile(r"<<\s*([\d.]{1,15})\s*([-+*/])\s*([\d.]{1,15})\s*=\s*([\d.]{1,20})\s*>>")


@gd.signal(needs="judge", range=(0, 1), reads=("completion",), version=1)
async def careful(rollout: gd.Rollout, *, seconds: float = 0.02) -> gd.Score:
    """Share of the written-out calculations, such as <<16-3=13>>, that are right; unknown where there are none."""
    await asyncio.sleep(seconds)
    verdicts = [_is_right(*step) for step in STEP.findall(rollout.text)]
    known = [v for v in verdicts if v is not None]
    if not known:
        return gd.Score.unknown("no calculation is written out")
    return gd.Score(sum(known) / len(known), right=sum(known), steps=len(known))


def _is_right(a: str, operator: str, b: str, result: str) -> bool | None:
    try:
        x, y, claimed = Fraction(a), Fraction(b), Fraction(result)
    except ValueError:
        return None
    if operator == "/" and y == 0:
        return False
    value = {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else x}[operator]
    return abs(value - claimed) <= Fraction(1, 100)
