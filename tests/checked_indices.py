"""A plugin of pytest: kernels end the process at an index outside its array.

    python -m pytest -p tests.checked_indices

Kernels are compiled without bounds checks and without indices that count from the end.  This
plugin compiles them with checks of both, in a cache of their own.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from firstpage.core.kernels.compiler import object_cache


def checked_index(context: Any, builder: Any, index_type: Any, index: Any, size: Any) -> Any:
    """Return the code of an index, and of a trap unless it is in the array."""
    from llvmlite import ir
    from numba.core import cgutils, types

    index = context.cast(builder, index, index_type, types.intp)
    outside = builder.icmp_unsigned(">=", index, size)  # a negative index is a large unsigned one
    with cgutils.if_unlikely(builder, outside):
        trap = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.trap"
        )
        builder.call(trap, [])
    return index


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    object_cache.index_as_given = checked_index
    os.environ["FIRSTPAGE_CACHE"] += "-checked"
