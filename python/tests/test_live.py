"""Live drives."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import nandscape

SMALL = ("--drive", "default", "--set", "capacity=64MiB")


def test_a_drive_is_served_while_the_block_runs(tmp_path: Path, command: str) -> None:
    path = tmp_path / "n.sock"
    with nandscape.serve(*SMALL, "--nbd", f"unix:{path}", program=command) as live:
        assert live.places == [f"nbd+unix:///default?socket={path}"]
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        assert client.recv(8) == b"NBDMAGIC"
        client.close()
        assert live.statistics()["drives"][0]["name"] == "default"
        assert live.fault("uncorrectable lba=0-7")["faults"][0]["struck"] == 0
        assert live.faults()["drives"][0]["faults"][0]["rule"] == "uncorrectable lba=0-7"
        assert live.clear_faults()["faults"] == []
        assert "drives" in live.settings()
        with pytest.raises(nandscape.InputError, match="fault"):
            live.fault("explode")
        with pytest.raises(nandscape.InputError, match="no drive"):
            live.fault("fail read", drive="other")
    assert not path.exists()
    assert live.figures is not None and live.figures["drives"][0]["name"] == "default"


def test_a_setting_is_changed(tmp_path: Path, command: str) -> None:
    ox = ("--drive", "ox-block", "--set", "capacity=1GiB", "--nbd", f"unix:{tmp_path / 'n.sock'}")
    with nandscape.serve(*ox, program=command) as live:
        assert live.set("ftl.ox_block.gc_slots", 2)["settings"]["ftl.ox_block.gc_slots"] == "2"


def test_a_server_that_was_told_to_stop_has_ended(tmp_path: Path, command: str) -> None:
    with nandscape.serve(*SMALL, "--nbd", f"unix:{tmp_path / 'n.sock'}", program=command) as live:
        live.stop()
    assert live.figures is not None


def test_what_cannot_be_served_is_told(tmp_path: Path, command: str) -> None:
    with pytest.raises(nandscape.InputError, match="no-such-drive"):
        with nandscape.serve("--drive", "no-such-drive", "--nbd", f"unix:{tmp_path / 'n.sock'}", program=command):
            pass
    with pytest.raises(nandscape.InputError, match="control"):
        nandscape.Live(tmp_path / "nothing")


def test_an_exception_in_the_block_ends_the_server(tmp_path: Path, command: str) -> None:
    path = tmp_path / "n.sock"
    with pytest.raises(ZeroDivisionError):
        with nandscape.serve(*SMALL, "--nbd", f"unix:{path}", program=command):
            raise ZeroDivisionError
    assert not path.exists()


def test_without_the_program_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NANDSCAPE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(nandscape.InputError, match="cargo install --path cli"), nandscape.serve(*SMALL):
        pass
    with pytest.raises(nandscape.InputError, match="none is no program"), nandscape.serve(*SMALL, program="none"):
        pass
    beside = tmp_path / "nandscape"
    beside.write_text("#!/bin/sh\necho next to the interpreter >&2\nexit 2\n")
    beside.chmod(0o755)
    with pytest.raises(nandscape.InputError, match="next to the interpreter"), nandscape.serve(*SMALL):
        pass
