"""Bad input: exceptions that name the key."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nandscape
from conftest import SMALL


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ftl.gc.victims", "greedy"),
        ("ftl.gc.victim", "laziest"),
        ("iodepth", 0),
        ("precondition", "worn"),
        ("drive", "nothing"),
        ("workload", "nothing"),
        ("fault", "burn"),
        ("no_delay", 3),
        ("geometry.channels", 1_000_000),
        ("rw", "sideways"),
        ("depth", 3),
    ],
)
def test_the_key_is_named(key: str, value: str | int) -> None:
    keys = {name: own for name, own in SMALL.items() if name != key}
    drive = str(value) if key == "drive" else "default"
    workload = str(value) if key == "workload" else None
    extra = {} if key in ("drive", "workload") else {key: value}
    with pytest.raises(nandscape.InputError) as caught:
        nandscape.run(drive, workload, set={**keys, **extra})
    assert caught.value.key == key, str(caught.value)
    assert caught.value.where is not None


def test_what_would_be_valid_is_told() -> None:
    with pytest.raises(nandscape.NandscapeError) as caught:
        nandscape.run(set={**SMALL, "precondition": "worn"})
    assert caught.value.valid == "none, full, steady and load are valid"
    with pytest.raises(ValueError, match="2\\*\\*64 - 1 are valid"):
        nandscape.run(set=SMALL, seed=-1)
    with pytest.raises(nandscape.InputError, match="finite"):
        nandscape.run(set=SMALL, rwmixread=float("nan"))


@settings(max_examples=50, deadline=None)
@given(key=st.text(min_size=1, max_size=12), value=st.text(max_size=12))
def test_any_text_is_refused_or_runs(key: str, value: str) -> None:
    try:
        nandscape.run(set={**SMALL, "io_count": 10, key: value})
    except nandscape.InputError as error:
        assert str(error)


def test_a_misspelt_option_of_a_workload_is_recognised() -> None:
    with pytest.raises(nandscape.InputError, match="did you mean iodepth") as caught:
        nandscape.run(set=SMALL, iodpeth=4)
    assert caught.value.key == "iodpeth"


def test_the_package_has_the_version_of_its_module() -> None:
    assert nandscape.__version__.count(".") == 2
