"""Compile a Python function once per machine; afterwards run it without loading Numba.

Importing Numba and starting its compiler takes longer than a small `firstpage evaluate` should.
Therefore a kernel is compiled by Numba the first time it is called with given argument types, its
machine code is stored in the cache folder, and every later process links that code through llvmlite
alone, in milliseconds.  Small inputs for which there is no machine code yet are interpreted, which
is faster than starting the compiler.  Where machine code cannot be linked, kernels run as ordinary
Numba functions (`functions.NumbaFunction`).

A kernel with more than six parameters is called by their names, which are checked: every parameter
once, and no other.  Leading arguments may be passed by position where the variable, of which a part
may be passed, has the name of the parameter (`tests/core/kernels/test_calls.py`).

Rules for functions marked `@kernel` (called from Python) and `@subroutine` (called from kernels):
arguments are C-ordered arrays, ints and floats; functions allocate nothing (the caller passes
workspace), raise nothing (they return a code), and use only numbers as globals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from firstpage.core.kernels.compiler import object_cache
from firstpage.core.kernels.compiler.functions import NumbaFunction, P, R, Subroutine

MAX_INTERPRETED = 60_000  # array elements that a kernel interprets before it is compiled
_lock = threading.RLock()


class Kernel(Subroutine[P, R]):
    """A compiled function, with one machine-code version per combination of argument types.

    `kernel.python(...)` runs the uncompiled function, for tests and debugging.
    """

    def __init__(self, function: Callable[P, R], always_compile: bool = False) -> None:
        super().__init__(function)
        self.always_compile = always_compile
        self._versions: dict[tuple[str, ...], object_cache.LinkedFunction | NumbaFunction] = {}
        self._interpreted = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            args = self._in_order(args, kwargs)
        types = tuple([_type_of(a) for a in args])
        run = self._versions.get(types)
        if run is None:
            with _lock:
                code = self._load_cached(types)
                if code is None and self._is_small(args):
                    return self._interpret(args)
                run = self._link(types, code)
        result: R = run(*args)
        return result

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[], R]:
        """Return a function that calls the compiled kernel with these arrays.

        The contents of the arrays may change between calls.  A solver that processes the same data
        hundreds of times pays once for passing them.
        """
        if kwargs:
            args = self._in_order(args, kwargs)
        types = tuple([_type_of(a) for a in args])
        with _lock:
            run = self._versions.get(types) or self._link(types, self._load_cached(types))
        return run.bind(args)

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return all arguments in the order of the parameters."""
        if tuple(kwargs) == self.parameters and not args:  # in order already, as most calls
            return tuple(kwargs.values())
        names = self.parameters[len(args) :]
        if len(kwargs) != len(names) or not kwargs.keys() >= set(names):
            raise TypeError(f"{self.name}: {self._wrong_arguments(args, kwargs)}")
        return (*args, *[kwargs[name] for name in names])

    def _wrong_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        passed = [*self.parameters[: len(args)], *kwargs]
        faults = {
            "missing": [name for name in self.parameters if name not in passed],
            "unknown": [name for name in passed if name not in self.parameters],
            "passed twice": [name for name in kwargs if passed.count(name) > 1],
        }
        return "; ".join(f"{fault}: {', '.join(n)}" for fault, n in faults.items() if n)

    def _load_cached(self, types: tuple[str, ...]) -> object_cache.ObjectCode | None:
        return object_cache.linking.attempt(lambda: object_cache.load_cached(self, types))

    def _link(
        self, types: tuple[str, ...], code: object_cache.ObjectCode | None
    ) -> object_cache.LinkedFunction | NumbaFunction:
        run = object_cache.linking.attempt(
            lambda: object_cache.link(code or object_cache.compile_kernel(self, types), types)
        )
        self._versions[types] = run or NumbaFunction(self, types)
        return self._versions[types]

    def _is_small(self, args: tuple[Any, ...]) -> bool:
        """Return whether interpreting is still cheaper than compiling, by the elements seen."""
        if self.always_compile:
            return False
        self._interpreted += sum(a.size for a in args if isinstance(a, np.ndarray))
        return self._interpreted <= MAX_INTERPRETED

    def _interpret(self, args: tuple[Any, ...]) -> R:
        with np.errstate(all="ignore"):  # machine code does not warn either
            return self.python(*args)  # type: ignore[call-arg]


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a function as callable from Python, compiled at its first call."""
    return Kernel(function)


def compiled_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a kernel that is never interpreted: its work exceeds the size of its arrays."""
    return Kernel(function, always_compile=True)


def subroutine(function: Callable[P, R]) -> Subroutine[P, R]:
    """Mark a function as callable from kernels."""
    return Subroutine(function)


def inlined_subroutine(function: Callable[P, R]) -> Subroutine[P, R]:
    """Mark a subroutine with many arrays that an inner loop calls: passing them costs time."""
    inlined: Subroutine[P, R] = Subroutine(function)
    inlined.inline = True
    return inlined


def vector_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a kernel whose sums may be reordered by the compiler, for SIMD.

    The order is fixed at compile time, so results are reproducible to the last bit on one machine.
    Such a kernel is never interpreted, since that would sum in another order: small and large
    inputs must agree.
    """
    vectorized: Kernel[P, R] = Kernel(function, always_compile=True)
    vectorized.fastmath = frozenset({"reassoc", "contract"})
    return vectorized


@cache
def _array_type(dtype: np.dtype[Any], ndim: int) -> str:
    """Return the type name of an array, such as `float64:1`."""
    return f"{dtype.name}:{ndim}"


def _type_of(value: object) -> str:
    """Return the type name of an argument: `float64:1` for a vector, `int` or `float`."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "kernels take C-ordered arrays"
        return _array_type(value.dtype, value.ndim)
    if isinstance(value, (int, np.integer)):
        return "int"
    assert isinstance(value, (float, np.floating)), f"a kernel cannot take {type(value)}"
    return "float"
