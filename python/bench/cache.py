"""Clients of memcached's protocol, by pymemcache, on a unix socket: `cache.py SOCKET ITEMS BYTES GETS [--put MB/S BYTES KEYS FIRST]`.

Stores the items, and with `--put` FIRST values of BYTES under KEYS other keys. Then it gets items at random, GETS in all, and after each an
item that does not exist, which reads no drive. With `--put` another process meanwhile stores values at a steady rate. A line of JSON has the
latencies of hits and of gets without an item, in microseconds, and the statistics before and after. `cargo xtask bench` runs it
(`cache-tail`, `cache-extstore`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event

from pymemcache.client.base import Client

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def client(socket: str) -> Client:
    return Client(f"unix:{socket}", timeout=120, default_noreply=False)


def fill(socket: str, prefix: str, keys: int, count: int, size: int) -> None:
    """Stores `count` random values under `keys` keys in turn."""
    to, source = client(socket), random.Random(prefix)
    for number in range(count):
        to.set(f"{prefix}{number % keys}", source.randbytes(size))


def put(socket: str, rate: float, size: int, keys: int, ended: Event) -> None:
    """Stores values at `rate` bytes a second until `ended` is set; a store that is late delays no later one."""
    to, source, begun, number = client(socket), random.Random("put"), time.monotonic(), 0
    values = [source.randbytes(size) for _ in range(16)]
    while not ended.wait(max(0.0, begun + number * size / rate - time.monotonic())):
        to.set(f"large{source.randrange(keys)}", values[number % len(values)])
        number += 1


def timed(call: Callable[[], object]) -> tuple[object, float]:
    begun = time.perf_counter()
    answer = call()
    return answer, (time.perf_counter() - begun) * 1e6


def quantiles(latencies: list[float]) -> dict[str, float]:
    if not latencies:
        return {}
    latencies.sort()
    return {name: latencies[min(int(len(latencies) * part), len(latencies) - 1)] for name, part in QUANTILES.items()}


def numbers(to: Client) -> dict[str, float]:
    """The statistics that are numbers."""
    found = {}
    for name, value in to.stats().items():
        try:
            found[name.decode()] = float(value)
        except (TypeError, ValueError):
            continue
    return found


def measure(socket: str, items: int, gets: int) -> dict[str, object]:
    to, source = client(socket), random.Random("get")
    found, absent = [], []
    before, begun = numbers(to), time.monotonic()
    for number in range(gets):
        key = f"item{source.randrange(items)}"
        value, took = timed(lambda key=key: to.get(key))  # type: ignore[misc]
        if value is not None:
            found.append(took)
        absent.append(timed(lambda key=f"none{number}": to.get(key))[1])  # type: ignore[misc]
    took_s = time.monotonic() - begun
    return {
        "gets": gets,
        "hits": len(found),
        "seconds": took_s,
        "get_us": quantiles(found),
        "absent_us": quantiles(absent),
        "before": before,
        "after": numbers(to),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Clients of a server with memcached's protocol")
    parser.add_argument("socket")
    parser.add_argument("items", type=int)
    parser.add_argument("bytes", type=int)
    parser.add_argument("gets", type=int)
    parser.add_argument("--put", nargs=4, type=int, metavar=("MB/S", "BYTES", "KEYS", "FIRST"))
    words = parser.parse_args()
    begun = time.monotonic()
    fill(words.socket, "item", words.items, words.items, words.bytes)
    if words.put is None:
        filled = time.monotonic() - begun
        print(json.dumps({"fill_s": filled, **measure(words.socket, words.items, words.gets)}))
        return
    rate, size, keys, first = words.put
    fill(words.socket, "large", keys, first, size)
    filled, ended = time.monotonic() - begun, multiprocessing.Event()
    writer = multiprocessing.Process(target=put, args=(words.socket, rate * 1e6, size, keys, ended))
    writer.start()
    try:
        print(json.dumps({"fill_s": filled, **measure(words.socket, words.items, words.gets)}))
    finally:
        ended.set()
        writer.join()
        if writer.exitcode != 0:
            raise SystemExit(f"the client that stores values ended with {writer.exitcode}")


if __name__ == "__main__":
    main()
