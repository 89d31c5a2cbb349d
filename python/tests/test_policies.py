"""Policies that are functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nandscape
from nandscape import BufferFill, Candidate, Plane, Policies

KEYS: dict[str, nandscape.Value] = {"capacity": "64MiB", "rw": "randwrite", "iodepth": 8, "io_count": 4_000}


def report(policies: Policies | None = None, set: Mapping[str, nandscape.Value] = {}) -> dict[str, Any]:
    """The figures that policies change."""
    change: dict[str, nandscape.Value] = {"precondition": "steady", **set}
    full = nandscape.run(set={**KEYS, **change}, policies=policies).report
    return {key: value for key, value in full.items() if key not in ("host", "inputs", "notes")}


def greedy(block: Candidate) -> float:
    return block.units - block.valid


def cost_benefit(block: Candidate) -> float:
    return (block.units - block.valid) * (block.age + 1) / max(2 * block.valid, 1)


def test_a_victim_policy_in_python_gives_the_figures_of_the_same_in_rust() -> None:
    assert report(Policies(victim=greedy)) == report()
    assert report(Policies(victim=lambda block: greedy(block) - 1e6)) == report()
    assert report(Policies(victim=lambda block: -block.age)) != report()


def test_cost_and_benefit_agree() -> None:
    ours = report(Policies(victim=cost_benefit))
    assert ours == report(set={"ftl.gc.victim": "cost_benefit"})


def striped() -> Callable[[list[Plane]], Plane]:
    """The planes in turn, channels the fastest."""
    last = (-1, -1, -1)

    def choose(ready: list[Plane]) -> Plane:
        nonlocal last
        keys = sorted(((plane.plane, plane.die, plane.channel), plane.number) for plane in ready)
        key, number = next((at for at in keys if at[0] > last), keys[0])
        last = key
        return next(plane for plane in ready if plane.number == number)

    return choose


def test_allocation_in_python_is_that_of_rust() -> None:
    assert report(Policies(allocation=striped())) == report()
    assert report(Policies(allocation=lambda ready: ready[-1])) != report()


def test_admission_in_python_is_that_of_rust() -> None:
    def one_per_channel(plane: Plane, running: list[Plane]) -> bool:
        return all(other.channel != plane.channel for other in running)

    assert report(Policies(admission=one_per_channel)) == report(set={"ftl.gc.admission": "one_per_channel"})
    assert report(Policies(admission=lambda plane, running: not running)) == report(set={"ftl.gc.admission": "one_per_drive"})


@settings(max_examples=10, deadline=None)
@given(share=st.floats(0, 2), bs=st.sampled_from(["512", "4k", "64k"]))
def test_a_drive_ends_whatever_its_buffer_holds_back(share: float, bs: str) -> None:
    asked: list[BufferFill] = []

    def spare(fill: BufferFill) -> int:
        asked.append(fill)
        return int(fill.slots * share)

    figures = report(Policies(buffer=spare), {"bs": bs, "io_count": 500, "precondition": "full"})
    assert figures["requests"] == 500
    assert all(0 <= fill.free <= fill.slots and fill.wanted >= 1 for fill in asked) and asked


def test_a_buffer_that_holds_nothing_back_changes_nothing() -> None:
    assert report(Policies(buffer=lambda fill: 0)) == report()


def test_the_report_says_who_decided() -> None:
    notes = nandscape.run(set=KEYS, policies=Policies(victim=greedy, buffer=lambda fill: 0)).report["notes"]
    assert any("victim, buffer" in note for note in notes)


@pytest.mark.parametrize(
    ("policies", "what"),
    [
        (Policies(victim=lambda block: float("nan")), "policies.victim"),
        (Policies(allocation=lambda ready: 3), "policies.allocation"),  # type: ignore[arg-type, return-value]
        (Policies(admission=lambda plane, running: "no"), "policies.admission"),  # type: ignore[arg-type, return-value]
        (Policies(buffer=lambda fill: -1), "policies.buffer"),
    ],
)
def test_an_answer_that_is_none_ends_the_run(policies: Policies, what: str) -> None:
    with pytest.raises(nandscape.InputError, match=what):
        report(policies)


def test_the_exception_of_a_function_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        report(Policies(victim=lambda block: 1 / 0))


def test_other_ftls_take_none() -> None:
    with pytest.raises(nandscape.InputError, match="ftl.kind"):
        report(Policies(victim=greedy), {"ftl.kind": "ox_block"})
