"""`firstpage label backup` and `restore`: copies of a project's store while it is in use."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.shared import note
from firstpage.labeling.app import store as stores


@documented_command("backup", "firstpage label backup shop -o shop.backup")
@click.argument("project")
@options.output("sqlite", "jsonl", required=True, help="File to write.")
@with_web
def command(project: str, output: Path) -> None:
    """Back up a project while it is in use.

    PROJECT is a folder or a database URL.  SQLite is copied as a database; PostgreSQL, or any
    store if the file is named .jsonl or .jsonl.gz, as JSON lines.
    """
    if output.is_dir():
        raise click.UsageError(f"-o {output}: is a folder; name a file in it.")

    with open_store(project) as store:
        kind = stores.back_up(store, output)
    print(f"wrote {output} ({kind})", file=sys.stderr)


@documented_command("restore", "firstpage label restore shop.backup elsewhere")
@click.argument("backup", type=options.FILE)
@click.argument("project")
@with_web
def restore_command(backup: Path, project: str) -> None:
    """Restore a backup into a new project.

    PROJECT is a new folder or the URL of an empty database.
    """
    if not backup.is_file():
        raise click.UsageError(f"{backup}: is not a file.")

    stores.check(backup)  # an incomplete copy creates nothing
    with open_store(project, create=True) as store:
        restored = stores.restore(backup, store)
    print(f"restored {restored.rows:,} rows into {project}", file=sys.stderr)
    if restored.links:
        note(
            f"{restored.links} open links of the backup have expired; `firstpage label link` "
            "creates new ones."
        )
