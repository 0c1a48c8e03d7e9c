"""Bring a database to the present tables, step by step (Alembic)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

from firstpage.errors import DataError
from firstpage.web.store.connect import MIGRATION_LOCK, Store

if TYPE_CHECKING:
    from alembic.config import Config

FOLDER = Path(__file__).parent / "migrations"


def upgrade(store: Store) -> None:
    """To the newest version; two servers that start at once do it one after the other."""
    from alembic import command
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = settings()
    scripts = ScriptDirectory.from_config(config)
    with store.read() as tx:
        have = MigrationContext.configure(tx.connection).get_current_revision()
    if have == scripts.get_current_head():
        return
    if have is not None and have not in {step.revision for step in scripts.walk_revisions()}:
        raise DataError(
            f"{store.shown}: was written by a newer Firstpage (tables {have}); update this one."
        )
    with store.write() as tx:
        if not store.sqlite:
            tx.connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        config.attributes["connection"] = tx.connection
        command.upgrade(config, "head")


def settings() -> Config:
    """Where Alembic finds the steps."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
