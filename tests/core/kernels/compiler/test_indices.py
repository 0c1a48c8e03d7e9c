"""Indices of kernels: compiled as given, and checked on request."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

from firstpage.core.kernels.compiler import object_cache
from firstpage.core.kernels.compiler.functions import Subroutine
from firstpage.core.types import Floats

TYPES = ("float64:1", "int")
READ = """
import json, os
import numpy as np
from firstpage.core.kernels.compiler import object_cache
from firstpage.core.kernels.compiler.functions import Subroutine
from tests.checked_indices import checked_index

def item(values, i):
    return values[i]

object_cache.index_as_given = checked_index
types = ("float64:1", "int")
read = object_cache.link(object_cache._compile(Subroutine(item), types), types)
results = []
for index in (0, 4, 5, -1):
    child = os.fork()
    if child == 0:
        os._exit(10 + int(read(np.arange(5.0), index)))
    results.append((index, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
print(json.dumps(results))
"""


def item(values: Floats, i: int) -> float:
    return float(values[i])


def test_other_functions_may_still_count_from_the_end() -> None:
    read = object_cache.link(object_cache._compile(Subroutine(item), TYPES), TYPES)
    values = np.arange(5.0)
    assert read(values, 3) == 3.0
    assert numba.njit(lambda values: values[-1])(values) == 4.0


def test_checked_kernels_end_the_process_outside_the_array() -> None:
    """Each index is read in a copy of one process, which returns 10 and the item."""
    done = subprocess.run(
        [sys.executable, "-c", READ], cwd=Path(__file__).parents[4], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    statuses = dict(json.loads(done.stdout))
    assert [statuses[index] for index in (0, 4)] == [10, 14]
    for index in (5, -1):
        assert statuses[index] in (-signal.SIGTRAP, -signal.SIGILL)
