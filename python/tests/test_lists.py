"""Lists: drives, keys, workloads."""

from __future__ import annotations

import pytest

import nandscape


def test_drives_have_values_for_their_keys() -> None:
    assert "default" in nandscape.drives()
    drive = nandscape.drive("default", {"capacity": "1GiB"})
    assert drive.capacity == 2**30
    assert drive.values["ftl.gc.victim"] == "greedy"
    assert "[ftl.gc]" in drive.toml


def test_keys_have_meanings() -> None:
    keys = {key.name: key for key in nandscape.keys()}
    assert keys["ftl.gc.victim"].default == "greedy"
    assert all(key.meaning for key in keys.values())


def test_workloads_have_jobs() -> None:
    workloads = {workload.name: workload for workload in nandscape.workloads()}
    assert workloads["zipf-oltp"].jobs and "[[job]]" in workloads["zipf-oltp"].toml


def test_a_key_that_is_none_is_named() -> None:
    with pytest.raises(nandscape.InputError) as caught:
        nandscape.drive("default", {"ftl.gc.victims": "greedy"})
    assert caught.value.key == "ftl.gc.victims"
