# A first run from Python: latencies of reads as an array, where the time goes, and a figure.
from __future__ import annotations

import sys
from pathlib import Path

import nandscape
import numpy as np
from matplotlib.figure import Figure

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")

# %% A drive in its steady state under reads and writes
result = nandscape.run(
    "default",
    set={"capacity": "1GiB", "ftl.gc.scheme": "channel"},
    rw="randrw",
    rwmixread=70,
    iodepth=8,
    io_count=20_000,
    precondition="steady",
    requests=True,
)
print(f"{result.iops:.0f} requests a second, write amplification {result.waf:.2f}")
print(f"p99 of reads: {result.latency_us('read', 'p99'):.0f} us")

# %% What the slowest reads waited for
requests = result.requests
reads = requests.direction == requests.directions.index("read")
slow = reads & (requests["latency_ns"] >= np.quantile(requests["latency_ns"][reads], 0.99))
behind = {name: requests[name][slow].mean() / 1e3 for name in requests if "_behind_" in name}
for name, mean in sorted(behind.items(), key=lambda item: -item[1])[:3]:
    print(f"{name.removesuffix('_ns')}: {mean:.0f} us")

# %% Their distribution
figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.subplots()
latency = np.sort(requests["latency_ns"][reads]) / 1e3
axes.plot(latency, 1 - np.arange(len(latency)) / len(latency))
axes.set(xlabel="latency of reads, us", ylabel="share above", xscale="log", yscale="log")
figure.savefig(folder / "first_steps.png", dpi=120)
