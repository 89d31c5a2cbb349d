"""Ctrl-C: a run ends with what is done, in a process of its own so that the signal hits nothing else."""

from __future__ import annotations

import subprocess
import sys

LONG = """
import nandscape, os, signal, sys, threading
def press(): os.kill(os.getpid(), signal.SIGINT)
threading.Timer(1.0, press).start()
try:
    nandscape.run(rw="randread", capacity="64MiB", runtime="100000s")
except nandscape.Interrupted as interrupt:
    assert interrupt.result.interrupted
    print(interrupt.result.report["requests"])
    sys.exit(3)
"""


def test_an_interrupt_ends_a_run_and_keeps_what_is_done() -> None:
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert int(done.stdout) > 0


def test_an_interrupt_that_is_not_caught_ends_the_program() -> None:
    program = LONG.replace("nandscape.Interrupted", "ZeroDivisionError")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "has what was measured" in done.stderr
