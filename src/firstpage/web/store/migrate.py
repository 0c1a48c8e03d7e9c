"""Bring a database to the present tables, step by step (Alembic)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from firstpage.errors import DataError

if TYPE_CHECKING:
    from alembic.config import Config

    from firstpage.web.store.connect import Store

MIGRATION_LOCK = 7_205_759  # any number, the same for all servers of one PostgreSQL database
FOLDER = Path(__file__).parent / "migrations"


def upgrade(store: Store) -> None:
    """To the newest version; two servers that start at once do it one after the other."""
    have = present(store)
    if have == newest():
        return  # as always but once; Alembic need not be loaded
    from alembic import command

    if have is not None and have not in versions():
        raise DataError(
            f"{store.shown}: was written by a newer Firstpage (tables {have}); update this one."
        )
    config = settings()
    with store.write() as tx:
        if not store.sqlite:
            tx.connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        config.attributes["connection"] = tx.connection
        command.upgrade(config, "head")


def versions() -> list[str]:
    """Those that this program knows, oldest first: files are named by them."""
    return sorted(path.name.split("_")[0] for path in (FOLDER / "versions").glob("[0-9]*_*.py"))


def newest() -> str:
    return versions()[-1]


def present(store: Store) -> str | None:
    """The version of a database; None where it has no tables yet."""
    with store.read() as tx:
        if not inspect(tx.connection).has_table("alembic_version"):
            return None
        found: str | None = tx.value(text("SELECT version_num FROM alembic_version"))
        return found


def settings() -> Config:
    """Where Alembic finds the steps."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
