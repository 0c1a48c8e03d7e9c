"""Functions that kernels are made of, and what their machine code depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import update_wrapper
from types import CodeType
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


def reachable(start: Part[Any, Any]) -> list[Part[Any, Any]]:
    """The kernel and every part that it calls, in a fixed order."""
    found: list[Part[Any, Any]] = []
    open_ = [start]
    while open_:
        here = open_.pop()
        if here not in found:
            found.append(here)
            open_ += [v for _, v in globals_used(here.python) if isinstance(v, Part)]
    return found


def globals_used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    scope = function.__globals__
    for name in function.__code__.co_names:
        if name in scope:
            yield name, scope[name]


def content(function: Callable[..., Any]) -> Iterator[object]:
    """What a function says, without where it stands."""
    code: CodeType = function.__code__
    yield (code.co_name, code.co_code, code.co_consts, code.co_names, code.co_varnames)
    for name, value in globals_used(function):
        if isinstance(value, (int, float, np.generic)):
            yield name, repr(value)
