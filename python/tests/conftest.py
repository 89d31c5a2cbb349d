"""What tests share: a small drive, and the command that its runs are compared with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import nandscape
import pytest

SMALL: dict[str, nandscape.Value] = {"capacity": "64MiB", "rw": "randrw", "io_count": 2_000, "iodepth": 8}
ROOT = Path(__file__).parents[2]


@pytest.fixture
def command() -> str:
    """The program `nandscape`, which the environment names."""
    program = os.environ.get("NANDSCAPE")
    if program is None:
        pytest.skip("NANDSCAPE does not name the command; cargo xtask test -p nandscape-python does")
    return program


def printed(words: list[str]) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)
