"""Compile a Python function once per machine; afterwards run it without loading Numba.

Importing Numba and starting its compiler takes longer than a whole small
`firstpage evaluate` should.  So a kernel is compiled by Numba the first time it is called with
given array types, its machine code is stored in the cache folder, and every later process
links that code through llvmlite alone, in milliseconds.  Small jobs for which there is no
machine code yet are interpreted: their answer is there before a compiler would have started.
Where machine code cannot be linked, plain Numba takes over (`functions.Plain`).

Rules for the functions marked `@kernel` (called from Python) and `@part` (called from
kernels): arguments are C-ordered arrays, ints and floats; they allocate nothing (the caller
brings workspace), raise nothing (they return a code), and use global numbers only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from firstpage.kernels.compiler import object_cache
from firstpage.kernels.compiler.functions import NumbaFunction, P, R, Subroutine

MAX_INTERPRETED = 60_000  # array elements that a kernel may go through before it is worth compiling
_lock = threading.RLock()


class Kernel(Subroutine[P, R]):
    """A compiled function, one machine-code version per combination of argument types.

    `kernel.python(...)` runs the uncompiled original, for tests and for reading along.
    """

    def __init__(self, function: Callable[P, R], heavy: bool = False) -> None:
        super().__init__(function)
        self.heavy = heavy
        self._versions: dict[tuple[str, ...], object_cache.LinkedFunction | NumbaFunction] = {}
        self._interpreted = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        assert not kwargs, "kernels take positional arguments only"
        types = tuple([_type_of(a) for a in args])
        run = self._versions.get(types)
        if run is None:
            with _lock:
                code = self._stored(types)
                if code is None and self._is_light(args):
                    return self._interpret(args)
                run = self._link(types, code)
        result: R = run(*args)
        return result

    def bind(self, *args: Any) -> Callable[[], object]:
        """The call with these very arrays, to be made again and again.  Always compiled.

        What the arrays hold may change between calls: a solver that goes over the same data
        hundreds of times pays once for handing them over.
        """
        types = tuple([_type_of(a) for a in args])
        with _lock:
            run = self._versions.get(types) or self._link(types, self._stored(types))
        return run.bind(args)

    def _stored(self, types: tuple[str, ...]) -> object_cache.ObjectCode | None:
        return object_cache.linking.attempt(lambda: object_cache.from_cache(self, types))

    def _link(
        self, types: tuple[str, ...], code: object_cache.ObjectCode | None
    ) -> object_cache.LinkedFunction | NumbaFunction:
        run = object_cache.linking.attempt(
            lambda: object_cache.linked(code or object_cache.compiled(self, types), types)
        )
        self._versions[types] = run or NumbaFunction(self, types)
        return self._versions[types]

    def _is_light(self, args: tuple[Any, ...]) -> bool:
        """Whether interpreting is still cheaper than compiling, as far as one can know."""
        if self.heavy:
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
    """A kernel whose work its arrays do not show, such as resampling: never interpreted."""
    return Kernel(function, heavy=True)


def subroutine(function: Callable[P, R]) -> Subroutine[P, R]:
    """Mark a function as callable from kernels."""
    return Subroutine(function)


def vector_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """A kernel whose sums may be taken in the order that the CPU's vectors like best.

    The order is fixed when it is compiled, so results repeat to the last bit on one machine.  It is
    never interpreted, which would take them in another one: a small job here and a large one there
    must agree.
    """
    made: Kernel[P, R] = Kernel(function, heavy=True)
    made.fastmath = frozenset({"reassoc", "contract"})
    return made


@cache
def _names(dtype: np.dtype[Any], ndim: int) -> str:
    return f"{dtype.name}:{ndim}"


def _type_of(value: object) -> str:
    """`float64:1` for a vector, `int` and `float` for numbers."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "kernels take C-ordered arrays"
        return _names(value.dtype, value.ndim)
    if isinstance(value, (int, np.integer)):
        return "int"
    assert isinstance(value, (float, np.floating)), f"a kernel cannot take {type(value)}"
    return "float"
