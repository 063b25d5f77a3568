"""pytest's `approx`."""

from __future__ import annotations

from typing import Any


class approx:  # pytest's own name
    """Equal within rel * |expected| or abs, elementwise over lists, tuples and dicts.

    With an `abs` and no `rel` only the former counts, as in pytest.
    """

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self._expected = expected
        self._rel = rel if rel is not None else 0.0 if abs is not None else 1e-6
        self._abs = abs if abs is not None else 1e-12
        self._nan_ok = nan_ok

    def __eq__(self, actual: object) -> bool:
        return self._close(self._expected, actual)

    def __hash__(self) -> int:
        return 0

    def _close(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, (list, tuple)):
            return (
                isinstance(actual, (list, tuple))
                and len(actual) == len(expected)
                and all(map(self._close, expected, actual))
            )
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and actual.keys() == expected.keys()
                and all(self._close(value, actual[key]) for key, value in expected.items())
            )
        if isinstance(actual, bool) or not isinstance(actual, (int, float, complex)):
            return bool(type(actual) is type(expected) and actual == expected)
        if expected != expected:
            return self._nan_ok and actual != actual
        return bool(expected == actual) or abs(expected - actual) <= max(self._abs, self._rel * abs(expected))
