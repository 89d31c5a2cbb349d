"""The client of a Dask cluster that `nandscape sweep --dask ADDRESS` starts: `python3 -m nandscape.cluster ADDRESS`.

It reads a line of JSON for each point, with `task` and `inputs`, and prints one for each result, with `task` and `stored` or `problem`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from nandscape._cluster import distribute, package
from nandscape._errors import NandscapeError


def run(client: Any) -> None:
    """Measures the points of the input."""
    given = [json.loads(line) for line in sys.stdin]
    texts = [json.dumps(point["inputs"]) for point in given]
    for at, stored, problem in distribute(client, texts):
        answer = {"task": given[at]["task"], "stored": stored} if problem is None else {"task": given[at]["task"], "problem": problem}
        print(json.dumps(answer), flush=True)


def main(words: list[str]) -> int:
    """The exit status."""
    if len(words) != 1:
        print("usage: python3 -m nandscape.cluster tcp://HOST:PORT", file=sys.stderr)
        return 2
    try:
        with package().Client(words[0], timeout="30s") as client:
            run(client)
    except KeyboardInterrupt:
        return 130
    except (NandscapeError, OSError, ValueError) as error:
        print(f"cluster {words[0]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
