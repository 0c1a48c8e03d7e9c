"""Indices of kernels: compiled as given, and checked on request."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from firstpage.kernels.compiler import object_cache
from firstpage.kernels.compiler.functions import Subroutine
from firstpage.types import Floats

TYPES = ("float64:1", "int")
READ = """
import sys
import numpy as np
from firstpage.kernels.compiler import object_cache
from firstpage.kernels.compiler.functions import Subroutine
from tests.checked_indices import checked_index

def item(values, i):
    return values[i]

object_cache.index_as_given = checked_index
types = ("float64:1", "int")
read = object_cache.link(object_cache._compile(Subroutine(item), types), types)
print(read(np.arange(5.0), int(sys.argv[1])))
"""


def item(values: Floats, i: int) -> float:
    return float(values[i])


@pytest.mark.slow
def test_other_functions_may_still_count_from_the_end() -> None:
    read = object_cache.link(object_cache._compile(Subroutine(item), TYPES), TYPES)
    values = np.arange(5.0)
    assert read(values, 3) == 3.0
    assert numba.njit(lambda values: values[-1])(values) == 4.0


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 4, 5, -1])
def test_checked_kernels_end_the_process_outside_the_array(index: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(index)],
        cwd=Path(__file__).parents[3], capture_output=True, text=True,
    )  # fmt: skip
    if 0 <= index < 5:
        assert done.stdout == f"{float(index)}\n"
    else:
        assert done.returncode in (-signal.SIGTRAP, -signal.SIGILL)
        assert done.stdout == ""
