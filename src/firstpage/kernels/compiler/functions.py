"""Functions that kernels are made of, what their machine code depends on, and Numba's view of them.

Numba is imported here, in one function, and only when there is something to compile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import update_wrapper
from types import CodeType, FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


class Part(Generic[P, R]):
    """A function that kernels may call.  From Python it runs as plain Python."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.python = function
        self.name = function.__name__
        self.fastmath: frozenset[str] = frozenset()  # what LLVM may do to floating point
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.python(*args, **kwargs)


def fingerprint(kernel: Part[Any, Any], *also: object) -> str:
    """Return a digest of a kernel, of every part and constant that it uses, and of `also`."""
    digest = hashlib.sha256(repr(also).encode())
    for function in _reachable(kernel):
        digest.update(repr((sorted(function.fastmath), list(_content(function.python)))).encode())
    return digest.hexdigest()[:24]


def _reachable(start: Part[Any, Any]) -> list[Part[Any, Any]]:
    """The kernel and every part that it calls, in a fixed order."""
    reached: list[Part[Any, Any]] = []
    open_ = [start]
    while open_:
        here = open_.pop()
        if here not in reached:
            reached.append(here)
            open_ += [v for _, v in _globals_used(here.python) if isinstance(v, Part)]
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


_jitted_parts: dict[tuple[Part[Any, Any], str], Any] = {}


def jitted(
    function: Part[Any, Any], *, name: str | None = None, cache: bool = False, **options: Any
) -> Any:
    """Return the function for Numba, with every part that it names replaced by its compiled form.

    `name` is what Numba calls it, and `cache` whether Numba stores it: of the function itself,
    not of its parts.
    """
    import numba

    scope = dict(function.python.__globals__)
    for used, value in _globals_used(function.python):
        if isinstance(value, Part):
            key = (value, repr(options))
            if key not in _jitted_parts:
                _jitted_parts[key] = jitted(value, **options)
            scope[used] = _jitted_parts[key]
    plain = FunctionType(function.python.__code__, scope, name or function.name)
    return numba.njit(cache=cache, fastmath=set(function.fastmath), **options)(plain)
