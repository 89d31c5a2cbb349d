"""Sweeps: the points of the command, resumed."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

import nandscape
from conftest import ROOT, SMALL, printed

VARY: nandscape.Varied = {"iodepth": [1, 4], "ftl.gc.victim": ["greedy", "cost_benefit"]}
KEYS = {key: value for key, value in SMALL.items() if key != "iodepth"}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "points").iterdir()}


def test_points_are_the_bytes_of_the_command(command: str, tmp_path: Path) -> None:
    ours = nandscape.sweep(vary=VARY, set=KEYS, seeds=[1, 2], out=tmp_path / "ours", jobs=2)
    words = [command, "sweep", "--out", os.fspath(tmp_path / "theirs"), "--json", "--seeds", "1,2"]
    words += [word for key, value in KEYS.items() for word in ("--set", f"{key}={value}")]
    words += ["--vary", "iodepth=1,4", "--vary", "ftl.gc.victim=greedy,cost_benefit"]
    theirs = printed(words)
    assert ours.points == theirs["points"]
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = nandscape.sweep(vary={"iodepth": [1]}, set=KEYS, out=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    both = nandscape.sweep(vary={"iodepth": [1, 4]}, set=KEYS, out=tmp_path)
    assert len(both.points) == 2 and both.missing == 0
    assert both.points[0]["report"] == first.points[0]["report"]
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_points_are_rows_of_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = nandscape.sweep(vary={"iodepth": [1, 4]}, set=KEYS, seeds=[1, 2], out=tmp_path).frame()
    assert len(frame) == 4
    assert list(frame["iodepth"]) == [1, 1, 4, 4]


def test_the_question_of_the_guide_gives_the_same_points_both_ways(tmp_path: Path) -> None:
    change: dict[str, nandscape.Value] = {"capacity": "8GiB", "io_count": 2_000, "warmup_count": 1_000}
    sweep_file = ROOT / "docs" / "guides" / "suspension.toml"
    one = nandscape.sweep(sweep_file, set=change, seeds=[1], out=tmp_path / "file")
    ask = runpy.run_path(os.fspath(ROOT / "python" / "examples" / "suspension.py"))["ask"]
    other = ask(tmp_path / "python", seeds=[1], **change)
    assert len(one.points) == len(other.points) == 10
    assert files(tmp_path / "file") == files(tmp_path / "python")


def test_mistakes_name_their_key(tmp_path: Path) -> None:
    with pytest.raises(nandscape.InputError) as caught:
        nandscape.sweep(vary={"iodepth": [1, 0]}, set=KEYS, out=tmp_path)
    assert caught.value.key == "iodepth"


def test_seeds_are_a_number_a_list_a_range_or_text(tmp_path: Path) -> None:
    forms: dict[str, nandscape.Seeds] = {"number": 2, "list": [1, 2], "range": range(1, 3), "text": "1-2", "words": "1,2"}
    for name, seeds in forms.items():
        swept = nandscape.sweep(vary={"iodepth": [1]}, set={**KEYS, "io_count": 10}, seeds=seeds, out=tmp_path / name)
        assert [point["seed"] for point in swept.points] == [1, 2], name
    wrong: list[nandscape.Seeds] = [0, 10_001, True, "", "3-1", "-1", "0-99999999", [-1]]
    for seeds in wrong:
        with pytest.raises(nandscape.InputError, match="valid") as caught:
            nandscape.sweep(vary={"iodepth": [1]}, set=KEYS, seeds=seeds, out=tmp_path / "wrong")
        assert caught.value.key in ("seed", "seeds") and caught.value.valid is not None, seeds
