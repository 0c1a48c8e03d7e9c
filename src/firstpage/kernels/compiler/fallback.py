"""Plain `numba.njit(cache=True)`, for where machine code cannot be linked without Numba.

Linking rests on Numba's private calling convention (docs/kernels.md).  Where that is not to be
relied on, kernels become ordinary Numba functions, with the same results and a slower start.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from firstpage.errors import FirstpageError, FirstpageWarning
from firstpage.kernels.compiler.functions import Part, fingerprint, jitted

VARIABLE = "FIRSTPAGE_KERNELS"
LINKED, PLAIN = "linked", "numba"  # what the variable may say
CHECKED = {"numba": ((0, 60), (0, 69)), "llvmlite": ((0, 43), (0, 51))}
"""From which version on, and before which, linking was checked; as in pyproject.toml."""

T = TypeVar("T")


class LinkingError(Exception):
    """Numba's private interface is not as the linker expects it."""


class Linking:
    """Whether this process links machine code; once given up, it stays so."""

    def __init__(self) -> None:
        self._on: bool | None = None  # not decided yet

    def attempt(self, action: Callable[[], T]) -> T | None:
        """Return the result of `action`, or None where linking is off or fails now."""
        try:
            if self._on is None:
                self._on = _requested() == LINKED
                if self._on:
                    check_versions()
            return action() if self._on else None
        except FirstpageError:
            raise
        except Exception as error:  # a private interface may break in any way
            self._on = False
            warnings.warn(_explained(error), FirstpageWarning, stacklevel=2)
            return None


linking = Linking()


def _requested() -> str:
    value = os.environ.get(VARIABLE) or LINKED
    if value not in (LINKED, PLAIN):
        raise FirstpageError(f"{VARIABLE}={value!r} is unknown; set it to {LINKED} or {PLAIN}.")
    return value


version_of = cache(version)  # reads a file


def check_versions() -> None:
    """Refuse versions of Numba and llvmlite with which linking was never checked."""
    for package, (first, end) in CHECKED.items():
        installed = version_of(package)
        numbers = tuple(int(number) for number in installed.split(".")[:2])
        if not first <= numbers < end:
            raise LinkingError(f"{package} {installed} was never checked for it")


def _explained(error: Exception) -> str:
    reason = " ".join(f"{error}".split()) or "no reason given"
    if not isinstance(error, LinkingError):
        reason = f"{type(error).__name__}: {reason}"
    wanted = " ".join(f"'{name}<{end[0]}.{end[1]}'" for name, (_, end) in CHECKED.items())
    return (
        f"stored machine code cannot be linked here ({reason}), so kernels run by plain "
        "numba.njit: the results are the same, every start takes about a second more and the first "
        f"one longer. Install {wanted}, or set {VARIABLE}={PLAIN} to silence this."
    )


class Plain:
    """A kernel as an ordinary Numba function, called with arrays and numbers of given types."""

    def __init__(self, kernel: Part[Any, Any], types: tuple[str, ...]) -> None:
        self._function = _cached(kernel)
        self._converters = [_converter(name) for name in types]

    def __call__(self, *args: Any) -> Any:
        return self._function(*self._converted(args))

    def bind(self, args: tuple[Any, ...]) -> Callable[[], Any]:
        """Return the call with these very arrays."""
        return partial(self._function, *self._converted(args))

    def _converted(self, args: tuple[Any, ...]) -> list[Any]:
        return [convert(a) for convert, a in zip(self._converters, args, strict=True)]


@cache
def _cached(kernel: Part[Any, Any]) -> Any:
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
