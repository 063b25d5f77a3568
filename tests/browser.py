"""A headless Chromium for tests of pages, spoken to over its debugging pipe: no driver package, no port."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

PROGRAM = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
ABSENT = "no chromium here"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One page of one Chromium. Use as a context."""

    def __init__(self, profile: Path, seconds: float = 60.0) -> None:
        assert PROGRAM is not None, ABSENT
        theirs, self._out = os.pipe()
        self._in, mine = os.pipe()
        shell = f'exec "$0" "$@" 3<&{theirs} 4>&{mine}'
        words = [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, *words], pass_fds=(theirs, mine), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(mine)
        self._numbers, self._buffer, self._seconds = itertools.count(1), b"", seconds
        self.problems: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)  # Chromium ends with its pipe
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def open(self, page: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Load a file; errors of its scripts and refused loads are collected in ``problems``."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("Page.navigate", url=page.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        reply = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + self._seconds
        while not self.run(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.02)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A screenshot as PNG."""
        reply = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(reply["data"]))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._seconds
        while True:
            reply = self._next(deadline)
            if reply.get("id") == number:
                assert "error" not in reply, reply["error"]
                result: dict[str, Any] = reply["result"]
                return result
            self._note(reply)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            block = os.read(self._in, 1 << 20)
            assert block, "Chromium ended"
            self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
            self.problems.append(f"asks for {params['request']['url']}")
