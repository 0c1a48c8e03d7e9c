"""Open the store that a command line names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.errors import DataError, need

if TYPE_CHECKING:
    from firstpage.web.store.connect import Store


PACKAGES = ("fastapi", "sqlalchemy", "alembic", "uvicorn", "argon2", "multipart", "jinja2")


def web() -> None:
    """One line that says what to install, where something is missing."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise need(package, "web", "The labelling application")


@contextmanager
def opened(where: str, make: bool = False) -> Iterator[Store]:
    """The store, ready; one that is not there is made only if `make` says so."""
    web()
    from firstpage.web.store.connect import FILE, Store

    if not make and "://" not in where and not (Path(where) / FILE).is_file():
        raise DataError(
            f"{where}: holds no labelling project; make one with: firstpage label setup"
        )
    store = Store(where).prepare()
    try:
        with store.told():
            yield store
    finally:
        store.close()
