"""What a run costs in Python: `cost.py overhead PROGRAM` beside the command, `cost.py policy` with a victim policy in Python beside the
same one in Rust. CPU seconds, the least of several turns, as a line of JSON. `cargo xtask bench --only python` runs it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import nandscape

TURNS = 5
RUN: dict[str, nandscape.Value] = {"capacity": "4GiB", "rw": "randrw", "iodepth": 32, "io_count": 400_000}
WRITES: dict[str, nandscape.Value] = {**RUN, "rw": "randwrite", "io_count": 200_000}


def of_command(program: str) -> float:
    """CPU seconds of the command, its start and its report included."""
    words = [word for key, value in RUN.items() if key != "capacity" for word in (f"--{key.replace('_', '-')}", str(value))]
    words += ["--set", f"capacity={RUN['capacity']}", "--precondition", "steady", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "sim", "--drive", "default", *words], stdout=subprocess.DEVNULL, check=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_run(keys: dict[str, nandscape.Value], policies: nandscape.Policies | None = None) -> float:
    """CPU seconds of a run in this process, its report included."""
    begun = time.process_time()
    nandscape.run(set=keys, precondition="steady", policies=policies).report
    return time.process_time() - begun


def greedy(block: nandscape.Candidate) -> float:
    """The policy that the drive has anyway."""
    return block.units - block.valid


def main(words: list[str]) -> dict[str, float]:
    """The figures."""
    if words[:1] == ["overhead"]:
        turns = [(of_run(RUN), of_command(words[1])) for _ in range(TURNS)]
        return {"python_s": min(ours for ours, _ in turns), "other_s": min(theirs for _, theirs in turns)}
    policies = nandscape.Policies(victim=greedy)
    turns = [(of_run(WRITES, policies), of_run(WRITES)) for _ in range(TURNS)]
    return {"python_s": min(ours for ours, _ in turns), "other_s": min(theirs for _, theirs in turns)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
