"""Live drives: a server of the command `nandscape`, and its control socket."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nandscape._errors import InputError, RunError
from nandscape._values import Value, text

_PATIENCE = 120.0
"""Seconds until a server that does not answer is given up."""
_LISTENING = {"--nbd", "--nvme-tcp", "--vfio-user"}
"""Options by which a server listens."""


class Live:
    """A running server, by its control socket: `nandscape serve --control PATH`. A context manager, which closes the connection.

    Commands and replies are those of docs/transports/control.md. A command that the server refuses raises `InputError`.
    """

    def __init__(self, control: str | os.PathLike[str]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE)
        try:
            self._socket.connect(os.fspath(control))
        except OSError as error:
            self._socket.close()
            raise InputError(f"control: {os.fspath(control)}: {error.strerror or error}; the socket of a server is valid", "control") from error
        self._replies = self._socket.makefile("r", encoding="utf-8")
        self.places: list[str] = []
        """The addresses of the drives for clients, as the server printed them; for a server that `serve` started."""
        self.figures: dict[str, Any] | None = None
        """What the server printed when it ended; of a server that `serve` has started."""

    def order(self, command: str, **fields: Any) -> dict[str, Any]:
        """Gives a command with its fields, and returns the reply."""
        line = json.dumps({"command": command, **{name: value for name, value in fields.items() if value is not None}})
        try:
            self._socket.sendall(line.encode() + b"\n")
            reply = self._replies.readline()
        except OSError as error:
            raise RunError(f"the server does not answer: {error}") from error
        if not reply:
            raise RunError("the server has ended")
        answer: dict[str, Any] = json.loads(reply)
        if "error" in answer:
            raise InputError(f"{command}: {answer['error']}", command)
        return answer

    def statistics(self) -> dict[str, Any]:
        """The figures since the drives began."""
        return self.order("statistics")

    def fault(self, rule: str, drive: str | None = None) -> dict[str, Any]:
        """Adds a fault rule to a drive; all its rules. With one drive, `drive` may be left out."""
        return self.order("fault", rule=rule, drive=drive)

    def faults(self) -> dict[str, Any]:
        """The rules of all drives, and how often each matched and struck."""
        return self.order("faults")

    def clear_faults(self, drive: str | None = None) -> dict[str, Any]:
        """Removes all rules of a drive."""
        return self.order("clear_faults", drive=drive)

    def set(self, key: str, value: Value, drive: str | None = None) -> dict[str, Any]:
        """Changes a setting of a drive that runs; all that can be changed."""
        return self.order("set", key=key, value=text(key, value), drive=drive)

    def settings(self) -> dict[str, Any]:
        """What can be changed, of all drives."""
        return self.order("settings")

    def stop(self) -> None:
        """Has the server complete what is in work, flush, and end."""
        self.order("stop")

    def close(self) -> None:
        """Closes the connection; the server goes on."""
        self._replies.close()
        self._socket.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def serve(*options: str, program: str | os.PathLike[str] | None = None) -> Iterator[Live]:
    """Serves drives while the block runs: `with nandscape.serve("--drive", "default", "--nbd", "unix:disk.sock") as live:`. The options are
    those of `nandscape serve`, but for --control and --json. When the block ends, the server completes what is in work, flushes and ends;
    `live.figures` is what it printed. A server that fails raises `RunError` with its messages.

    `program` is the command, which the package does not contain. Left out, it is what the environment variable NANDSCAPE names,
    `nandscape` next to the interpreter (the folder bin of a virtual environment), or `nandscape` in PATH.
    """
    command = _command(program)
    with tempfile.TemporaryDirectory(prefix="nandscape-") as folder, tempfile.TemporaryFile("w+") as messages:
        control = Path(folder) / "control"
        # Its own group: Ctrl-C is for this program, which ends the server in order.
        server = subprocess.Popen(
            [command, "serve", *options, "--json", "--control", os.fspath(control)],
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            start_new_session=True,
        )
        try:
            live = _attach(server, control, messages, sum(option.split("=")[0] in _LISTENING for option in options))
            with live:
                yield live
        finally:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
            try:
                out, _ = server.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                out, _ = server.communicate()
        if server.returncode != 0:
            raise RunError(f"the server has failed ({server.returncode}): {'; '.join(_lines(messages))}")
        live.figures = json.loads(out)


def _command(program: str | os.PathLike[str] | None) -> str:
    """The program: what is named, or the first that is found."""
    for source, named in (("program", program), ("NANDSCAPE", os.environ.get("NANDSCAPE"))):
        if named:
            found = shutil.which(os.fspath(named))
            if found is None:
                raise InputError(f"{source}: {os.fspath(named)} is no program; the path of the command nandscape is valid", "program")
            return found
    beside = os.path.dirname(sys.executable)
    found = (shutil.which("nandscape", path=beside) if beside else None) or shutil.which("nandscape")
    if found is None:
        raise InputError(
            "program: the command nandscape is neither next to the interpreter nor in PATH, and the Python package does not contain it; "
            "build it in the repository with `cargo install --path cli --locked`, then name it with program=PATH or NANDSCAPE=PATH; "
            "the path of the command is valid",
            "program",
        )
    return found


def _attach(server: subprocess.Popen[str], control: Path, messages: Any, listens: int) -> Live:
    """The control socket, once the server serves at as many addresses as it listens at."""
    while not control.exists() or len(_places(messages)) < listens:
        try:
            server.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        said = "; ".join(_lines(messages))
        raise InputError(said, "options") if server.returncode == 2 else RunError(f"the server has ended: {said}")
    live = Live(control)
    live.places = _places(messages)
    return live


def _places(messages: Any) -> list[str]:
    lines = (line.removeprefix("note: ") for line in _lines(messages))
    return [line.partition(" at ")[2] or line for line in lines if line.startswith("serving ")]


def _lines(messages: Any) -> list[str]:
    """Whole lines that the server has printed so far."""
    messages.seek(0)
    said: str = messages.read()
    return said[: said.rfind("\n") + 1].splitlines()
