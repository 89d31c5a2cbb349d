# Which block should garbage collection clean? Three policies as functions, under writes of which most go to few addresses.
from __future__ import annotations

import sys
from pathlib import Path

import nandscape
from matplotlib.figure import Figure
from nandscape import Candidate, Policies

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")


# %% The policies: the highest number is cleaned
def greedy(block: Candidate) -> float:
    return block.units - block.valid


def cost_benefit(block: Candidate) -> float:
    return (block.units - block.valid) * (block.age + 1) / max(2 * block.valid, 1)


def oldest(block: Candidate) -> float:
    return block.age


# %% A run of each, from the same state
def waf(victim: nandscape.VictimPolicy) -> float:
    load: dict[str, nandscape.Value] = {"rw": "randwrite", "iodepth": 16, "random_distribution": "zipf:0.99"}
    size: dict[str, nandscape.Value] = {"capacity": "256MiB", "io_count": 150_000, "warmup_count": 150_000}
    result = nandscape.run(set={**load, **size}, precondition="steady", policies=Policies(victim=victim))
    assert result.waf is not None
    return result.waf


figures = {policy.__name__: waf(policy) for policy in (greedy, cost_benefit, oldest)}
for name, value in figures.items():
    print(f"{name}: write amplification {value:.2f}")

# %% The figure
figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
bars = axes.barh([name.replace("_", " ") for name in figures], list(figures.values()))
axes.bar_label(bars, fmt="%.2f", padding=3)
axes.set(xlabel="write amplification")
axes.margins(x=0.1)
figure.savefig(folder / "policies.png", dpi=120)
