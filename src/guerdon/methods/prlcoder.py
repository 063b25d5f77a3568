"""PRLCoder: line rewards for code, from labels that mutation and execution give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from guerdon.core.reward import Reward
from guerdon.credit import pay_last
from guerdon.methods._registry import method
from guerdon.methods.agent_rlvr import resolved
from guerdon.verify.programs.check import check_code, check_code_many
from guerdon.verify.programs.mutate import Unit, mutations, replaced, units
from guerdon.verify.programs.tasks import TaskError
from guerdon.verify.programs.verdict import Verdict


@method(
    "prlcoder",
    family="data",
    name="PRLCoder: process-supervised reinforcement learning for code generation",
    source="Ye et al. 2025, arXiv:2502.01715",
    evidence="abstract-only",
)
def prlcoder(line: Reward, outcome: Reward, *, signed: bool = True, weight: float = 1.0) -> Reward:
    """``r_l = 2 p_l - 1`` (``p_l`` with ``signed=False``) at each line, plus ``weight * outcome`` at the last.

    ``line``: the process model's ``P(+ | prompt, lines up to l)`` in [0, 1], shape ``(steps,)`` with the program's
    lines as steps; ``outcome`` in [0, 1] per rollout, from tests (`verify.code`). Both forms are *inferred*, as is
    ``weight``. `credit.pay_last` puts steps at their last tokens, where the trainer takes off its KL term. The model's
    training data comes from `label_lines`.

    Traps: weak tests call bugs refactorings, so `label_lines` asks for killing power; an unknown line or outcome makes
    the whole rollout unknown; many lines of small positive reward can outweigh the outcome.

    >>> import guerdon as gd
    >>> rows = [{"line": [1.0, 0.25], "ok": 1.0}]
    >>> gd.method("prlcoder", gd.column("line", axis="step"), gd.column("ok")).score(rows).values.tolist()
    [1.0, 0.5]
    """
    paid: Reward = pay_last(line * 2.0 - 1.0 if signed else line, outcome, weight=weight)
    return paid


@dataclass(frozen=True, slots=True)
class LineLabel:
    """A statement after its ``prefix``: 1 right, 0 wrong, ``None`` without a label, and then ``reason`` says why.

    ``first`` to ``last`` are its lines in the program, from 1; ``original`` is false for a changed statement. Nothing
    after a changed statement is part of the label.
    """

    first: int
    last: int
    prefix: str
    text: str
    label: int | None
    original: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Labelled:
    """The labels of a program, and the share of its mutations that the tests kill (``None`` where none was run)."""

    lines: tuple[LineLabel, ...]
    killing_power: float | None
    reason: str = ""

    def examples(self, prompt: str) -> list[dict[str, Any]]:
        """Training rows ``{prompt, prefix, line, label}`` of what has a label."""
        return [
            {"prompt": prompt, "prefix": one.prefix, "line": one.text, "label": one.label}
            for one in self.lines
            if one.label is not None
        ]


def label_lines(
    program: str,
    task: Mapping[str, Any],
    replacements: Iterable[tuple[int, str]] = (),
    *,
    per_line: int = 8,
    least_power: float = 0.5,
    seconds: float = 2.0,
) -> Labelled:
    """Change one statement of a right program at a time, run the tests in the sandbox, and label the statement by them.

    ``program``: passes ``task`` (see `verify.check_code`); else nothing is labelled. ``replacements``: other texts for
    the statement at a line (from 1), say a language model's; besides, up to ``per_line`` mutations of each statement
    are made from its syntax tree. 1 if all tests pass with the change (a refactoring), else 0; a time-out or crash is a
    failed test; no label where the sandbox gives no verdict. Unchanged statements are 1. If the tests kill less than
    ``least_power`` of the mutations, a change that passes proves nothing and has no label. Raises ``ValueError`` for a
    replacement at a line where no statement starts.

    >>> lines = ["def f(a,b):", " c=a+b", " return c"]
    >>> task = {"entry_point": "f", "cases": [[[2, 3], 5]]}
    >>> given = [(2, "c=a-b"), (2, "c=b+a"), (3, "return a+b")]
    >>> done = label_lines("\\n".join(lines), task, given, per_line=0)
    >>> [(one.first, one.text.strip(), one.label) for one in done.lines if not one.original]
    [(2, 'c=a-b', 0), (2, 'c=b+a', 1), (3, 'return a+b', 1)]
    """
    found = units(program)
    own = [(unit, text) for unit in found for text in mutations(unit)[:per_line]]
    theirs = [(_at(found, line), text) for line, text in replacements]
    try:
        whole = check_code(program, task, seconds=seconds)
    except TaskError as error:
        return Labelled(
            tuple(_line(program, unit, unit.text, None, True, str(error)) for unit in found), None, str(error)
        )
    if _label(whole) != 1:
        why = f"the program itself does not pass: {whole.reason}"
        return Labelled(tuple(_line(program, unit, unit.text, None, True, why) for unit in found), None, why)
    changed = [*own, *theirs]
    verdicts = check_code_many([(replaced(program, *one), task) for one in changed], seconds=seconds)
    killed = [_label(verdict) for verdict in verdicts[: len(own)]]
    judged = [label for label in killed if label is not None]
    power = judged.count(0) / len(judged) if judged else None
    lines = [_line(program, unit, unit.text, 1, True) for unit in found]
    for (unit, text), verdict in zip(changed, verdicts, strict=True):
        lines.append(_line(program, unit, text, _label(verdict), False, verdict.reason))
    if power is not None and power < least_power:
        weak = f"the tests kill only {power:.0%} of the mutations"
        lines = [one if one.original or one.label != 1 else replace(one, label=None, reason=weak) for one in lines]
    return Labelled(tuple(sorted(lines, key=lambda one: (one.first, not one.original))), power)


def _at(found: list[Unit], line: int) -> Unit:
    unit = next((unit for unit in found if unit.first == line), None)
    if unit is None:
        raise ValueError(f"no statement starts at line {line}; they start at {[unit.first for unit in found]}")
    return unit


def _label(verdict: Verdict) -> int | None:
    """1, 0, or None: no verdict and no failed test, or no test at all."""
    reward = resolved(verdict)
    return None if reward is None else int(reward)


def _line(program: str, unit: Unit, text: str, label: int | None, original: bool, reason: str = "") -> LineLabel:
    before = replaced(program, unit, text).splitlines()[: unit.first - 1]
    indent = unit.text[: len(unit.text) - len(unit.text.lstrip())]
    shown = unit.text if original else "\n".join(indent + line for line in text.splitlines())
    return LineLabel(unit.first, unit.last, "".join(f"{line}\n" for line in before), shown, label, original, reason)
