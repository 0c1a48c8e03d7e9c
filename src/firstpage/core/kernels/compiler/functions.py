"""Subroutines of kernels, fingerprints of their code, and their compilation by Numba.

Numba is imported here, in one function, and only when there is something to compile.  Where its
machine code cannot be linked, a kernel is called through Numba itself (`NumbaFunction`).
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
    """A function that kernels may call.  Called from Python, it runs as plain Python."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.python = function
        self.name = function.__name__
        code = function.__code__
        self.parameters: tuple[str, ...] = code.co_varnames[: code.co_argcount]
        self.fastmath: frozenset[str] = frozenset()  # LLVM fast-math flags
        self.inline = False  # whether its code is copied to each call
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.python(*args, **kwargs)


def fingerprint(kernel: Subroutine[Any, Any], *also: object) -> str:
    """Return a digest of a kernel, of every subroutine and constant that it uses, and of `also`."""
    digest = hashlib.sha256(repr(also).encode())
    for function in _reachable(kernel):
        flags = (*sorted(function.fastmath), *(["inline"] if function.inline else []))
        digest.update(repr((list(flags), list(_content(function.python)))).encode())
    return digest.hexdigest()[:24]


def _reachable(start: Subroutine[Any, Any]) -> list[Subroutine[Any, Any]]:
    """Return the kernel and every subroutine that it calls, in a fixed order."""
    reached: list[Subroutine[Any, Any]] = []
    pending = [start]
    while pending:
        current = pending.pop()
        if current not in reached:
            reached.append(current)
            pending += [v for _, v in _globals_used(current.python) if isinstance(v, Subroutine)]
    return reached


def _globals_used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every global that a function uses."""
    scope = function.__globals__
    for name in function.__code__.co_names:
        if name in scope:
            yield name, scope[name]


def _content(function: Callable[..., Any]) -> Iterator[object]:
    """Yield the code and constants of a function, without its location."""
    code: CodeType = function.__code__
    yield (code.co_name, code.co_code, code.co_consts, code.co_names, code.co_varnames)
    for name, value in _globals_used(function):
        if isinstance(value, (int, float, np.generic)):
            yield name, repr(value)


_jitted_subroutines: dict[tuple[Subroutine[Any, Any], str], Any] = {}


def jitted(
    function: Subroutine[Any, Any], *, name: str | None = None, cache: bool = False, **options: Any
) -> Any:
    """Return the function compiled by Numba, including every subroutine that it calls.

    `name` is the name that Numba stores it by, and `cache` whether Numba stores it; both apply to
    the function itself, not to its subroutines.
    """
    import numba

    scope = dict(function.python.__globals__)
    for used, value in _globals_used(function.python):
        if isinstance(value, Subroutine):
            key = (value, repr(options))
            if key not in _jitted_subroutines:
                _jitted_subroutines[key] = jitted(value, **options)
            scope[used] = _jitted_subroutines[key]
    plain = FunctionType(function.python.__code__, scope, function.name)
    plain.__qualname__ = name or function.name  # the key of Numba's cache
    flags = {"fastmath": set(function.fastmath), "forceinline": function.inline}
    return numba.njit(cache=cache, **flags, **options)(plain)


# --- plain Numba


class NumbaFunction:
    """A kernel as an ordinary Numba function, called with arguments of given types."""

    def __init__(self, kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> None:
        self._function = _dispatcher(kernel)
        self._converters = [_converter(name) for name in types]

    def __call__(self, *args: Any) -> Any:
        return self._function(*self._converted(args))

    def bind(self, args: tuple[Any, ...]) -> Callable[[], Any]:
        """Return a function that calls the kernel with these arrays."""
        return functools.partial(self._function, *self._converted(args))

    def _converted(self, args: tuple[Any, ...]) -> list[Any]:
        return [convert(a) for convert, a in zip(self._converters, args, strict=True)]


@functools.cache
def _dispatcher(kernel: Subroutine[Any, Any]) -> Any:
    """Return the dispatcher of a kernel; without a writable folder it is compiled every time."""
    options = {"error_model": "numpy", "nogil": True}
    # Numba's cache identifies a function by its name and code, not by the functions it calls.
    name = f"{kernel.name}_{fingerprint(kernel)}"
    try:
        return jitted(kernel, name=name, cache=True, **options)
    except RuntimeError:
        return jitted(kernel, name=name, **options)


def _converter(type_name: str) -> Callable[[Any], Any]:
    if type_name == "int":
        return int
    return float if type_name == "float" else _writable


class _WritableMemory:
    """The memory of an array, without its read-only flag."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._owner = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a writable view of an array; Numba would compile again for read-only arrays.

    Kernels do not write to arrays that callers pass as read-only.
    """
    return array if array.flags.writeable else np.asarray(_WritableMemory(array))
