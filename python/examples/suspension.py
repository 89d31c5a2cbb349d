# The question of docs/guides/suspension.md, in Python: how does the p99.9 read latency of a 1 TiB QLC drive with 7%
# over-provisioning depend on the write rate, with and without suspension, under zipf 0.9?
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import nandscape

QLC: dict[str, nandscape.Value] = {
    "capacity": "1TiB",
    "ftl.over_provisioning": "7%",
    "timing.cell": "qlc",
    "timing.erase": "10ms",
    "timing.program": "2500us",
    "timing.program_unit": "word_line",
    "timing.read": ["60us", "90us", "120us", "150us"],
}


# %% The question
def ask(out: Path, seeds: Sequence[int] = (1, 2, 3), **change: nandscape.Value) -> nandscape.SweepResult:
    times = {"erase": "20us", "min_run": "100us", "program": "20us", "resume": "20us"}
    suspend: dict[str, nandscape.Value] = {"ftl.gc.preempt": True}
    suspend |= {f"timing.suspend.{key}": time for key, time in times.items()}
    zipf = {"random_distribution": "zipf:0.9"}
    reads = {"name": "reads", "rw": "randread", "rate_iops": 20_000, **zipf}
    writes = {"name": "writes", "rw": "randwrite", "rate_iops": 10_000, **zipf}
    load = {"io_count": 300_000, "warmup_count": 100_000, "job": [reads, writes]}
    vary: nandscape.Varied = {
        "job.writes.rate_iops": [2_000, 5_000, 10_000, 20_000, 40_000],
        "suspension": {"without": {}, "with": suspend},
    }
    keys = {**{key: QLC[key] for key in QLC if key not in change}, "precondition": "steady", **change}
    return nandscape.sweep(workload=load, set=keys, vary=vary, seeds=seeds, out=out)


# %% The figure
def draw(result: nandscape.SweepResult, picture: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    mean = result.frame().groupby(["suspension", "job.writes.rate_iops"])["latency_us.read.p99_9"].mean()
    for name in ("without", "with"):
        axes.plot(mean[name].index, mean[name] / 1e3, marker="o", label=f"{name} suspension")
    axes.set(xlabel="writes a second", ylabel="p99.9 of reads, ms", yscale="log")
    axes.legend()
    figure.savefig(picture, dpi=120)


# %% The whole of it takes some minutes
if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "suspension-python-results")
    draw(ask(folder), folder / "suspension.png")
