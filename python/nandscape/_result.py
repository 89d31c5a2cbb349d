"""The results of a run."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from nandscape._errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from nandscape import _native


class Requests(Mapping[str, "NDArray[np.int64]"]):
    """The measured requests, a column each: arrival_ns, completion_ns, latency_ns, offset_bytes, bytes, the times of stages
    and causes of waits, and under layers the time in each (`layer_NAME_ns`). The arrays own the memory in which the simulator collected them; nothing is copied.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        self.directions: list[str] = columns.pop("directions")
        """The names that `direction` counts."""
        self.statuses: list[str] = columns.pop("statuses")
        """The names that `status` counts; "ok" is success."""
        self.direction: NDArray[np.uint8] = columns.pop("direction")
        """For each request, a position in `directions`."""
        self.status: NDArray[np.uint16] = columns.pop("status")
        """For each request, a position in `statuses`."""
        self._numbers: dict[str, NDArray[np.int64]] = columns

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def frame(self) -> pd.DataFrame:
        """The requests as a frame of pandas, over the same memory."""
        import pandas as pd

        texts = {
            "direction": pd.Categorical.from_codes(self.direction, categories=self.directions),
            "status": pd.Categorical.from_codes(self.status, categories=self.statuses),
        }
        return pd.DataFrame({**texts, **self._numbers}, copy=False)


class Result:
    """The results of a run."""

    def __init__(self, done: _native.Finished) -> None:
        self._done = done

    @cached_property
    def report(self) -> dict[str, Any]:
        """The report, as of `nandscape sim --json`: of the drive, or of layers with that of each drive. All of it but `host` is the same for the same inputs and seed."""
        report: dict[str, Any] = json.loads(self._done.report())
        return report

    @cached_property
    def details(self) -> dict[str, Any]:
        """The recording: `histogram`, `series`, `drive`, `timeline`, `tail`, as in report.json of `nandscape sim --out`."""
        text = self._done.details()
        if text is None:
            raise InputError("details: the run has no recording; run(..., details=True) is valid", "details")
        details: dict[str, Any] = json.loads(text)
        return details

    @cached_property
    def requests(self) -> Requests:
        """The measured requests as NumPy arrays."""
        columns = self._done.requests()
        if columns is None:
            raise InputError("requests: they were not collected; run(..., requests=True) is valid", "requests")
        return Requests(columns)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return bool(self.report.get("interrupted", False))

    @property
    def iops(self) -> float | None:
        """Requests a second of drive time."""
        iops: float | None = self.report["iops"]
        return iops

    @property
    def waf(self) -> float | None:
        """Write amplification; None without writes, and under layers, where each of `drives` has its own."""
        waf: float | None = self.report.get("waf")
        return waf

    @cached_property
    def drives(self) -> dict[str, dict[str, Any]]:
        """Under layers (`over`, `array`): the report of each drive, by its name. A drive alone has none: its report is `report`."""
        return {drive["name"]: drive["report"] for drive in self.report.get("drives", [])}

    def latency_us(self, direction: str, figure: str) -> float | None:
        """A figure of latencies in microseconds: "mean", "max", or any percentile such as "p99.9". None with too few requests."""
        return self._done.latency_us(direction, figure)

    def breakdown_us(self, direction: str) -> dict[str, Any]:
        """Mean time by stage, and for waits by cause, in microseconds."""
        breakdown: dict[str, Any] = self.report["breakdown_us"][direction]
        return breakdown

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the files of `nandscape sim --out`: the page report.html, report.json, tables and the profile. It needs `details`."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        self._done.write(path)
        return path

    def __repr__(self) -> str:
        return f"Result({self.report['requests']} requests, {self.iops} IOPS)"
