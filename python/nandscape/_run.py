"""One run: a drive under a workload."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nandscape import _native
from nandscape._errors import InputError, Interrupted, NandscapeError
from nandscape._policies import Policies
from nandscape._result import Result
from nandscape._values import Value, pairs


@dataclass(frozen=True)
class Options:
    """What is asked of a run besides drive, workload and seed."""

    details: bool
    requests: bool
    percentiles: list[str]
    save_state: Path | None
    save_state_after: Path | None
    policies: Policies | None


def run(
    drive: str | None = None,
    workload: str | Mapping[str, Any] | None = None,
    *,
    set: Mapping[str, Value] | None = None,
    seed: int = 1,
    details: bool = False,
    requests: bool = False,
    percentiles: Sequence[float] = (),
    policies: Policies | None = None,
    save_state: str | os.PathLike[str] | None = None,
    save_state_after: str | os.PathLike[str] | None = None,
    **keys: Value,
) -> Result:
    """Simulates a drive under a workload, in simulated time.

    `drive` is a name or a profile file, "default" if nothing else says which; `workload` is a name, a file, or the content of a workload file as a mapping. Keys in
    `set` and as arguments change both, as `nandscape sweep --set` does: options of jobs (rw, bs, iodepth, rate_iops, io_count),
    `precondition`, `no_delay`, `fault`, and all keys of drives. Names with dots go into `set`. `over` puts layers over drives, as in
    `over="raid1:2 cache,memory=64MiB"`, and `array` an array; `drives` of the result then has the report of each drive.

    `details` records distributions and timelines, `requests` every request; `percentiles` are reported additionally. `policies` are
    functions that decide in place of the drive's own. `save_state` is a file to which the state that the drive begins in is saved,
    `save_state_after` one for the state after the run; the key `from_state` begins in the state of such a file.

    The interpreter is free for other threads meanwhile. Ctrl-C ends the run with `Interrupted`, whose `result` has what is done; a
    second Ctrl-C does not wait for that.

    Raises `InputError` for a key or value that is invalid, and `RunError` for a run that fails.
    """
    named, inline = described(drive, workload)
    changes = named + pairs(set, keys)
    try:
        before, after = (None if path is None else Path(path) for path in (save_state, save_state_after))
        options = Options(details, requests, [f"{p}" for p in percentiles], before, after, policies)
        done = _native.simulate(changes, inline, checked_seed(seed), options)
    except NandscapeError as error:
        raise error.about(changes)
    result = Result(done)
    interrupt = done.interrupt()
    if interrupt is not None:
        raise Interrupted(result) from interrupt
    return result


def described(drive: str | None, workload: str | Mapping[str, Any] | None) -> tuple[list[tuple[str, str]], str | None]:
    """The keys that name a drive and a workload, and a workload that has no name as JSON."""
    named = [] if drive is None else [("drive", drive)]
    if workload is None:
        return named, None
    if isinstance(workload, str):
        return [*named, ("workload", workload)], None
    try:
        return named, json.dumps(workload, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"workload: {error}; text, finite numbers, truth values, lists and mappings are valid", "workload")


def checked_seed(seed: int) -> int:
    """A seed that fits."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InputError(f"seed: {seed!r} is no seed; whole numbers from 0 to 2**64 - 1 are valid", "seed")
    return seed
