"""Policies that are functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nandscape
from nandscape import BufferFill, Candidate, Plane, Policies
from nandscape._policies import named_policies

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


def measured(result: nandscape.SweepResult) -> dict[str, Any]:
    """The reports of a sweep over policies, by name."""
    return {point["values"]["policies"]: point["report"] for point in result.points}


def test_a_sweep_compares_policies_and_measures_each_point_once(tmp_path: Path) -> None:
    calls = []

    def counted(block: Candidate) -> float:
        calls.append(block)
        return greedy(block)

    set: dict[str, nandscape.Value] = {**KEYS, "precondition": "steady"}
    chosen = {"ours": Policies(victim=counted), "old": Policies(victim=lambda block: block.age), "drive": None}
    policies = {**chosen, "in turn": lambda: Policies(allocation=striped())}
    reports = measured(nandscape.sweep(set=set, policies=policies, out=tmp_path))
    assert reports["ours"]["waf"] == reports["drive"]["waf"] == reports["in turn"]["waf"] == report()["waf"]
    assert reports["old"]["waf"] == report(chosen["old"])["waf"] != reports["drive"]["waf"]
    count = len(calls)
    assert count > 0
    again = nandscape.sweep(set=set, policies=policies, out=tmp_path)
    assert measured(again) == reports and len(calls) == count
    # Another function by the same name is another policy.
    other = {**policies, "old": Policies(victim=lambda block: -block.age)}
    assert measured(nandscape.sweep(set=set, policies=other, out=tmp_path))["old"] != reports["old"]
    assert len(calls) == count
    nandscape.sweep(set=set, policies=policies, out=tmp_path, fresh=True)
    assert len(calls) == 2 * count


def test_policies_are_known_by_what_they_do() -> None:
    def text(policy: Callable[[], Policies] | Policies) -> str | None:
        return named_policies({"a": policy})[0]["a"]

    def weighed(weight: float) -> Policies:
        return Policies(victim=lambda block: weight * block.age)

    assert text(weighed(1.0)) == text(weighed(1.0)) != text(weighed(2.0))
    assert text(partial(weighed, 1.0)) == text(partial(weighed, 1.0)) != text(partial(weighed, 2.0))
    assert text(Policies(victim=greedy)) != text(Policies(victim=cost_benefit))


def test_a_sweep_ends_at_the_first_exception_of_a_function(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        nandscape.sweep(set={**KEYS, "precondition": "steady"}, policies={"bad": Policies(victim=lambda block: 1 / 0)}, out=tmp_path)
    with pytest.raises(nandscape.InputError, match="has made 3"):
        nandscape.sweep(set=KEYS, policies={"none": lambda: 3}, out=tmp_path)  # type: ignore[dict-item, return-value]
    with pytest.raises(nandscape.InputError, match="a is 3"):
        nandscape.sweep(set=KEYS, policies={"a": 3}, out=tmp_path)  # type: ignore[dict-item]
    with pytest.raises(nandscape.InputError, match="jobs"):
        nandscape.sweep(set=KEYS, policies={"a": None}, jobs=2, out=tmp_path)
    with pytest.raises(nandscape.InputError, match="client"):
        nandscape.sweep(set=KEYS, policies={"a": None}, client=object(), out=tmp_path)
    with pytest.raises(nandscape.InputError, match="Python package"):
        nandscape.sweep(set={**KEYS, "policies": "greedy"}, out=tmp_path)
