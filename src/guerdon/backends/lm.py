"""Language models behind an OpenAI-compatible HTTP API: one request, bounded retries, a checked reply.

Keys come from the environment only, and are bound to a host: ``GUERDON_KEY_<HOST>`` (``GUERDON_KEY_API_EXAMPLE_COM``
for ``api.example.com``), and ``OPENAI_API_KEY`` for ``api.openai.com``. So a spec from a stranger that names a server
of theirs is not sent a key of yours.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from guerdon.core.errors import GuerdonError, MissingExtraError, SignalError

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 4
"""How often one request is sent at most: again after 429, 5xx, and a connection that failed."""
MAX_REPLY_BYTES = 4 << 20
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 20.0
_CONNECT_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Message = Mapping[str, str]

# Without a handler, a program that sets up no logging would see each retry on stderr.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class ModelError(GuerdonError):
    """A model server that could not be reached, refused the request, or did not answer as the API says."""


class Overloaded(ModelError):
    """A server that is down, busy or broken for now; ``wait`` is after how many seconds to ask again, if it said."""

    wait: float | None = None


@dataclass(frozen=True)
class Endpoint:
    """A model on a server: ``openai:<base URL>#<model name>``.

    >>> Endpoint.parse("openai:http://127.0.0.1:8000/v1#qwen3").model
    'qwen3'
    """

    base: str
    model: str

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """From ``openai:http://127.0.0.1:8000/v1#name``. Raises `SignalError` for anything else."""
        scheme, _, rest = text.partition(":")
        base, _, model = rest.partition("#")
        parts = urlsplit(base)
        if scheme != "openai" or parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise SignalError(f"model={text!r}: write it as openai:http://127.0.0.1:8000/v1#name")
        if parts.username or parts.password or parts.query:
            raise SignalError("keep keys out of the model's address: they are read from the environment")
        return cls(base.rstrip("/"), model)

    @property
    def host(self) -> str:
        """The server's host name."""
        return urlsplit(self.base).hostname or ""

    def key(self) -> str | None:
        """The key for this host from the environment. Raises `SignalError` if it would travel unencrypted."""
        name = "GUERDON_KEY_" + re.sub(r"[^A-Z0-9]", "_", self.host.upper())
        key = os.environ.get(name) or (os.environ.get("OPENAI_API_KEY") if self.host == "api.openai.com" else None)
        if key and not self.base.startswith("https:") and self.host not in _LOOPBACK:
            raise SignalError(f"{name} is set, but {self.base} is not encrypted; use https")
        return key


@dataclass(frozen=True)
class Reply:
    """What a model answered, and what it took. ``seconds`` is the time of the attempt that succeeded."""

    text: str
    finish: str
    model: str
    request_id: str
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float
    attempts: int

    def evidence(self) -> dict[str, Any]:
        """The reply as plain data for a score's evidence; the text is cut after 2,000 characters."""
        text = self.text if len(self.text) <= 2_000 else self.text[:1_997] + "..."
        counts = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens}
        return {
            "reply": text, "model": self.model, "request": self.request_id, "seconds": round(self.seconds, 4),
            **counts, "attempts": self.attempts,
        }  # fmt: skip


async def chat(endpoint: Endpoint, messages: Sequence[Message], **options: Any) -> Reply:
    """Ask for one chat completion; ``options`` are further fields of the request, such as ``max_tokens``.

    Sent again, up to `ATTEMPTS` times with growing waits (or the server's ``Retry-After``), after 429, 5xx and failed
    connections, and after nothing else. Raises `ModelError` when that does not help, when the server refuses the
    request, and when the answer is not one; set a deadline around the call.
    """
    try:
        import stamina
    except ImportError:
        raise MissingExtraError("stamina", "judge") from None
    body = orjson.dumps({"model": endpoint.model, "messages": list(messages), **options})
    number = 0
    try:
        async for attempt in stamina.retry_context(
            on=_again,
            attempts=ATTEMPTS,
            timeout=None,
            wait_initial=_FIRST_WAIT,
            wait_max=_LONGEST_WAIT,
            wait_jitter=0.1,
        ):
            with attempt:
                number = attempt.num
                reply = replace(await _send(endpoint, body), attempts=number)
    except Overloaded as error:
        raise ModelError(f"{error} ({number} attempts)") from None
    return reply


def _again(error: Exception) -> bool | timedelta:
    """Whether (and when) to send again."""
    if not isinstance(error, Overloaded):
        return False
    return True if error.wait is None else timedelta(seconds=min(error.wait, _LONGEST_WAIT))


async def _send(endpoint: Endpoint, body: bytes) -> Reply:
    import httpx

    key = endpoint.key()
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    start = time.perf_counter()
    try:
        async with _client(endpoint).stream(
            "POST", endpoint.base + "/chat/completions", content=body, headers=headers
        ) as response:
            data = await _read(response)
    except httpx.TransportError as error:
        raise Overloaded(f"{endpoint.base}: {type(error).__name__} {error}".rstrip()) from None
    except httpx.HTTPError as error:
        raise ModelError(f"{endpoint.base}: {type(error).__name__} {error}".rstrip()) from None
    text = data.decode("utf-8", "replace")
    if key:
        text = text.replace(key, "***")
    if response.status_code != 200:
        raise _refusal(endpoint, response, text)
    return _parsed(text, response.headers.get("x-request-id", ""), time.perf_counter() - start)


async def _read(response: httpx.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > MAX_REPLY_BYTES:
            raise ModelError(f"the model server sent more than {MAX_REPLY_BYTES >> 20} MiB")
    return bytes(data)


def _refusal(endpoint: Endpoint, response: httpx.Response, text: str) -> ModelError:
    message = f"{endpoint.base}: HTTP {response.status_code} {' '.join(text.split())[:160]}".rstrip()
    if response.status_code != 429 and response.status_code < 500:
        return ModelError(message)
    error = Overloaded(message)
    wait = response.headers.get("retry-after", "")
    error.wait = float(wait) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", wait) else None
    return error


def _parsed(text: str, request_id: str, seconds: float) -> Reply:
    """The reply in a response body; `ModelError` if the body is not of the API's form."""
    try:
        data = orjson.loads(text)
        choice = data["choices"][0]
        content = choice["message"]["content"]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        raise ModelError(f"not a chat completion: {' '.join(text.split())[:160]}") from None
    if content is not None and not isinstance(content, str):
        raise ModelError(f"the message content is {type(content).__name__}, not text")
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    return Reply(
        content or "",
        _text(choice.get("finish_reason")),
        _text(data.get("model")),
        _text(data.get("id")) or _text(request_id),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        seconds,
        1,
    )


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, httpx.AsyncClient]] = (
    weakref.WeakKeyDictionary()
)


def _client(endpoint: Endpoint) -> httpx.AsyncClient:
    """The running loop's client; the engine bounds how many requests are in flight, and the caller for how long."""
    try:
        import httpx
    except ImportError:
        raise MissingExtraError("httpx", "judge") from None
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    local = endpoint.host in _LOOPBACK
    if local not in clients:
        clients[local] = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            follow_redirects=False,
            trust_env=not local,  # no proxy between here and here
        )
    return clients[local]
