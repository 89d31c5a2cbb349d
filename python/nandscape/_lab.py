"""The claims of the source papers, with their experiments."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nandscape import _native
from nandscape._errors import InputError, NandscapeError
from nandscape._run import checked_seed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what came of it."""

    id: str
    source: str
    """The paper and the place in it."""
    verdict: str
    """What the figures say: "reproduced", "missed", "not measured" and so on."""
    reason: str | None
    """Why, unless all criteria hold."""
    outcome: dict[str, Any]
    """All of it, as of `nandscape lab run --json`: criteria, parameters, choices, points with their figures."""

    def frame(self) -> pd.DataFrame:
        """The figures as a frame of pandas, a row for each: `point`, `name`, `unit`, `value`."""
        import pandas as pd

        points = self.outcome["points"]
        return pd.DataFrame([{"point": point["point"], **figure} for point in points for figure in point["figures"]])


def claims(out: str | os.PathLike[str] = "lab-results") -> list[Claim]:
    """All claims, with the results that the folder `out` has."""
    return _claims(_native.claims(Path(out)))


def measure(
    *ids: str,
    out: str | os.PathLike[str] = "lab-results",
    seed: int = 1,
    quick: bool = False,
    jobs: int | None = None,
    fresh: bool = False,
) -> list[Claim]:
    """Measures claims by their names, or `"all"`, as `nandscape lab run` does, and returns their outcomes. `quick` takes a first look.
    Points are kept in the folder `out`: what was measured is not measured again, unless `fresh`. Claims in real time measure this machine
    as well: keep it otherwise idle. Ctrl-C ends it after the points under way; those that ended are kept.
    """
    workers = (os.cpu_count() or 1) if jobs is None else jobs
    if not 1 <= workers <= 1024:
        raise InputError(f"jobs: {jobs} is out of range; 1 to 1024 are valid", "jobs")
    if not ids:
        raise InputError("ids: there are none; names of claims, and all, are valid", "ids")
    try:
        text, interrupt = _native.measure_claims(list(ids), Path(out), checked_seed(seed), quick, workers, fresh)
    except NandscapeError as error:
        raise error.about([("ids", "")])
    if interrupt is not None:
        raise interrupt
    return [] if text is None else _claims(text)


def _claims(text: str) -> list[Claim]:
    found: Sequence[dict[str, Any]] = json.loads(text)["claims"]
    return [Claim(each["id"], each["source"], each["verdict"], each["reason"], each) for each in found]
