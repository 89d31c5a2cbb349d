"""Policies of the page-mapping FTL as functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

from nandscape._errors import InputError
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


MakePolicies = Policies | Callable[[], Policies] | None
"""Policies of the points of a sweep: the same for all of them, made for each, or those of the drive."""


def named_policies(policies: Mapping[str, MakePolicies]) -> tuple[dict[str, str | None], Callable[[str], Policies]]:
    """The text by which each of them is known, None for those of the drive; and what makes them, given that text."""
    known: dict[str, str | None] = {}
    given: dict[str, Policies | Callable[[], Policies]] = {}
    for name, policy in policies.items():
        if policy is not None and not callable(policy) and not isinstance(policy, Policies):
            raise InputError(f"policies: {name} is {policy!r}; Policies, a function that makes them and None are valid", "policies")
        known[name] = None if policy is None else f"{name} {_digest(policy)}"
        if policy is not None:
            given[f"{name} {_digest(policy)}"] = policy

    def make(text: str) -> Policies:
        policy = given[text]
        made = policy if isinstance(policy, Policies) else policy()
        if not isinstance(made, Policies):
            raise InputError(f"policies: {text.split()[0]} has made {made!r}; Policies are valid", "policies")
        return made

    return known, make


def _digest(policy: Policies | Callable[[], Policies]) -> str:
    """A digest of the code of functions."""
    of = (policy.victim, policy.allocation, policy.admission, policy.buffer) if isinstance(policy, Policies) else (policy,)
    return hashlib.sha256(repr([_known(function) for function in of]).encode()).hexdigest()[:16]


def _known(value: Any) -> Any:
    """What is known of a function or a value that it is bound to, without where it is written or kept."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, partial):
        return _known(value.func), [_known(each) for each in (*value.args, *value.keywords.values())], list(value.keywords)
    function = getattr(value, "__func__", value)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    bound = [_known(each) for each in (*(getattr(function, "__defaults__", None) or ()), *cells)]
    return type(value).__qualname__, _plain(code), bound


def _plain(code: Any) -> Any:
    """What code does: its instructions, and the names and constants in them."""
    if not isinstance(code, CodeType):
        return repr(code)
    return code.co_code, code.co_names, [_plain(constant) for constant in code.co_consts]
