"""Points of a sweep on the workers of a Dask cluster."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from nandscape import _native
from nandscape._errors import InputError, RunError

Answer = tuple[int, "str | None", "str | None"]
"""A point's position, the text of its file, or why there is none."""

RECOMPUTED = ("lost", "pending")
"""A worker died between a point's end and its result's way here: the scheduler gives the point to another one."""


def package() -> Any:
    """The package `distributed`."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise InputError(f"client: {error}; pip install 'nandscape[dask]' is valid", "client") from error


def distribute(client: Any, inputs: list[str]) -> Iterator[Answer]:
    """Has the workers measure points, and gives their results as they come. A point whose worker is lost goes to another one."""
    distributed = package()
    futures = {client.submit(_native.measure, text, pure=False): task for task, text in enumerate(inputs)}
    done = distributed.as_completed(list(futures), loop=client.loop, raise_errors=False)
    try:
        for future in done:
            if future.status in RECOMPUTED:
                done.add(future)
            else:
                yield _answer(futures.pop(future), future)
    finally:
        # What is left when the sweep ends early.
        client.cancel(list(futures))


def _answer(task: int, future: Any) -> Answer:
    if future.status == "finished":
        return task, future.result(), None
    if future.status == "error":
        return task, None, str(future.exception())
    raise RunError(f"the cluster has lost a point ({future.status}); is the scheduler alive?")
