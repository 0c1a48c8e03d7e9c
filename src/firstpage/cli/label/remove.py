"""`firstpage label remove`: archive, restore or delete projects, queries and documents."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from firstpage.cli import outputs
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.label.setup import check_text, first_lead
from firstpage.core import DataError
from firstpage.data import encode_text
from firstpage.data.io import write_bytes
from firstpage.labeling.app import exports
from firstpage.labeling.app import store as stores

EXPORTS = ("log.jsonl", "truth.jsonl", "pool.jsonl")


@documented_command(
    "remove",
    "firstpage label remove shop --query q1 --query q2",
    "firstpage label remove shop --query q1 --restore",
    "firstpage label remove shop --delete --export shop-kept --yes",
)
@click.argument("project")
@click.option("--name", metavar="SLUG", help="Project to remove or change, if there are several.")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="ID",
    show_default="the whole project",
    help="Query to remove; may be repeated.",
)
@click.option(
    "--document",
    "documents",
    multiple=True,
    metavar="ID",
    help="With one --query that has no answer yet: document to remove; may be repeated.",
)
@click.option("--restore", is_flag=True, help="Restore what is archived.")
@click.option("--delete", is_flag=True, help="Delete for good, with all judgments.")
@click.option(
    "--export",
    "folder",
    type=outputs.OutputFile(),
    metavar="FOLDER",
    help="First write the log, the truth and the pool of the project to this folder.",
)
@click.option("--yes", is_flag=True, help="With --delete: confirm.")
@with_web
def command(
    project: str,
    name: str | None,
    queries: tuple[str, ...],
    documents: tuple[str, ...],
    restore: bool,
    delete: bool,
    folder: Path | None,
    yes: bool,
) -> None:
    """Archive, restore or delete a project, queries or documents.

    PROJECT is a folder or a database URL.  What is archived is hidden from assessors and left out
    of truth and exports; nothing of it is lost.
    """
    if restore and delete:
        raise click.UsageError("give --restore or --delete, not both.")
    if documents and len(queries) != 1:
        raise click.UsageError("--document needs one --query, whose documents they are.")
    if delete and not yes:
        raise click.UsageError(
            "--delete is for good; add --yes, and --export FOLDER to keep the judgments."
        )
    if yes and not delete:
        raise click.UsageError("--yes confirms --delete; nothing else needs it.")
    check_text("--query", *queries)
    check_text("--document", *documents)
    with open_store(project) as store:
        with store.read() as tx:
            target = stores.find_project(tx, name)
            by = first_lead(tx, target)
        if folder is not None:
            _export(store, target, folder)
        action: Literal["archive", "restore", "delete"]
        action = "delete" if delete else "restore" if restore else "archive"
        _change(store, target, action, queries, documents, by)
    print(f"{action}d {_target(target, queries, documents)}")


def _target(project: stores.Project, queries: tuple[str, ...], documents: tuple[str, ...]) -> str:
    if documents:
        noun = "document" if len(documents) == 1 else "documents"
        return f"{len(documents)} {noun} of query {queries[0]!r}"
    if queries:
        return f"{len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    return f"the project {project.slug!r}"


def _change(
    store: stores.Store,
    project: stores.Project,
    action: Literal["archive", "restore", "delete"],
    queries: tuple[str, ...],
    documents: tuple[str, ...],
    by: stores.Person | None,
) -> None:
    """Archive, restore or delete; what is deleted is archived first."""
    archive = stores.archive
    steps: tuple[Literal["archive", "restore", "delete"], ...] = (action,)
    if action == "delete":
        steps = ("archive", "delete")
    for step in steps if queries and not documents else ():
        archive.change_queries(store, project, queries, step, by)
    with store.write() as tx:
        for step in steps if documents else ():
            archive.change_documents(tx, project, queries[0], documents, step, by)
        if not queries:
            change = archive.restore_project if action == "restore" else archive.archive_project
            project = change(tx, project, by)
    if action == "delete" and not queries:
        archive.delete_project(store, project, by)


def _export(store: stores.Store, project: stores.Project, folder: Path) -> None:
    """Write the log, the truth and the pool of a project; files that exist are not replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXPORTS:
        path = folder / f"{project.slug}-{name}"
        if path.exists():
            raise DataError(f"{path}: exists already; name another folder.")
        with store.read() as tx, write_bytes(path) as out:
            for chunk in exports.export(tx, project, name):
                out.write(encode_text(chunk))
