# The types of the extension module, which is written in Rust (python/src).
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, final

from nandscape._cluster import Answer
from nandscape._policies import Policies
from nandscape._run import Options

Pair = tuple[str, str]

class Finished:
    def report(self) -> str: ...
    def details(self) -> str | None: ...
    def requests(self) -> dict[str, Any] | None: ...
    def latency_us(self, direction: str, figure: str) -> float | None: ...
    def write(self, folder: PathLike[str]) -> None: ...
    def interrupt(self) -> BaseException | None: ...

@final
class Candidate:
    """A full block that could be cleaned."""

    @property
    def valid(self) -> int:
        """Units with current data, which would have to be moved."""
    @property
    def units(self) -> int:
        """Units in all."""
    @property
    def age(self) -> int:
        """How many blocks were closed or erased since it was closed."""
    @property
    def erases(self) -> int:
        """How often it was erased."""

@final
class Plane:
    """A plane and its place."""

    @property
    def number(self) -> int:
        """Its number in the drive."""
    @property
    def channel(self) -> int: ...
    @property
    def die(self) -> int:
        """Its die on the channel."""
    @property
    def plane(self) -> int:
        """Its number in the die."""

@final
class BufferFill:
    """How full the write buffer is when a write asks for slots; all figures are slots, a mapping unit each."""

    @property
    def slots(self) -> int:
        """In all."""
    @property
    def free(self) -> int:
        """Free."""
    @property
    def wanted(self) -> int:
        """That the write needs."""

def version() -> str: ...
def drives() -> list[tuple[str, int, str, str]]: ...
def key_list() -> list[tuple[str, str, str]]: ...
def resolved(drive: str, changes: list[Pair]) -> tuple[int, str, str, list[str]]: ...
def workload_list() -> list[tuple[str, list[str], str, str]]: ...
def simulate(pairs: list[Pair], inline: str | None, seed: int, options: Options) -> Finished: ...
def find_rate(bound: str, pairs: list[Pair], inline: str | None, seed: int) -> tuple[str, Finished | None]: ...
def compare(reports: list[PathLike[str]], out: PathLike[str] | None) -> str: ...
def measure(inputs: str) -> str: ...
def sweep(
    file: str | None,
    pairs: list[Pair],
    inline: str | None,
    axes: list[tuple[str, list[str] | list[tuple[str, list[Pair]]]]],
    seeds: list[int] | None,
    out: PathLike[str],
    jobs: int,
    fresh: bool,
    distribute: Callable[[list[str]], Iterator[Answer]] | None,
    make: Callable[[str], Policies] | None,
) -> tuple[str, BaseException | None]: ...
def convert_trace(path: str, keys: list[Pair], to: str, out: PathLike[str]) -> list[str]: ...
def claims(folder: PathLike[str]) -> str: ...
def measure_claims(
    ids: list[str], folder: PathLike[str], seed: int, quick: bool, jobs: int, fresh: bool
) -> tuple[str | None, BaseException | None]: ...
