"""Many runs over parameters and seeds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from nandscape import _native
from nandscape._cluster import distribute
from nandscape._errors import InputError, Interrupted, NandscapeError
from nandscape._policies import MakePolicies, named_policies
from nandscape._run import checked_seed, described
from nandscape._values import Value, Varied, pairs, text

if TYPE_CHECKING:
    import pandas as pd


Seeds = Union[int, str, Iterable[int]]
"""Seeds of a sweep: a number of seeds, which begin with 1; the seeds; or text such as "1-5" or "1,2,7"."""

_MOST_SEEDS = 10_000
"""The most seeds of a number or of a range of text, as of the command."""


class SweepResult:
    """The results of a sweep."""

    def __init__(self, results: dict[str, Any], folder: Path) -> None:
        self.results = results
        """All points, as of `nandscape sweep --json`."""
        self.folder = folder
        """The folder with sweep.html, sweep.csv and a file for each point."""

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points, each with its `values`, `seed`, `problem` and `report`; `report` is None if it was not measured."""
        points: list[dict[str, Any]] = self.results["points"]
        return points

    @property
    def missing(self) -> int:
        """Points that were neither measured nor failed: an interrupt came before."""
        return sum(point["report"] is None and point["problem"] is None for point in self.points)

    def frame(self) -> pd.DataFrame:
        """The points as a frame of pandas: a row for each, a column for each parameter and each figure of the report."""
        import pandas as pd

        return pd.read_csv(self.folder / "sweep.csv")


def sweep(
    file: str | os.PathLike[str] | None = None,
    *,
    vary: Varied | None = None,
    drive: str | None = None,
    workload: str | Mapping[str, Any] | None = None,
    set: Mapping[str, Value] | None = None,
    seeds: Seeds | None = None,
    out: str | os.PathLike[str],
    jobs: int | None = None,
    fresh: bool = False,
    client: Any = None,
    policies: Mapping[str, MakePolicies] | None = None,
    **keys: Value,
) -> SweepResult:
    """Runs a simulation for every combination of chosen values, each with each seed, on all cores.

    `file` is a sweep file of `nandscape sweep`; `vary` maps keys to their values, or a name to choices that
    have names and set several keys each: `{"suspension": {"without": {}, "with": {...}}}`. The other keys are those of `run`, and apply to
    all points. Each point is kept in a file of the folder `out` as it ends: a sweep that was interrupted goes on there, and a point
    is measured once. `fresh` measures existing points again. `jobs` points run at a time, by default one per core. With `client`, a
    client of a Dask cluster (`distributed.Client`), its workers measure the points; a point whose worker is lost goes to another one.

    `seeds` is a number of seeds, which begin with 1, as in a sweep file; the seeds as a list or a range; or text as of `--seeds`: "1-5", "1,2,7".

    `policies` maps names to policies that are compared: `nandscape.Policies`, a function that makes them for each point, or None for those
    of the drive. Their points are measured in this process, one after another. They are known by their names and code: a point is
    measured again when a function is written differently, and not when something changes that it refers to, which `fresh` is for. The
    first exception of a function ends the sweep and is raised.

    Points are the same bytes as those of the command, which may go on where this stopped, and the reverse.
    """
    named, inline = described(drive, workload)
    if file is not None and inline is not None:
        raise InputError("workload: a sweep file takes no mapping; a name or a file is valid", "workload")
    changes = named + pairs(set, keys)
    axes = [(name, _choices(name, values)) for name, values in (vary or {}).items()]
    chosen = None if seeds is None else _seeds(seeds)
    workers = (os.cpu_count() or 1) if jobs is None else jobs
    if not 1 <= workers <= 1024:
        raise InputError(f"jobs: {jobs} is out of range; 1 to 1024 are valid", "jobs")
    if client is not None and jobs is not None:
        raise InputError("jobs: the workers of the cluster decide; one of jobs and client is valid", "jobs")
    known, make = ({}, None) if policies is None else named_policies(policies)
    if policies is not None and (client is not None or jobs is not None):
        other = "jobs" if client is None else "client"
        raise InputError(f"{other}: policies are functions of this process, which measures their points one by one; leave it out", other)
    if policies is not None:
        axes.append(("policies", [(name, [] if text is None else [("policies", text)]) for name, text in known.items()]))
    folder = Path(out)
    path = None if file is None else os.fspath(file)
    try:
        distributed = None if client is None else partial(distribute, client)
        results, interrupt = _native.sweep(path, changes, inline, axes, chosen, folder, workers, fresh, distributed, make)
    except NandscapeError as error:
        raise error.about([*changes, *((name, "") for name, _ in axes)])
    result = SweepResult(json.loads(results), folder)
    if interrupt is not None:
        raise Interrupted(result) from interrupt
    return result


def _seeds(seeds: Seeds) -> list[int]:
    """The seeds, each of which fits."""
    if isinstance(seeds, bool) or not isinstance(seeds, (int, str, Iterable)):
        raise InputError(f"seeds: {seeds!r} is neither a number of seeds nor a list; 3, [1, 2, 7], range(1, 4) or \"1-3\" is valid", "seeds")
    if isinstance(seeds, int):
        if not 1 <= seeds <= _MOST_SEEDS:
            raise InputError(f"seeds: {seeds} is out of range; from 1 to {_MOST_SEEDS} seeds, or a list of seeds, are valid", "seeds")
        return list(range(1, seeds + 1))
    if isinstance(seeds, str):
        return [seed for part in seeds.split(",") for seed in _seed_range(seeds, part.strip())]
    return [checked_seed(seed) for seed in seeds]


def _seed_range(whole: str, part: str) -> range:
    """The seeds of a part of a list: a number, or a range."""
    found = re.fullmatch(r"([0-9]+)(?:\s*-\s*([0-9]+))?", part)
    if found:
        first, last = checked_seed(int(found[1])), checked_seed(int(found[2] or found[1]))
        if first <= last < first + _MOST_SEEDS:
            return range(first, last + 1)
    raise InputError(f"seeds: \"{whole}\" is no list and no range of up to {_MOST_SEEDS} seeds; \"1,2,7\" or \"1-5\" is valid", "seeds")


def _choices(
    name: str, values: Iterable[Value] | Mapping[str, Mapping[str, Value]]
) -> list[str] | list[tuple[str, list[tuple[str, str]]]]:
    """A parameter as text: values of a key, or the keys of named choices."""
    if isinstance(values, Mapping):
        return [(choice, pairs(keys, {})) for choice, keys in values.items()]
    if isinstance(values, str):
        raise InputError(f"{name}: \"{values}\" is one value; a list of values is valid", name)
    return [text(name, value) for value in values]
