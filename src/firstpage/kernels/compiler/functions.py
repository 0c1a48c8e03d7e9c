"""Functions that kernels are made of, what their machine code depends on, and Numba's view of them.

Numba is imported here, in one function, and only when there is something to compile.  Where its
machine code cannot be linked, a kernel is called through Numba itself (`Plain`).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


class Subroutine(Generic[P, R]):
    """A function that kernels may call.  From Python it runs as plain Python."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.python = function
        self.name = function.__name__
        self.fastmath: frozenset[str] = frozenset()  # what LLVM may do to floating point
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.python(*args, **kwargs)


def fingerprint(kernel: Subroutine[Any, Any], *also: object) -> str:
    """Return a digest of a kernel, of every part and constant that it uses, and of `also`."""
    digest = hashlib.sha256(repr(also).encode())
    for function in _reachable(kernel):
        digest.update(repr((sorted(function.fastmath), list(_content(function.python)))).encode())
    return digest.hexdigest()[:24]


def _reachable(start: Subroutine[Any, Any]) -> list[Subroutine[Any, Any]]:
    """The kernel and every part that it calls, in a fixed order."""
    reached: list[Subroutine[Any, Any]] = []
    open_ = [start]
    while open_:
        here = open_.pop()
        if here not in reached:
            reached.append(here)
            open_ += [v for _, v in _globals_used(here.python) if isinstance(v, Subroutine)]
    return reached


def _globals_used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    scope = function.__globals__
    for name in function.__code__.co_names:
        if name in scope:
            yield name, scope[name]


def _content(function: Callable[..., Any]) -> Iterator[object]:
    """What a function says, without where it stands."""
    code: CodeType = function.__code__
    yield (code.co_name, code.co_code, code.co_consts, code.co_names, code.co_varnames)
    for name, value in _globals_used(function):
        if isinstance(value, (int, float, np.generic)):
            yield name, repr(value)


_jitted_parts: dict[tuple[Subroutine[Any, Any], str], Any] = {}


def jitted(
    function: Subroutine[Any, Any], *, name: str | None = None, cache: bool = False, **options: Any
) -> Any:
    """Return the function for Numba, with every part that it names replaced by its compiled form.

    `name` is what Numba calls it, and `cache` whether Numba stores it: of the function itself,
    not of its parts.
    """
    import numba

    scope = dict(function.python.__globals__)
    for used, value in _globals_used(function.python):
        if isinstance(value, Subroutine):
            key = (value, repr(options))
            if key not in _jitted_parts:
                _jitted_parts[key] = jitted(value, **options)
            scope[used] = _jitted_parts[key]
    plain = FunctionType(function.python.__code__, scope, function.name)
    plain.__qualname__ = name or function.name  # by which Numba stores it
    return numba.njit(cache=cache, fastmath=set(function.fastmath), **options)(plain)


# --- plain Numba


class NumbaFunction:
    """A kernel as an ordinary Numba function, called with arrays and numbers of given types."""

    def __init__(self, kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> None:
        self._function = _cached(kernel)
        self._converters = [_converter(name) for name in types]

    def __call__(self, *args: Any) -> Any:
        return self._function(*self._converted(args))

    def bind(self, args: tuple[Any, ...]) -> Callable[[], Any]:
        """Return the call with these very arrays."""
        return functools.partial(self._function, *self._converted(args))

    def _converted(self, args: tuple[Any, ...]) -> list[Any]:
        return [convert(a) for convert, a in zip(self._converters, args, strict=True)]


@functools.cache
def _cached(kernel: Subroutine[Any, Any]) -> Any:
    """The dispatcher of a kernel; a folder that cannot be written costs compiling anew."""
    options = {"error_model": "numpy", "nogil": True}
    # Numba's cache knows a function by its name and its own code alone, not by what it calls.
    name = f"{kernel.name}_{fingerprint(kernel)}"
    try:
        return jitted(kernel, name=name, cache=True, **options)
    except RuntimeError:
        return jitted(kernel, name=name, **options)


def _converter(type_name: str) -> Callable[[Any], Any]:
    if type_name == "int":
        return int
    return float if type_name == "float" else _writable


class _Memory:
    """The memory of an array, without its mark that it must not be written."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._owner = array
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same memory: Numba compiles anew for read-only arrays, which kernels only read anyway."""
    return array if array.flags.writeable else np.asarray(_Memory(array))
