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


def not_text(value: object, part: str) -> str:
    """Why ``value`` is neither text nor a list of messages, or ``""`` if it is.

    >>> not_text([{"content": "18"}], "completion")
    'completion message 0 has no role'
    """
    if isinstance(value, str):
        return ""
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Sequence):
        return f"{part} must be text or a list of messages, not {type(value).__name__}"
    problems = ((i, _not_message(m)) for i, m in enumerate(value))
    return next((f"{part} message {i}{problem}" for i, problem in problems if problem), "")


def _not_message(message: object) -> str:
    if not isinstance(message, Mapping):
        return f" must be an object with role and content, not {type(message).__name__}"
    if not isinstance(message.get("role"), str):
        return " has no role"
    content, calls = message.get("content"), message.get("tool_calls")
    parts = isinstance(content, Sequence) and all(isinstance(p, Mapping) for p in content)
    if content is not None and not isinstance(content, str) and not parts:
        return f": content must be text or a list of parts, not {type(content).__name__}"
    if calls is not None and not (isinstance(calls, Sequence) and all(isinstance(c, Mapping) for c in calls)):
        return ": tool_calls must be a list of objects"
    return ""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A prompt and one completion of it.

    ``prompt`` and ``completion`` are text or a list of messages (``role``, ``content``, ``tool_calls``...). A
    completion of ``None`` is one that is not given: whatever would read it raises `DataError`, for it is not empty.
    ``group`` says which prompt it belongs to (by default: rollouts with the same prompt are one group). ``answer`` is
    the reference. ``steps`` holds the texts of the completion's steps, or their ``(start, end)`` spans in ``text``.
    ``tokens`` and ``logprobs`` are per token, ``step_tokens`` how many tokens each step has. ``extra`` holds every
    other column. Nothing in it is changed by scoring.
    """

    completion: Text | None = ""
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
        """A rollout from a plain mapping: known keys are its fields, all other keys land in ``extra``.

        A mapping without ``completion`` is a rollout whose completion is not given (columns can still be scored).
        """
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
        for part in ("completion", "prompt"):
            value = known.setdefault(part, None)
            if value is not None and (problem := not_text(value, part)):
                raise DataError("rollouts", position + 1, problem)
        return cls(**known, extra=extra)

    @property
    def _said(self) -> Text:
        if self.completion is None:
            where, keys = f"rollout {self.id}" if self.id else "rollout", ", ".join(map(repr, self.extra))
            raise DataError(where, 0, f"there is no 'completion'{f'; other columns are {keys}' if keys else ''}")
        return self.completion

    @property
    def text(self) -> str:
        """Everything the policy wrote: the completion, or its assistant messages joined. Tool output is not in it."""
        said = self._said
        if isinstance(said, str):
            return said
        return "\n\n".join(text_of(m.get("content")) for m in said if m.get("role") == "assistant")

    @property
    def final(self) -> str:
        """The last thing the policy said: the completion, or the content of its last assistant message."""
        said = self._said
        if isinstance(said, str):
            return said
        own = [m for m in said if m.get("role") == "assistant"]
        return text_of(own[-1].get("content")) if own else ""

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
