"""Code out of chat text: which block was taken, and why. Evidence in its own right, separate from any verdict."""

from __future__ import annotations

import ast
import os
import re
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from guerdon.backends.sandbox.inside.dataflow import free_names

Policy = Literal["entry-point", "last", "first", "longest"]
MAX_CODE_CHARACTERS: Final = 200_000
_parser = threading.Lock()
_ATTEMPTS: Final = 5
# What a completion's text makes the parser warn about is nobody's business here.
warnings.filterwarnings("ignore", module="<completion>")
_FENCE: Final = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*$", re.MULTILINE)
# One pattern for all names: compiling one for each costs more than everything else that is read here.
_BOUND: Final = re.compile(r"^(?:(?:async\s+def|def|class)\s+(\w+)|(\w+)\s*(?::[^=\n]+)?=)", re.MULTILINE)
_STARTS: Final = ("def ", "async def ", "class ", "import ", "from ", "@")
_TAGS: Final = {
    "python": ("python", "py", "python3", "py3"),
    "cpp": ("cpp", "c++", "cc", "cxx"),
    "rust": ("rust", "rs"),
    "javascript": ("javascript", "js", "node"),
    "sql": ("sql", "sqlite", "postgresql", "duckdb"),
}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its tag as written (lower case) and its text."""

    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """`code` is what will be run; `how` says in words where it came from; `blocks` is how many fenced blocks there
    were."""

    code: str
    how: str
    blocks: int


NOTHING_EXTRACTED: Final = Extracted("", "", 0)


def fenced_blocks(text: str) -> list[Block]:
    """All fenced blocks in order; one that is never closed runs to the end of the text.

    >>> fenced_blocks("Hi\\n```py\\nx = 1\\n```\\n")
    [Block(tag='py', text='x = 1\\n')]
    """
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        indent, marks, tag = fence[1], fence[2], fence[3]
        if opened is None:
            opened = fence
        elif marks[0] == opened[2][0] and len(marks) >= len(opened[2]) and not tag and _closes(indent, opened[1]):
            blocks.append(_block(opened, text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append(_block(opened, text[opened.end() + 1 :]))
    return blocks


def _closes(indent: str, opened: str) -> bool:
    """A fence deeper inside belongs to a text in the block, such as a docstring."""
    return len(indent.expandtabs(4)) <= len(opened.expandtabs(4)) + 3


def _block(opened: re.Match[str], text: str) -> Block:
    indent = opened[1]
    if indent:  # in a list: the block is as deep as its fence
        lines = text.splitlines(keepends=True)
        shared = [line for line in lines if line.strip()]
        depth = min([len(indent), *(len(line) - len(line.lstrip(" \t")) for line in shared)])
        text = "".join(line[depth:] if line.strip() else line.lstrip(" \t") for line in lines)
    return Block(opened[3].lower(), text)


def extract_code(
    text: str,
    *,
    language: str = "python",
    entry_point: str | Sequence[str] = "",
    policy: Policy = "entry-point",
) -> Extracted:
    """The code of a completion.

    Fenced blocks with a tag of `language` come before untagged ones, and those before blocks in other languages.
    Among the best kind, `policy` picks: "entry-point" the last block that defines `entry_point` (of several names, as
    many as any block does; else the last), "last", "first", "longest". Earlier blocks that define what the chosen one
    uses and lacks are put before it. A text that parses as a whole is taken as a whole; so is, without a fence, its
    part from the first line that starts a statement; when nothing parses, the text as it is.

    >>> extract_code("Use this:\\n```python\\ndef f(): return 1\\n```").code
    'def f(): return 1\\n'
    """
    text = text[:MAX_CODE_CHARACTERS].replace("\r\n", "\n")
    blocks = fenced_blocks(text)
    if not blocks or (language == "python" and parsed(text) is not None):
        return _unfenced(text, language)
    names = (entry_point,) if isinstance(entry_point, str) else tuple(entry_point)
    tags = _TAGS.get(language, (language,))
    for kind, wanted in (("tagged", tags), ("untagged", ("",))):
        chosen = [block for block in blocks if block.tag in wanted]
        if chosen:
            block, why = _pick(chosen, names, policy)
            code, parts = _with_needed(block, chosen) if language == "python" else (block.text, 0)
            also = f", after {parts} that it builds on" if parts else ""
            return Extracted(code, f"{kind} block, {why}{also}", len(blocks))
    block, why = _pick(blocks, names, policy)
    return Extracted(block.text, f"block tagged {block.tag!r}, {why}", len(blocks))


def _pick(blocks: list[Block], names: Sequence[str], policy: Policy) -> tuple[Block, str]:
    if len(blocks) == 1:
        return blocks[0], "the only one"
    if policy == "first":
        return blocks[0], "the first"
    if policy == "longest":
        return max(blocks, key=lambda block: len(block.text)), "the longest"
    asked = [name for name in names if name] if policy == "entry-point" else []
    counts = [sum(defines(block.text, name) for name in asked) for block in blocks]
    if any(counts):
        best = max(range(len(blocks)), key=lambda number: (counts[number], number))
        return blocks[best], f"the last that defines {', '.join(asked)}"
    return blocks[-1], "the last"


def _with_needed(block: Block, blocks: list[Block]) -> tuple[str, int]:
    """The block's code after that of earlier blocks that define what it uses and nowhere defines, and how many."""
    earlier = blocks[: next(number for number, one in enumerate(blocks) if one is block)]
    tree = parsed(block.text) if earlier else None
    needed = free_names(tree) if tree else []
    used: list[str] = []
    for one in reversed(earlier):
        found = [name for name in needed if defines(one.text, name)]
        before = parsed(one.text) if found else None
        if before is not None:
            used.insert(0, one.text)
            needed = [*(name for name in needed if name not in found), *free_names(before)]
    return "\n\n".join([*used, block.text]), len(used)


def defines(code: str, entry_point: str) -> bool:
    """Whether the code binds the name at its top level, by its text alone."""
    name = entry_point.partition(".")[0]
    return name in code and any(name in match.groups() for match in _BOUND.finditer(code))


@lru_cache(maxsize=256)
def parsed(code: str) -> ast.Module | None:
    """The syntax tree (not to be changed: it is cached), or None for code that does not parse or is too deep or too
    large."""
    if len(code) > MAX_CODE_CHARACTERS:
        return None
    for _ in range(_ATTEMPTS):
        try:
            with _parser:
                return ast.parse(code, "<completion>")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        except SystemError:  # CPython 3.11 counts depth for all threads together: another thread was parsing as well
            continue
    return None


_LEAVES: Final = frozenset(("ctx", "op", "ops", "id", "attr", "kind", "name", "arg", "type_comment", "lineno"))


def nodes(tree: ast.Module) -> list[ast.AST]:
    """Every node but operators and contexts, breadth first as `ast.walk`, found once for each tree."""
    known: list[ast.AST] | None = getattr(tree, "guerdon_nodes", None)
    if known is not None:
        return known
    found: list[ast.AST] = [tree]
    for node in found:
        for name in node._fields:
            if name in _LEAVES:
                continue
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    tree.guerdon_nodes = found  # type: ignore[attr-defined]  # kept with the tree, which is cached
    return found


def _after_fork() -> None:
    """Another thread may have been parsing when this process was copied."""
    global _parser
    _parser = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _unfenced(text: str, language: str) -> Extracted:
    if language != "python" or parsed(text) is not None or text[:1] in (" ", "\t"):
        return Extracted(text, "whole text", 0)
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith(_STARTS)]
    ends = [len(lines), *[number for number in range(len(lines) - 1, 0, -1) if lines[number][:1].isalpha()][:8]]
    for first in starts[:8]:
        for last in ends:
            part = "".join(lines[first:last])
            if last > first and parsed(part) is not None:
                return Extracted(part, f"lines {first + 1} to {last} of unfenced text", 0)
    return Extracted(text, "whole text, which does not parse", 0)
