"""The examples run, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import ROOT


def test_first_steps_prints_and_draws(tmp_path: Path) -> None:
    program = os.fspath(ROOT / "python" / "examples" / "first_steps.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "p99 of reads" in done.stdout and "_behind_" in done.stdout
    assert (tmp_path / "first_steps.png").stat().st_size > 10_000


def test_policies_are_compared(tmp_path: Path) -> None:
    program = os.fspath(ROOT / "python" / "examples" / "policies.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"(\w+): write amplification ([\d.]+)", done.stdout))
    assert list(found) == ["greedy", "cost_benefit", "oldest"] and min(map(float, found.values())) > 1
    assert (tmp_path / "policies.png").stat().st_size > 5_000


def test_the_question_of_the_guide_takes_at_most_fifteen_lines() -> None:
    text = (ROOT / "python" / "examples" / "suspension.py").read_text()
    body = text.split("def ask(")[1].split("\n\n\n")[0]
    assert len(body.splitlines()) <= 15
