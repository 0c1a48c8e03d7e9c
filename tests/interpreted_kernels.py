"""Triton kernels, interpreted on the CPU by a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def check_interpreted(module: str) -> None:
    """Run a module that compares interpreted kernels with the CPU, and check what it prints."""
    pytest.importorskip("triton", reason="no Triton: its kernels are not tested")
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-m", module]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("the interpreter of Triton 3.6 cannot read loop bounds with NumPy 2.4")
    assert done.stdout.strip().endswith("as on the CPU"), done.stderr[-2000:]
