"""`nandscape memcached` under pymemcache, a client that knows nothing of it."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheClientError

SMALL = ["--set", "capacity=64MiB", "--set", "geometry.channels=2", "--set", "geometry.dies_per_channel=2"]


def start(command: str, folder: Path) -> subprocess.Popen[str]:
    """A server on two drives in files, once clients can connect."""
    places = ["--listen", f"unix:{folder / 'm.sock'}", "--store", str(folder / "store")]
    words = [command, "memcached", "--drives", "2", *places, *SMALL]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line.startswith("memcached at unix:"), line
    return server


def stop(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=60) == 0


@pytest.fixture
def running(command: str, tmp_path: Path) -> Iterator[Path]:
    server = start(command, tmp_path)
    try:
        yield tmp_path
        stop(server)
    finally:
        server.kill()
        server.wait()


def client(folder: Path) -> Client:
    return Client(f"unix:{folder / 'm.sock'}", timeout=60, default_noreply=False)


def test_commands_of_the_client(running: Path) -> None:
    one = client(running)
    assert one.set("a", b"1", expire=100) is True
    assert one.get("a") == b"1"
    assert one.add("a", b"2") is False and one.add("b", b"2") is True
    assert one.replace("c", b"2") is False and one.replace("b", b"22") is True
    assert one.append("b", b"3") and one.prepend("b", b"1") and one.get("b") == b"1223"
    value, version = one.gets("a")
    assert value == b"1" and one.cas("a", b"5", version) is True and one.cas("a", b"6", version) is False
    assert one.cas("none", b"6", version) is None
    assert one.incr("a", 10) == 15 and one.decr("a", 20) == 0 and one.incr("none", 1) is None
    assert one.touch("a", 100) is True and one.touch("none", 100) is False
    assert one.raw_command("gat 100 a", "END\r\n") == b"VALUE a 0 2\r\n0 \r\n"
    assert one.set_many({"x": b"x", "y": b"y" * 100_000}) == []
    assert one.get_many(["x", "y", "z"]) == {"x": b"x", "y": b"y" * 100_000}
    assert one.delete("x") is True and one.delete("x") is False
    assert one.set("quiet", b"q", noreply=True) is True and one.get("quiet") == b"q"
    with pytest.raises(MemcacheClientError):
        one.set("t", b"text")
        one.incr("t", 1)
    assert one.version().startswith(b"1.6.0-nandscape-")
    stats = one.stats()
    assert stats[b"engine_policy"] == b"gc_control" and stats[b"get_hits"] > 0
    assert one.flush_all() is True and one.get("a") is None
    one.quit()


def test_items_outlast_the_server(command: str, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    items = {f"key{number}": draw.randbytes(draw.randrange(5_000)) for number in range(300)}
    server = start(command, tmp_path)
    try:
        one = client(tmp_path)
        assert one.set_many(items) == []
        stop(server)
        server = start(command, tmp_path)
        assert client(tmp_path).get_many(list(items)) == items
        stop(server)
    finally:
        server.kill()
        server.wait()
