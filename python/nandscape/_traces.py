"""Traces in other formats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nandscape import _native
from nandscape._errors import NandscapeError
from nandscape._values import Value, pairs


def convert_trace(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    to: str,
    *,
    set: Mapping[str, Value] | None = None,
    **keys: Value,
) -> list[str]:
    """Writes a trace, or a recording of a live drive, to the file `out` in the format `to`, and returns notes on the changes, as `nandscape
    trace convert` does. The file is compressed if its name ends in .gz, .zst or .bz2. Keys select requests: `format`, `action`, `disk`,
    `host`, `window="60s..120s"`, `limit`, `skip_bad`.
    """
    chosen = pairs(set, keys)
    try:
        return _native.convert_trace(os.fspath(path), chosen, to, Path(out))
    except NandscapeError as error:
        raise error.about([*chosen, ("to", to)])
