"""``guerdon doctor``: what is installed and what works here."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from guerdon.cli._show import Json, say, say_json, table, working


def doctor(
    json: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="Only look; start no worker and no sandbox.")] = False,
) -> None:
    """Say what is installed, which extras are there, and whether workers, cache and isolation work on this machine.

    Example: guerdon doctor. Exit code 1 where a part of the base install does not work.
    """
    with working("trying workers, cache and sandbox"):
        report = examine(quick)
    if json:
        say_json(report)
    else:
        _say(report)
    raise typer.Exit(0 if all(c["ok"] is not False or c["optional"] for c in report["checks"]) else 1)


def examine(quick: bool = False) -> dict[str, Any]:
    """What `doctor` says, as plain data."""
    import os
    import platform
    import sys

    from guerdon import __version__

    wanted = _requirements()
    checks = [_rooms(), _cache()] if quick else [_rooms(), _cache(), _workers(), _sandbox()]
    return {
        "guerdon": __version__, "python": platform.python_version(), "executable": sys.executable,
        "platform": platform.platform(), "cores": len(os.sched_getaffinity(0)),
        "base": {name: _version(name) for name in wanted.pop("")},
        "extras": {extra: {name: _version(name) for name in names} for extra, names in wanted.items()},
        "checks": checks,
    }  # fmt: skip


def _requirements() -> dict[str, list[str]]:
    """The packages that Guerdon's own metadata asks for: the base install under ``""``, then each extra."""
    import re
    from importlib import metadata

    found: dict[str, list[str]] = {"": []}
    for line in metadata.requires("guerdon") or ():
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name is not None and name[0] != "guerdon":
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return found


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _check(name: str, ok: bool | None, detail: str, optional: bool = False) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail, "optional": optional}


def _rooms() -> dict[str, Any]:
    from guerdon.methods import all_methods
    from guerdon.spec._names import public

    names = [n for n in public() if not n.startswith("method.")]
    return _check("names", bool(names), f"{len(names)} signals, functions and operators; {len(all_methods())} methods")


def _cache() -> dict[str, Any]:
    import sqlite3
    import tempfile
    from pathlib import Path

    from guerdon.backends.cache import ScoreCache
    from guerdon.cli._run import default_cache
    from guerdon.core.errors import GuerdonError

    place = default_cache()
    try:
        with tempfile.TemporaryDirectory() as folder, ScoreCache(Path(folder) / "try.sqlite") as cache:
            cache.put_many([("a", (1.0, "", {"b": 1}))])
            ok = cache.get_many(["a"]) == {"a": (1.0, "", {"b": 1})}
    except (GuerdonError, OSError, sqlite3.Error) as error:
        return _check("cache", False, str(error))
    size = f"{place.stat().st_size / 1e6:.1f} MB" if place.is_file() else "not made yet"
    return _check("cache", ok, f"{place} ({size})")


def _workers() -> dict[str, Any]:
    """A worker process answers, and one that hangs is killed at its deadline."""
    import time

    from guerdon.core.workers import WorkerPool

    started = time.perf_counter()
    pool = WorkerPool(1)
    try:
        [good, hung] = pool.map(_sleep, [0.0, 60.0], timeout=1.0)
    finally:
        pool.close()
    spent = time.perf_counter() - started
    ok = good.kind == "ok" and hung.kind != "ok" and spent < 30
    return _check(
        "workers", ok, f"a hung worker is killed at its deadline ({spent:.1f} s for a 1 s limit, start included)"
    )


def _sleep(seconds: float) -> float:
    import time

    time.sleep(seconds)
    return seconds


def _sandbox() -> dict[str, Any]:
    from guerdon.backends.sandbox import describe_isolation

    found = describe_isolation()
    if not found.available:
        return _check("sandbox", None, f"untrusted code can't be run here: {found.reason}", optional=True)
    missing = f", {len(found.weaker)} weaker" if found.weaker else ""
    return _check(
        "sandbox", True, f"{len(found.enabled)} walls stand{missing}; see: guerdon sandbox check", optional=True
    )


def _say(report: dict[str, Any]) -> None:
    say(f"guerdon {report['guerdon']}, Python {report['python']} ({report['executable']})")
    say(f"{report['platform']}, {report['cores']} cores")
    say(f"base: {', '.join(f'{n} {v or chr(8212)}' for n, v in report['base'].items())}")
    rows = [
        (extra, "yes" if all(found.values()) else "no", ", ".join(f"{n} {v or 'missing'}" for n, v in found.items()))
        for extra, found in report["extras"].items()
    ]
    say(table(rows, ("extra", "there", "packages")))
    words = {True: "ok", False: "BROKEN", None: "unknown"}
    say(table(((c["name"], words[c["ok"]], c["detail"]) for c in report["checks"]), ("check", "", "")))
