"""Exceptions: what is wrong, of which key, and what would be valid."""

from __future__ import annotations

import re
from typing import Any, Iterable


class NandscapeError(Exception):
    """The base of all errors of this package.

    `key` is the key that is meant, `where` the place (the key with its value, or a file with its line), and `valid` what would be
    valid; each is None if the message does not name it.
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.where = _where(message)
        self.valid = _valid(message)

    def about(self, pairs: Iterable[tuple[str, str]]) -> NandscapeError:
        """The same error with the one of these keys, or of their values, that its message is about."""
        if self.key is None:
            # What is expected or meant instead may name other keys.
            text = re.split(r", expected |; did you mean ", str(self))[0]
            longest = sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)
            named = [key for key, _ in longest if _names(text, key)]
            meant = [key for key, value in longest if value and value == self.where]
            self.key = next(iter(named + meant), None)
        return self


class InputError(NandscapeError, ValueError):
    """A key, a value or a file is invalid."""


class RunError(NandscapeError, RuntimeError):
    """A run failed."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run. `result` has what was measured until then: a `Result`, or a `SweepResult`."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; the exception's `result` has what was measured until then")
        self.result = result


def _where(message: str) -> str | None:
    place, colon, _ = message.partition(": ")
    return place if colon else None


def _valid(message: str) -> str | None:
    expected = re.search(r"expected (.+)$", message, re.DOTALL)
    if expected:
        return expected.group(1).strip()
    parts = re.split(r"[;:] ", message)
    return next((part.strip() for part in reversed(parts) if "valid" in part.split()), None)


def _names(text: str, key: str) -> bool:
    """Whether a text names a key, or its last part as an unknown one."""
    part = key.rsplit(".", 1)[-1]
    return re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])|`{re.escape(part)}`", text) is not None
