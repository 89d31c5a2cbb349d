"""Policies of the page-mapping FTL as functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nandscape._native import BufferFill, Candidate, Plane

VictimPolicy = Callable[[Candidate], float]
"""How much is to be said for cleaning a block."""


@dataclass(frozen=True)
class Policies:
    """Functions that decide in place of the policies that a profile names. Each is called on the thread of the run; its first
    exception ends the run and is raised there. A run is repeatable if its functions are.
    """

    victim: VictimPolicy | None = None
    """Which block is cleaned next: how much is to be said for cleaning a block. The highest is taken, the oldest of equals."""
    allocation: Callable[[list[Plane]], Plane] | None = None
    """On which plane the host's next page is written, one of those that are ready."""
    admission: Callable[[Plane, list[Plane]], bool] | None = None
    """Whether a plane may collect garbage while others do. A plane is not asked about when no other one collects."""
    buffer: Callable[[BufferFill], int] | None = None
    """How many slots of the write buffer must be free, besides those that a write needs, before it is let in. It is asked once for
    each write; a number that the buffer cannot reach means as many as it can."""
