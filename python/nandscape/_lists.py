"""Built-in drives and workloads, and the keys of drives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nandscape import _native
from nandscape._errors import NandscapeError
from nandscape._values import Value, pairs


@dataclass(frozen=True)
class Drive:
    """A drive with all its keys."""

    name: str
    """The name of a built-in drive, or the path of a profile."""
    capacity: int
    """Bytes that a host sees."""
    values: Mapping[str, Any]
    """All keys with their values, by name: `values["ftl.gc.victim"]`."""
    toml: str
    """The same as a profile file."""
    notes: tuple[str, ...]
    """Decisions that differ from the profile as given."""


@dataclass(frozen=True)
class Key:
    """A key of drives."""

    name: str
    """Its full name, such as `ftl.gc.victim`."""
    meaning: str
    """What it sets, and which values are valid."""
    default: Any
    """Its value in the default drive; None where it has none."""


@dataclass(frozen=True)
class Workload:
    """A built-in workload."""

    name: str
    jobs: tuple[str, ...]
    """The names of its jobs and loads."""
    description: str
    toml: str
    """It as a workload file."""


def drives() -> dict[str, str]:
    """The built-in drives: names and descriptions."""
    return {name: description for name, _, description, _ in _native.drives()}


def drive(name: str = "default", set: Mapping[str, Value] | None = None) -> Drive:
    """A drive by name or profile file, with changes, and all keys decided."""
    changes = pairs(set, {})
    try:
        capacity, text, toml, notes = _native.resolved(name, changes)
    except NandscapeError as error:
        raise error.about(changes)
    return Drive(name, capacity, _flat(json.loads(text)), toml, tuple(notes))


def keys() -> list[Key]:
    """All keys of drives, with their meanings and their values in the default drive."""
    values = drive().values
    names = ((f"{section}.{key}" if section else key, meaning) for section, key, meaning in _native.key_list())
    return [Key(name, " ".join(meaning.split()), values.get(name)) for name, meaning in names]


def workloads() -> list[Workload]:
    """The built-in workloads."""
    return [Workload(name, tuple(jobs), about, toml) for name, jobs, about, toml in _native.workload_list()]


def _flat(tree: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested tables as one, with dots in the names."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{before}{key}."))
        elif value is not None:
            flat[before + key] = value
    return flat
