"""Reports of runs side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nandscape import _native
from nandscape._errors import InputError


def compare(reports: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Compares runs, with ratios to the first, as `nandscape compare --json` does. Runs that differ only in the seed form one column,
    with confidence intervals. `reports` are files report.json, or folders that `Result.write` has written. With `out`, the page
    compare.html and compare.json are written into that folder.
    """
    paths = [Path(report) for report in reports]
    if len(paths) < 2:
        raise InputError(f"reports: {len(paths)} cannot be compared; two or more are valid", "reports")
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    text = _native.compare([path / "report.json" if path.is_dir() else path for path in paths], folder)
    comparison: dict[str, Any] = json.loads(text)
    return comparison
