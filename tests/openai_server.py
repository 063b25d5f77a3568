"""A small model server with the OpenAI chat API, for tests: real HTTP on a loopback port, scripted replies, counts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def verdict(label: str, reason: str = "because") -> str:
    """A well-formed verdict."""
    return json.dumps({"reason": reason, "verdict": label})


class OpenAIServer:
    """``answer(body, number)`` gives the reply's text, or ``(status, headers, body)``; ``delay`` seconds pass before.

    ``requests`` holds the body and headers of every request, ``most_in_flight`` how many were open at once.
    """

    def __init__(self, answer: Callable, *, delay: float = 0.0, finish: str = "stop") -> None:
        self.answer, self.delay, self.finish = answer, delay, finish
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.most_in_flight = self._in_flight = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.serve(self)

            def log_message(self, *args) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *args) -> None:  # clients that gave up
                pass

        self._http = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def model(self) -> str:
        return f"openai:http://127.0.0.1:{self._http.server_address[1]}/v1#tiny"

    @property
    def asked(self) -> int:
        return len(self.requests)

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._http.shutdown()
        self._http.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self._lock:
            self.requests.append(body)
            self.headers.append({k.lower(): v for k, v in handler.headers.items()})
            number = len(self.requests)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            if self.delay:
                time.sleep(self.delay)
            answer = self.answer(body, number)
        finally:
            with self._lock:
                self._in_flight -= 1
        status, headers, data = answer if isinstance(answer, tuple) else (200, {}, self.completion(answer, number))
        handler.send_response(status)
        for key, value in {"content-length": str(len(data)), "content-type": "application/json", **headers}.items():
            handler.send_header(key, value)
        handler.end_headers()
        handler.wfile.write(data)

    def completion(self, text: str | None, number: int) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": self.finish}
        usage = {"prompt_tokens": 90, "completion_tokens": 12}
        made = {"id": f"chatcmpl-{number}", "model": "tiny-1", "choices": [choice], "usage": usage}
        return json.dumps(made).encode()
