"""Runs whose jobs run in threads of a simulated host."""

from __future__ import annotations

import json

import pytest

import nandscape
from conftest import SMALL, printed


def test_a_run_on_a_host_is_the_same_as_the_command(command: str) -> None:
    words = [command, "sim", "--drive", "default", "--rw", "randread", "--iodepth", "2", "--io-count", "500", "--json"]
    words += ["--set", "capacity=64MiB", "--host", "server", "--set", "host.cores=1", "--set", "host.completion=poll"]
    change: dict[str, nandscape.Value] = {"host": "server", "host.cores": 1, "host.completion": "poll"}
    small = {**SMALL, "rw": "randread", "iodepth": 2, "io_count": 500}
    ours = nandscape.run(set={**small, **change}).report
    theirs = printed(words)
    assert json.dumps(ours["cpu"]) == json.dumps(theirs["cpu"])
    assert ours["latency_us"] == theirs["latency_us"]
    assert ours["inputs"]["host"]["name"] == "server"


def test_a_host_that_cannot_be_is_refused_with_what_is_valid() -> None:
    with pytest.raises(nandscape.InputError, match="1 to 1024 cores"):
        nandscape.run(set={**SMALL, "host": "server", "host.cores": 0})
