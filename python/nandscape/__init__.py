"""An SSD you can see inside: drives, workloads, runs and sweeps of the simulator `nandscape`.

    import nandscape
    result = nandscape.run("default", rw="randread", iodepth=1, io_count=10_000)
    print(result.latency_us("read", "p99"))

Runs give the same figures as the command `nandscape` with the same keys and seed. The page docs/python.md of the
repository has examples.
"""

from nandscape._compare import compare
from nandscape._errors import InputError, Interrupted, NandscapeError, RunError
from nandscape._lab import Claim, claims, measure
from nandscape._lists import Drive, Key, Workload, drive, drives, keys, workloads
from nandscape._live import Live, serve
from nandscape._native import BufferFill, Candidate, Plane
from nandscape._native import version as _version
from nandscape._policies import Policies, VictimPolicy
from nandscape._result import Requests, Result
from nandscape._run import run
from nandscape._search import Search, find_rate
from nandscape._sweep import Seeds, SweepResult, sweep
from nandscape._traces import convert_trace
from nandscape._values import Value, Varied

__version__: str = _version()
"""The version of the package, which is that of the command."""

__all__ = [
    "BufferFill",
    "Candidate",
    "Claim",
    "Drive",
    "InputError",
    "Interrupted",
    "Key",
    "Live",
    "NandscapeError",
    "Plane",
    "Policies",
    "Requests",
    "Result",
    "RunError",
    "Search",
    "Seeds",
    "SweepResult",
    "Value",
    "Varied",
    "VictimPolicy",
    "Workload",
    "__version__",
    "claims",
    "compare",
    "convert_trace",
    "drive",
    "drives",
    "find_rate",
    "keys",
    "measure",
    "run",
    "serve",
    "sweep",
    "workloads",
]
