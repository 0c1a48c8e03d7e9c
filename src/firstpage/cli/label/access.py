"""Access to the store of a labeling project, which needs the packages of the extra `web`.

The commands import only the faces of `firstpage.labeling.app` and of its packages, which load
SQLAlchemy and Starlette on first use: help works without these packages, and what is missing is
reported in one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

from firstpage.cli.options import CommandFunction
from firstpage.core import DataError, require_extras
from firstpage.labeling.app import store as stores


def check_web_packages() -> None:
    """Raise an error that names what to install, if a package of the application is missing."""
    require_extras("The labeling application", "web")


def with_web(command: CommandFunction) -> CommandFunction:
    """Make a command check the packages of the labeling application before anything else."""

    @wraps(command)
    def checked(*args: Any, **options: Any) -> Any:
        check_web_packages()
        return command(*args, **options)

    return cast("CommandFunction", checked)


@contextmanager
def open_store(location: str, create: bool = False) -> Iterator[stores.Store]:
    """Open the store of a folder or database URL; a folder without one is an error by default."""
    check_web_packages()
    if not create and not stores.holds_store(location):
        raise DataError(
            f"{location}: has no labeling project; create one with: firstpage label setup"
        )
    store = stores.Store(location).prepare()
    try:
        with store.readable_errors():
            yield store
    finally:
        store.close()
