"""Errors and warnings that a user's input can cause.

Every message is one line: what is wrong, where, and what to do.  The command line prints it and
exits with status 1; a library user catches `FirstpageError`.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

EXTRAS = {  # the modules of extras that a command checks before it begins
    "web": (
        "starlette", "msgspec", "sqlalchemy", "alembic", "uvicorn", "argon2", "multipart", "jinja2",
    ),
    "search": ("tantivy",),
    "serve": ("uvicorn", "starlette", "msgspec", "prometheus_client", "jinja2"),
}  # fmt: skip


class Advice(NamedTuple):
    """What to do by a parameter: a sentence with {} in place of the parameter.

    In Python the sentence names the parameter.  The command line names its option instead, and
    omits the sentence if the running command has no such option.
    """

    sentence: str
    parameter: str
    value: Any = None  # of the parameter, if the sentence sets it
    of: str = ""  # what the parameter describes, where several things have one: "queries"

    def __str__(self) -> str:
        value = "" if self.value is None else repr(self.value)
        return self.sentence.replace("{}", f"{self.parameter}={value}")


class _Advised(Exception):
    """A message, and advice that is a sentence of its own."""

    def __init__(self, message: str = "", advice: Advice | None = None) -> None:
        super().__init__(message if advice is None else f"{message} {advice}")
        self.message = message
        self.advice = advice


class FirstpageError(_Advised):
    """Base class of all errors that a user's input causes.

    Examples
    --------
    >>> import firstpage as fp
    >>> try:
    ...     fp.measure("NDGC@10")
    ... except fp.FirstpageError as error:
    ...     print(type(error).__name__)
    MeasureError
    """


class DataError(FirstpageError, ValueError):
    """A file, an array or a parameter does not hold what it should.

    Examples
    --------
    >>> import firstpage as fp
    >>> try:
    ...     fp.ListNet(k=0).fit([[1.0], [2.0]], [0, 1], qid=[1, 1])
    ... except fp.DataError as error:
    ...     print(error)
    k of ListNet must be an integer of at least 1; got 0.
    """


class MeasureError(FirstpageError, ValueError):
    """A measure is unknown or malformed, or does not fit the data.

    Examples
    --------
    >>> import firstpage as fp
    >>> try:
    ...     fp.measure("NDGC@10")
    ... except fp.MeasureError:
    ...     print("there is no such measure")
    there is no such measure
    """


class MissingDependency(FirstpageError, ImportError):
    """An optional package is needed and not installed; the message names the extra to install."""


class FirstpageWarning(_Advised, UserWarning):
    """Something was corrected or assumed; the result is valid.

    Examples
    --------
    >>> import warnings
    >>> import firstpage as fp
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", fp.FirstpageWarning)  # turn warnings into errors
    """


def warn(
    message: str, advice: Advice | None = None, category: type[Warning] = FirstpageWarning
) -> None:
    """Issue a warning at the line outside of this package that led to it."""
    level, frame = 1, sys._getframe().f_back
    while frame is not None and frame.f_globals.get("__name__", "").startswith("firstpage."):
        level, frame = level + 1, frame.f_back
    text = message if advice is None else FirstpageWarning(message, advice)
    warnings.warn(text, None if advice else category, stacklevel=level + 1)


def plain_text(error: object) -> str:
    """Return an error in one line, for pages and HTTP APIs.

    Advice is omitted: a page has neither the parameter of Python nor the option that it names.
    """
    text = error.message if isinstance(error, _Advised) and error.advice else str(error)
    return " ".join(text.split())


def location(path: str | PathLike[str], line: int | None = None, column: int | None = None) -> str:
    """Return `file:line:column`, as editors and compilers write it."""
    return ":".join([fspath(path), *(str(n) for n in (line, column) if n is not None)])


def missing_dependency(package: str, extra: str, feature: str) -> MissingDependency:
    """Return the error for an optional package that `feature` needs and that is not installed."""
    return MissingDependency(
        f"{feature} needs the package '{package}', which is not installed. "
        f"Install it with: {install_command(extra)}"
    )


def install_command(extra: str) -> str:
    """Return the command that installs extras, such as "web,search", where Firstpage is installed.

    The package's record of its origin says whether that was an index, a checkout, a file or a
    repository.  If the origin is gone, or no index has this version, the command names the
    packages of the extras.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.request import url2pathname

    try:
        package = distribution("firstpage")
    except PackageNotFoundError:  # sources that are on the path, and not installed
        return f'pip install -e "{Path(__file__).parents[3]}[{extra}]"'
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    path = url2pathname(url.removeprefix("file://")) if url.startswith("file://") else ""
    if (path and not Path(path).exists()) or (not origin and "dev" in package.version):
        of_extras = re.compile(rf"""(.+?) *; *extra == ['"]({extra.replace(",", "|")})['"]""")
        matches = [of_extras.fullmatch(requirement) for requirement in package.requires or ()]
        return "pip install " + " ".join(f'"{match[1]}"' for match in matches if match)
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f'pip install {editable}"{path}[{extra}]"'
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f'pip install "firstpage[{extra}]{" @ " + url if url else ""}"'


def require_extras(feature: str, *extras: str) -> None:
    """Raise an error that names what to install, if a module of `EXTRAS` is missing."""
    for extra in extras:
        for module in EXTRAS[extra]:
            if find_spec(module) is None:
                raise missing_dependency(module, ",".join(extras), feature)
