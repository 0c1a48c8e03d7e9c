"""`firstpage label backup` and `restore`: copies of a whole store, while it runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from firstpage.cli import options
from firstpage.cli.shared import note, open_store, with_web


@click.command("backup")
@click.argument("project")
@options.output("sqlite", "jsonl", required=True, help="File to write.")
@with_web
def command(project: str, output: Path) -> None:
    """Copy PROJECT (a folder or a database URL) while it may be in use.

    SQLite is copied as a database; PostgreSQL, or a file named .jsonl (.gz), as JSON lines.
    """
    from firstpage.web.store.backup import back_up

    with open_store(project) as store:
        kind = back_up(store, output)
    print(f"wrote {output} ({kind})", file=sys.stderr)


@click.command("restore")
@click.argument("backup", type=options.FILE)
@click.argument("project")
@with_web
def restore_command(backup: Path, project: str) -> None:
    """Read BACKUP into PROJECT, a new folder or an empty database."""
    if not backup.is_file():
        raise click.UsageError(f"{backup}: is no file.")
    from firstpage.web.store.backup import check, restore

    check(backup)  # nothing is made of a copy that is not whole
    with open_store(project, make=True) as store:
        restored = restore(backup, store)
    print(f"restored {restored.rows:,} rows into {project}", file=sys.stderr)
    if restored.links:
        ended = f"{restored.links} open links of the copy have ended"
        note(f"{ended}; `firstpage label link` makes new ones.")
