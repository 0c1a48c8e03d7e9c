"""What can go wrong by a user's hand, and how it is said.

Every error below is one line: what is wrong, where, and what to do.  The command
line prints it and exits with 1; a library user catches `FirstpageError`.
"""

from __future__ import annotations

from os import PathLike, fspath


class FirstpageError(Exception):
    """Base of all errors that a user's input causes."""


class DataError(FirstpageError, ValueError):
    """A file or an array does not hold what it should."""


class MeasureError(FirstpageError, ValueError):
    """A measure is unknown, badly written, or does not fit the data."""


class MissingDependency(FirstpageError, ImportError):
    """An optional package is needed and not installed."""


class FirstpageWarning(UserWarning):
    """Something was mended or assumed on the way; the result stands."""


def at(path: str | PathLike[str], line: int | None = None, column: int | None = None) -> str:
    """`file:line:column`, as editors and compilers write it."""
    return ":".join([fspath(path), *(str(n) for n in (line, column) if n is not None)])


def need(package: str, extra: str, why: str) -> MissingDependency:
    """The error for an optional dependency that is absent."""
    return MissingDependency(
        f"{why} needs the package '{package}', which is not installed. "
        f"Install it with: pip install 'firstpage[{extra}]'"
    )
