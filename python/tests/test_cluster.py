"""Sweeps on a Dask cluster of two worker processes, one of which is killed in the middle."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nandscape
from conftest import SMALL
from nandscape import _cluster

KEYS = {key: value for key, value in SMALL.items() if key != "iodepth"}
SEEDS = list(range(1, 9))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    # It has no types for its callers.
    distributed: Any = importlib.import_module("distributed")
    places = {"dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **places) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "points").iterdir()}


def here(folder: Path, count: int) -> dict[str, bytes]:
    nandscape.sweep(vary={"iodepth": [1, 4]}, set={**KEYS, "io_count": count}, seeds=SEEDS, out=folder)
    return files(folder)


def test_a_worker_is_killed_and_nothing_is_lost_or_measured_twice(client: Any, tmp_path: Path) -> None:
    keys = {**KEYS, "io_count": 20_000}
    pids = list(client.run(os.getpid).values())
    killed: list[int] = []

    class Killer:
        """The client, which kills a worker when the first points have ended and others are under way."""

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

        def submit(self, function: Any, text: str, pure: bool) -> Any:
            future = client.submit(function, text, pure=pure)
            future.add_done_callback(kill)
            return future

    def kill(_: Any) -> None:
        if not killed:
            killed.append(pids[0])
            os.kill(killed[0], signal.SIGKILL)

    result = nandscape.sweep(vary={"iodepth": [1, 4]}, set=keys, seeds=SEEDS, out=tmp_path / "there", client=Killer())
    assert killed and result.missing == 0 and len(result.points) == 16
    assert files(tmp_path / "there") == here(tmp_path / "here", 20_000)


def test_a_point_whose_result_died_with_its_worker_is_measured_again() -> None:
    class Future:
        """Done once, then lost with its worker, and done again."""

        def __init__(self, text: str) -> None:
            self.text = text
            self.states = ["lost", "pending", "finished"]

        @property
        def status(self) -> str:
            return self.states[0] if len(self.states) == 1 else self.states.pop(0)

        def result(self) -> str:
            return self.text

    class Client:
        loop = None

        def submit(self, _: Any, text: str, pure: bool) -> Any:
            return Future(text)

        def cancel(self, left: list[Any]) -> None:
            assert left == []

    class Completed(list[Any]):
        """Gives what is added while it is walked."""

        def __init__(self, futures: list[Any], **_: Any) -> None:
            super().__init__(futures)

        add = list[Any].append

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distributed.as_completed", Completed)
        assert list(_cluster.distribute(Client(), ["a", "b"])) == [(0, "a", None), (1, "b", None)]


def test_the_command_gives_points_to_a_cluster(client: Any, command: str, tmp_path: Path) -> None:
    words = [command, "sweep", "--dask", client.scheduler.address, "--out", os.fspath(tmp_path / "there"), "--json"]
    words += ["--seeds", "1-8", "--vary", "iodepth=1,4"]
    words += [word for key, value in KEYS.items() for word in ("--set", f"{key}={value}")]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "there") == here(tmp_path / "here", 2_000)


def test_a_cluster_that_is_not_there_is_told(command: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "nandscape.cluster", "nowhere"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, input="")
    assert done.returncode == 1 and "cluster nowhere: " in done.stderr
    words = [command, "sweep", "--dask", "nowhere", "--out", os.fspath(tmp_path), "--set", "rw=randread", "--seeds", "1"]
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text("#!/bin/sh\necho 'No module named nandscape' >&2\nexit 1\n")
    python.chmod(0o755)
    path = os.pathsep.join([os.fspath(tmp_path / "bin"), os.environ["PATH"]])
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": path})
    assert done.returncode == 1
    assert "1 points missing" in done.stderr and "No module named nandscape" in done.stderr


def test_points_that_fail_are_told(client: Any, tmp_path: Path) -> None:
    with pytest.raises(nandscape.InputError, match="jobs"):
        nandscape.sweep(set=KEYS, out=tmp_path, jobs=2, client=client)
    # A queue that is deeper than the drive's is an error of the run, not of the plan.
    change: dict[str, nandscape.Value] = {"controller.queue_pairs": 1, "numjobs": 3}
    result = nandscape.sweep(set={**KEYS, **change}, out=tmp_path, client=client)
    assert "queue pair" in result.points[0]["problem"]
