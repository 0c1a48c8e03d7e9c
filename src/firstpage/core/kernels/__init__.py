"""Compiled kernels: flat arrays and offsets in, numbers out.

Kernels do not validate their input; callers do.  They are plain Python functions, compiled by
Numba once per machine and then loaded without it (`compiler`).  All of them run over groups:
query q has the rows offsets[q]:offsets[q + 1].
"""

from __future__ import annotations

from collections.abc import Callable

from firstpage.core.lazy import lazy_namespace

on_compile: Callable[[], None] | None = None
"""Called before a kernel is compiled, which takes seconds and happens once per machine."""

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
