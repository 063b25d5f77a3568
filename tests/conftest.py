"""Shared fixtures: where the public data lies, skipped with a reason when it does not. Settings of the properties."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("guerdon", deadline=None)  # a busy machine breaks no property; times are tested as such
settings.load_profile("guerdon")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data beside the checkout (or $GUERDON_SHARED/data)."""
    root = Path(os.environ.get("GUERDON_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    if not (root / "data").is_dir():
        pytest.skip(f"public data not found at {root / 'data'}; set GUERDON_SHARED to the folder that holds data/")
    return root / "data"
