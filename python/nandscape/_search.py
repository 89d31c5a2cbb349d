"""The highest rate at which a latency stays below a bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nandscape import _native
from nandscape._errors import NandscapeError
from nandscape._result import Result
from nandscape._run import checked_seed, described
from nandscape._values import Value, pairs


class Search:
    """The result of `find_rate`."""

    def __init__(self, bound: str, found: dict[str, Any], best: Result | None) -> None:
        self.bound = bound
        self.probes: list[dict[str, Any]] = found["probes"]
        """The rates that were tried, in turn: `rate_iops`, `figure_us`, `samples`, `overloaded`, `holds`."""
        self.holds_iops: float | None = found["holds_iops"]
        """The highest rate at which the bound holds; None if there is none."""
        self.exceeds_iops: float | None = found["exceeds_iops"]
        """The lowest higher rate that was tried and exceeds it; None if all hold."""
        self.ended: str | None = found.get("ended")
        """Why the search ended before the two were close together."""
        self.best = best
        """The run at the highest rate."""

    def __repr__(self) -> str:
        return f"Search({self.bound!r}, holds_iops={self.holds_iops}, exceeds_iops={self.exceeds_iops})"


def find_rate(
    bound: str,
    drive: str | None = None,
    workload: str | Mapping[str, Any] | None = None,
    *,
    set: Mapping[str, Value] | None = None,
    seed: int = 1,
    **keys: Value,
) -> Search:
    """Searches for the highest rate of arrivals at which a latency stays below a bound, such as "read.p99.9 < 1ms", as
    `nandscape sim --find-rate` does. The other arguments are those of `run`. Ctrl-C ends the search without a result.
    """
    named, inline = described(drive, workload)
    changes = named + pairs(set, keys)
    try:
        found, best = _native.find_rate(bound, changes, inline, checked_seed(seed))
    except NandscapeError as error:
        raise error.about([*changes, ("bound", "")])
    return Search(bound, json.loads(found), None if best is None else Result(best))
