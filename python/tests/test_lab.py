"""Claims of the papers."""

from __future__ import annotations

from pathlib import Path

import pytest

import nandscape


def test_a_claim_is_measured_and_kept(tmp_path: Path) -> None:
    before = {claim.id: claim.verdict for claim in nandscape.claims(tmp_path)}
    assert before["femu-registers"] == "not measured" and len(before) > 10
    (claim,) = nandscape.measure("femu-registers", out=tmp_path, quick=True, jobs=2)
    assert claim.id == "femu-registers" and claim.source and claim.verdict != "not measured"
    frame = claim.frame()
    assert list(frame.columns) == ["point", "name", "unit", "value"]
    assert set(frame["point"]) == {point["point"] for point in claim.outcome["points"]}
    first = frame[frame["name"] == "the first read ends"]
    assert len(first) == 2 and (first["value"] > 0).all() and (first["unit"] == "us").all()
    after = {claim.id: claim for claim in nandscape.claims(tmp_path)}
    assert after["femu-registers"].outcome["points"] == claim.outcome["points"]
    assert after["femu-registers"].verdict == claim.verdict


def test_what_is_no_claim_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nandscape.InputError, match="did you mean femu-delay"):
        nandscape.measure("femu-dealy", out=tmp_path)
    with pytest.raises(nandscape.InputError, match="ids"):
        nandscape.measure(out=tmp_path)
    with pytest.raises(nandscape.InputError, match="jobs"):
        nandscape.measure("femu-delay", jobs=0, out=tmp_path)
