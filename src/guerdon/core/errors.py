"""Errors that users see. Each says what was wrong, where, and what would be right."""

from __future__ import annotations


class GuerdonError(Exception):
    """Base of every error that Guerdon raises on purpose."""


class AxisError(GuerdonError, ValueError):
    """Scores on axes that do not fit together, or an axis that is not well formed."""


class NonFiniteError(GuerdonError, ValueError):
    """A NaN or an infinity where a measured number was expected."""


class UnknownScoreError(GuerdonError, ValueError):
    """A caller who asked for numbers only (``unknown="raise"``) met an unknown score."""


class SignalError(GuerdonError):
    """A signal that can't be built or asked, or that failed under the policy ``on_failure="abort"``."""


class SpecError(GuerdonError, ValueError):
    """A spec that does not describe a reward; the message carries line and key."""


class DataError(GuerdonError, ValueError):
    """A row or file that can't be read as rollouts.

    ``file`` and ``line`` (1-based, 0 for the whole file) say where, ``cause`` says why.
    """

    def __init__(self, file: str, line: int, cause: str) -> None:
        self.file, self.line, self.cause = file, line, cause
        super().__init__(f"{file}:{line}: {cause}" if line else f"{file}: {cause}")


class MissingExtraError(GuerdonError, ImportError):
    """An optional part is not installed; the message says which ``pip install`` brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; run: pip install 'guerdon[{extra}]'")


class FailureRateWarning(UserWarning):
    """A signal failed on a larger share of the items it was asked about than its policy allows."""


class StoreError(GuerdonError):
    """A cache or journal file that is damaged, of another kind or version, in use, or of another run."""
