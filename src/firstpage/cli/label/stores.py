"""Open the store that a command line names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.cli.label.needs import web
from firstpage.errors import DataError

if TYPE_CHECKING:
    from firstpage.web.store.connect import Store


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
