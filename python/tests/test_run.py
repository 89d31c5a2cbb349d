"""Runs: reports, arrays, recordings."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nandscape
from conftest import SMALL, printed


def without_host(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key != "host"}


def test_a_run_is_the_same_as_the_command(command: str) -> None:
    words = [command, "sim", "--drive", "default", "--rw", "randrw", "--iodepth", "8", "--io-count", "2000", "--json"]
    words += ["--set", "capacity=64MiB", "--set", "ftl.gc.victim=cost_benefit", "--precondition", "steady", "--seed", "7"]
    change: dict[str, nandscape.Value] = {"ftl.gc.victim": "cost_benefit", "precondition": "steady"}
    ours = nandscape.run(set={**SMALL, **change}, seed=7).report
    theirs = printed(words)
    assert json.dumps(without_host(ours)) == json.dumps(without_host(theirs))


def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    reports = [without_host(nandscape.run(set=SMALL, seed=seed).report) for seed in (1, 1, 2)]
    assert reports[0] == reports[1] != reports[2]


def test_a_run_to_its_end_was_not_interrupted() -> None:
    assert not nandscape.run(set=SMALL).interrupted


def test_requests_are_arrays_that_agree_with_the_report() -> None:
    result = nandscape.run(set=SMALL, requests=True)
    requests = result.requests
    read = requests.direction == requests.directions.index("read")
    latency = requests["latency_ns"][read]
    assert len(requests["bytes"]) == result.report["requests"] == 2_000
    assert latency.mean() / 1e3 == pytest.approx(result.latency_us("read", "mean"))
    assert latency.max() / 1e3 == pytest.approx(result.latency_us("read", "max"))
    assert (requests["completion_ns"] - requests["arrival_ns"] == requests["latency_ns"]).all()
    assert requests.statuses == ["ok"]


def test_arrays_and_frames_share_the_memory_of_the_run() -> None:
    pytest.importorskip("pandas")
    requests = nandscape.run(set=SMALL, requests=True).requests
    frame = requests.frame()
    assert requests["latency_ns"].base is not None, "the array is a view of memory that Rust owns"
    assert np.shares_memory(frame["latency_ns"].to_numpy(), requests["latency_ns"])
    assert set(frame["direction"].unique()) == {"read", "write"}


def test_figures_beyond_the_report_can_be_asked_for() -> None:
    result = nandscape.run(set=SMALL, percentiles=[95])
    assert result.latency_us("read", "p95") == result.report["latency_us"]["read"]["p95"]
    assert result.latency_us("trim", "p99") is None
    with pytest.raises(nandscape.InputError, match="read, write, trim, flush and fua are valid"):
        result.latency_us("reads", "p99")


def test_a_recording_is_there_if_asked_for(tmp_path: Path) -> None:
    result = nandscape.run(set=SMALL, details=True)
    assert {"histogram", "series", "drive", "timeline", "tail"} <= set(result.details)
    assert (result.write(tmp_path / "out") / "report.html").stat().st_size > 10_000
    plain = nandscape.run(set=SMALL)
    assert without_host(plain.report) == without_host(result.report)
    for ask in (lambda: plain.details, lambda: plain.requests):
        with pytest.raises(nandscape.InputError, match="=True"):
            ask()


def test_workloads_are_names_or_mappings() -> None:
    jobs = [{"name": "reads", "rw": "randread"}, {"name": "writes", "rw": "randwrite", "rate_iops": 1000}]
    change: dict[str, nandscape.Value] = {"capacity": "64MiB", "job.reads.iodepth": 2}
    report = nandscape.run(workload={"io_count": 500, "job": jobs}, set=change).report
    assert report["requests"] == 500
    named = nandscape.run(workload="zipf-oltp", capacity="64MiB", io_count=500).report
    assert named["requests"] == 500


def test_other_threads_run_meanwhile() -> None:
    ended = threading.Event()

    def work() -> None:
        nandscape.run(set={**SMALL, "io_count": 200_000})
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while thread.is_alive() and not ended.wait(0.001):
        turns += 1
    thread.join(60)
    assert ended.is_set()
    assert turns > 0


@settings(max_examples=15, deadline=None)
@given(iodepth=st.integers(1, 64), bs=st.sampled_from(["512", "4k", "16k", "4k/50:8k/50"]), seed=st.integers(0, 2**64 - 1))
def test_stages_sum_to_the_latency_of_every_request(iodepth: int, bs: str, seed: int) -> None:
    keys = {**SMALL, "io_count": 200, "iodepth": iodepth, "bs": bs}
    requests = nandscape.run(set=keys, seed=seed, requests=True).requests
    stages = [name for name in requests if name.endswith("_ns") and "_behind_" not in name]
    stages = [name for name in stages if name not in ("arrival_ns", "completion_ns", "latency_ns")]
    total = np.sum([requests[name] for name in stages], axis=0)
    assert (total == requests["latency_ns"]).all()


def test_layers_report_each_drive_as_the_command_does(command: str, tmp_path: Path) -> None:
    layers = ["raid1:2", "cache,memory=1MiB"]
    words = [command, "sim", "--drive", "default", "--rw", "randrw", "--iodepth", "8", "--io-count", "2000", "--json"]
    words += ["--set", "capacity=64MiB", *(word for layer in layers for word in ("--over", layer))]
    result = nandscape.run(set=SMALL, over=" ".join(layers), details=True, requests=True)
    theirs = printed(words)
    for report in (result.report, theirs):
        for part in (report, *(drive["report"] for drive in report["drives"])):
            part.pop("host")
    assert json.dumps(result.report) == json.dumps(theirs)
    assert list(result.drives) == ["drive-0", "drive-1"]
    assert result.drives["drive-1"]["waf"] == theirs["drives"][1]["report"]["waf"]
    of_layers = sum(result.requests[f"layer_{name}_ns"].sum() for name in ("array", "cache"))
    assert 0 < of_layers < result.requests["latency_ns"].sum()
    assert (result.write(tmp_path / "out") / "drive-1" / "report.html").stat().st_size > 10_000
    assert nandscape.run(set=SMALL).drives == {}


def test_policies_are_of_a_drive_without_layers() -> None:
    policies = nandscape.Policies(victim=lambda candidates: 0)
    with pytest.raises(nandscape.InputError, match="leave out over, or policies"):
        nandscape.run(set=SMALL, over="raid1:2", policies=policies)
