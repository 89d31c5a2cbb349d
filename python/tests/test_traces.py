"""Conversion of traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import nandscape

TRACE = "0 0 0 8 0\n1000000 0 8 8 1\n2000000 0 16 8 0\n"


def test_a_trace_is_written_in_another_format_and_selected(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_text(TRACE)
    notes = nandscape.convert_trace(path, tmp_path / "b.csv.gz", "msr", format="mqsim", limit=2)
    assert all(isinstance(note, str) for note in notes)
    lines = gzip.decompress((tmp_path / "b.csv.gz").read_bytes()).decode().splitlines()
    assert [line.split(",")[3] for line in lines if "," in line][-2:] == ["Read", "Write"] or len(lines) == 2
    run = nandscape.run(set={"trace": tmp_path / "b.csv.gz", "capacity": "64MiB"}, requests=True)
    assert run.report["requests"] == 2


def test_a_recording_is_a_trace(tmp_path: Path, command: str) -> None:
    with nandscape.serve(*SMALL, "--nbd", f"unix:{tmp_path / 'n.sock'}", "--record", str(tmp_path / "run.rec"), program=command):
        pass
    with pytest.raises(nandscape.InputError, match="to"):
        nandscape.convert_trace(tmp_path / "run.rec", tmp_path / "b.csv", "mssr")


SMALL = ("--drive", "default", "--set", "capacity=64MiB")


@pytest.mark.parametrize(("keys", "what"), [({"to": "nothing"}, "to"), ({"disks": "1"}, "disks"), ({"window": "x"}, "window")])
def test_what_is_wrong_is_named(tmp_path: Path, keys: dict[str, nandscape.Value], what: str) -> None:
    path = tmp_path / "a.trace"
    path.write_text(TRACE)
    to = str(keys.pop("to", "msr"))
    with pytest.raises(nandscape.InputError, match=what):
        nandscape.convert_trace(path, tmp_path / "b.csv", to, set={"format": "mqsim", **keys})
    assert not (tmp_path / "b.csv").exists()
