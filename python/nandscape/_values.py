"""Keys and values as the text that the command reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from nandscape._errors import InputError

Value = Union[str, bool, int, float, "os.PathLike[str]", Sequence[Union[str, bool, int, float]]]
"""A value of a key: text such as "64MiB" or "40us", a number, a truth value, a path, or a list of texts, numbers and truth values."""

Varied = Mapping[str, Union[Iterable[Value], Mapping[str, Mapping[str, Value]]]]
"""Parameters of a sweep: keys with their values, or names with choices that have names and set keys."""


def text(key: str, value: object) -> str:
    """The value of a key as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _real(key, value)
    if isinstance(value, Sequence):
        parts = [json.dumps(part) if isinstance(part, str) else text(key, part) for part in value]
        return f"[{', '.join(parts)}]"
    if hasattr(value, "item"):
        return text(key, value.item())
    kind = type(value).__name__
    raise InputError(f"{key}: a value of type {kind}; text, numbers, truth values and lists of them are valid", key)


def _real(key: str, value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise InputError(f"{key}: {value} is no finite number; finite numbers are valid", key)
    return repr(value)


def pairs(set: Mapping[str, Value] | None, keys: Mapping[str, Value]) -> list[tuple[str, str]]:
    """The keys of a mapping and of keyword arguments, which replace those of the mapping."""
    known = {key: text(key, value) for key, value in (set or {}).items() if key not in keys}
    known |= {key: text(key, value) for key, value in keys.items()}
    return list(known.items())
