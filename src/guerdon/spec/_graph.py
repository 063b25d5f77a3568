"""A reward expression as a drawing: Mermaid or DOT text."""

from __future__ import annotations

from typing import Literal

from guerdon.core.reward import Column, Constant, Reward
from guerdon.core.signal import Signal
from guerdon.core.transform import Apply
from guerdon.spec._read import Spec


def graph(spec: Spec | Reward, form: Literal["mermaid", "dot"] = "mermaid") -> str:
    """The expression as text to draw: signals rounded, what is asked only where needed behind dotted edges.

    >>> from guerdon.core.reward import column
    >>> print(graph(column("right").named("right") * 2))
    flowchart TD
      n0(["right = column('right')<br>range [-inf, inf]"])
      n1["2"]
      n2["scale<br>range [-inf, inf]"]
      n2 --> n0
      n2 --> n1
    """
    root = spec.reward if isinstance(spec, Spec) else spec
    nodes = list(root.walk())
    ids = {(n.fingerprint, n.name): f"n{i}" for i, n in enumerate(nodes)}
    draw, link, head, tail = (
        (_mermaid, _arrow, "flowchart TD", "") if form == "mermaid" else (_dot, _edge, "digraph reward {", "}")
    )
    lines = [head, *[f"  {draw(ids[n.fingerprint, n.name], n)}" for n in nodes]]
    for node in nodes:
        for i, child in enumerate(node.children):
            ends = ids[node.fingerprint, node.name], ids[child.fingerprint, child.name]
            lines.append(f"  {link(*ends, _lazily(node, i), _role(node, i))}")
    return "\n".join([*lines, tail] if tail else lines)


def _lazily(node: Reward, position: int) -> bool:
    lazy = node.transform.traits.lazy if isinstance(node, Apply) else None
    return lazy is not None and position > 0


def _role(node: Reward, position: int) -> str:
    """The operand's name where a node's operands are not alike."""
    if not isinstance(node, Apply) or len(node.transform.operands) != len(node.children) or len(node.children) < 3:
        return ""
    return node.transform.operands[position]


def _label(node: Reward, newline: str) -> str:
    what = repr(node._with(name=None)).split("(", 1)[0] if isinstance(node, Apply) else repr(node._with(name=None))
    text = f"{node.name} = {what}" if node.name else what
    if not isinstance(node, Constant):
        text += f"{newline}range {node.range}"
    if isinstance(node, Signal) and node.manner.needs != "cpu":
        text += f"{newline}needs {node.manner.needs}"
    return text


def _mermaid(ident: str, node: Reward) -> str:
    label = _label(node, "\n").replace("&", "#amp;").replace('"', "'").replace("<", "#lt;").replace(">", "#gt;")
    label = label.replace("\n", "<br>")
    left, right = ("([", "])") if isinstance(node, (Signal, Column)) else ("[", "]")
    return f'{ident}{left}"{label}"{right}'


def _dot(ident: str, node: Reward) -> str:
    label = _label(node, "\n").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    shape = "ellipse" if isinstance(node, (Signal, Column)) else "box"
    return f'{ident} [shape={shape}, label="{label}"];'


def _arrow(a: str, b: str, lazily: bool, role: str) -> str:
    shaft = "-.->" if lazily else "-->"
    return f"{a} {shaft}|{role}| {b}" if role else f"{a} {shaft} {b}"


def _edge(a: str, b: str, lazily: bool, role: str) -> str:
    settings = [*(["style=dashed"] if lazily else []), *([f'label="{role}"'] if role else [])]
    return f"{a} -> {b}{' [' + ', '.join(settings) + ']' if settings else ''};"
