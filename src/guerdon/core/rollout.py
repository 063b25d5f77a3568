"""One rollout: what was asked, what the policy wrote, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from guerdon.core.errors import DataError
from guerdon.core.fingerprint import digest

Message = Mapping[str, Any]
Text = str | Sequence[Message]


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list of content parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping) and p.get("type") == "text")
    return str(content)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A prompt and one completion of it.

    ``prompt`` and ``completion`` are text or a list of messages (``role``, ``content``, ``tool_calls``...).
    ``group`` says which prompt it belongs to (by default: rollouts with the same prompt are one group). ``answer`` is
    the reference. ``steps`` holds the texts of the completion's steps, or their ``(start, end)`` spans in ``text``.
    ``tokens`` and ``logprobs`` are per token, ``step_tokens`` how many tokens each step has. ``extra`` holds every
    other column. Nothing in it is changed by scoring.
    """

    completion: Text = ""
    prompt: Text | None = None
    id: str = ""
    group: str | None = None
    answer: Any = None
    steps: Sequence[str] | Sequence[Sequence[int]] | None = None
    tokens: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    step_tokens: Sequence[int] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Rollout | Mapping[str, Any], position: int = 0) -> Rollout:
        """A rollout from a plain mapping: known keys are its fields, all other keys land in ``extra``."""
        if isinstance(row, Rollout):
            return row
        if not isinstance(row, Mapping):
            raise DataError("rollouts", position + 1, f"expected a mapping or a Rollout, not {type(row).__name__}")
        known = {k: v for k, v in row.items() if k in FIELDS}
        extra = {k: v for k, v in row.items() if k not in FIELDS}
        if "extra" in known:
            extra = {**known.pop("extra"), **extra}
        for key in ("id", "group"):
            if known.get(key) is not None:
                known[key] = str(known[key])
        if not isinstance(known.get("completion", ""), (str, Sequence)):
            raise DataError("rollouts", position + 1, "completion must be text or a list of messages")
        return cls(**known, extra=extra)

    @property
    def text(self) -> str:
        """Everything the policy wrote: the completion, or its assistant messages joined. Tool output is not in it."""
        if isinstance(self.completion, str):
            return self.completion
        return "\n\n".join(text_of(m.get("content")) for m in self.completion if m.get("role") == "assistant")

    @property
    def final(self) -> str:
        """The last thing the policy said: the completion, or the content of its last assistant message."""
        if isinstance(self.completion, str):
            return self.completion
        said = [m for m in self.completion if m.get("role") == "assistant"]
        return text_of(said[-1].get("content")) if said else ""

    @property
    def prompt_text(self) -> str:
        """The prompt as text; messages are joined as ``role: content`` lines."""
        if self.prompt is None or isinstance(self.prompt, str):
            return self.prompt or ""
        return "\n".join(f"{m.get('role', '')}: {text_of(m.get('content'))}" for m in self.prompt)

    def step_text(self, index: int) -> str:
        """The text of step ``index``."""
        step = (self.steps or ())[index]
        return step if isinstance(step, str) else self.text[int(step[0]) : int(step[1])]

    def get(self, name: str) -> Any:
        """A field by name, or the column ``name`` of ``extra``; ``None`` when there is neither."""
        return getattr(self, name) if name in FIELDS else self.extra.get(name)

    def content(self, reads: Sequence[str] | None = None) -> str:
        """A stable hash of what the rollout holds (its ``id`` and ``group`` apart), or of the fields ``reads``."""
        names = reads if reads is not None else _CONTENT
        return digest(*[(name, self.get(name)) for name in names])


FIELDS = frozenset(f.name for f in fields(Rollout))
_CONTENT = tuple(f.name for f in fields(Rollout) if f.name not in ("id", "group"))
