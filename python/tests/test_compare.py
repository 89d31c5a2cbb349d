"""Comparisons of reports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import nandscape
from conftest import SMALL, printed


def test_a_comparison_is_that_of_the_command(command: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("greedy", "cost_benefit")]
    for folder in folders:
        nandscape.run(set={**SMALL, "ftl.gc.victim": folder.name}, details=True).write(folder)
    ours = nandscape.compare(folders, out=tmp_path / "both")
    assert ours == printed([command, "compare", "--json", *map(os.fspath, folders)])
    assert (tmp_path / "both" / "compare.html").stat().st_size > 10_000


def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    with pytest.raises(nandscape.InputError, match="two or more"):
        nandscape.compare([tmp_path])
    with pytest.raises(nandscape.InputError, match="report.json"):
        nandscape.compare([tmp_path, tmp_path])
