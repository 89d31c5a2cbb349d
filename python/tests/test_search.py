"""Rates that are searched for, traces, states."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import nandscape
from conftest import SMALL, printed

READS: dict[str, nandscape.Value] = {"capacity": "64MiB", "rw": "randread", "io_count": 5_000}


def test_the_rate_is_that_of_the_command(command: str) -> None:
    ours = nandscape.find_rate("read.p99 < 200us", set=READS)
    words = [command, "sim", "--drive", "default", "--rw", "randread", "--io-count", "5000", "--json"]
    theirs = printed([*words, "--set", "capacity=64MiB", "--find-rate", "read.p99 < 200us"])
    assert ours.probes == theirs["search"]["probes"]
    assert (ours.holds_iops, ours.exceeds_iops) == (theirs["search"]["holds_iops"], theirs["search"]["exceeds_iops"])
    assert ours.best is not None and ours.best.report["latency_us"] == theirs["report"]["latency_us"]


def test_bounds_that_are_none_are_told() -> None:
    with pytest.raises(nandscape.InputError, match="is not a bound such as") as caught:
        nandscape.find_rate("reads < 1ms", set=READS)
    assert caught.value.key == "bound"


def test_a_trace_is_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    lines = [f"{at * 1_000_000},host,0,{'Read' if at % 3 else 'Write'},{at * 4096},4096,0\n" for at in range(100)]
    trace.write_text("".join(lines))
    result = nandscape.run(set={"capacity": "64MiB", "trace": str(trace), "trace.format": "msr"}, requests=True)
    assert len(result.requests["bytes"]) == result.report["requests"] == 100
    with pytest.raises(nandscape.InputError):
        nandscape.run(set={"trace": str(tmp_path / "none.csv")})


def test_a_state_is_saved_and_changes_nothing(tmp_path: Path) -> None:
    change: dict[str, nandscape.Value] = {**SMALL, "precondition": "steady"}
    saved = nandscape.run(set=change, save_state=tmp_path / "worn.state").report
    plain = nandscape.run(set=change).report
    assert (tmp_path / "worn.state").stat().st_size > 0
    assert saved["latency_us"] == plain["latency_us"]


def test_a_run_begins_in_a_state_that_was_saved(tmp_path: Path) -> None:
    worn = os.fspath(tmp_path / "worn.state")
    plain = nandscape.run(set={**SMALL, "precondition": "steady"}, save_state=worn)
    forked = nandscape.run(from_state=worn, rw="randrw", io_count=2_000, iodepth=8, save_state_after=tmp_path / "after.state")
    assert forked.report["latency_us"] == plain.report["latency_us"]
    assert nandscape.run(from_state=tmp_path / "after.state", rw="randread", io_count=10).report["requests"] == 10
    with pytest.raises(nandscape.InputError) as caught:
        nandscape.run(from_state=tmp_path / "none.state", rw="randread")
    assert caught.value.key == "from_state"


def test_percentiles_are_a_key_too() -> None:
    report = nandscape.run(set={**SMALL, "percentiles": [95]}).report
    assert report["latency_us"]["read"]["p95"] is not None
