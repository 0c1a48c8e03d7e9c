"""`firstpage label import`: record the ratings of another program as judgments."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.label.setup import check_text
from firstpage.cli.shared import note
from firstpage.core import FirstpageWarning
from firstpage.interop.read import read_quepid
from firstpage.labeling.app import imports
from firstpage.labeling.app import store as stores


@documented_command("import", "firstpage label import shop quepid.csv --login quepid")
@click.argument("project")
@click.argument("file", type=options.FILE)
@click.option(
    "--login",
    default="quepid",
    metavar="LOGIN",
    help="Assessor as whom the ratings are recorded; the account is created.",
)
@click.option("--name", metavar="SLUG", help="Project to change, if the store has several.")
@with_web
def command(project: str, file: Path, login: str, name: str | None) -> None:
    """Record ratings of Quepid as judgments of an assessor.

    PROJECT is a folder or a database URL; FILE is Quepid's CSV with the columns query, docid and
    rating.  The project has the tool grades, with the scale of the ratings, and contains the
    queries and documents; agreement, truth and exports then count the ratings like any other
    judgment.
    """
    check_text("--login", login)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)  # rows without a rating are usual
        ratings = read_quepid(file).to_dict()
    with open_store(project) as store:
        with store.read() as tx:
            chosen = stores.find_project(tx, name)
        imported = imports.import_ratings(store, chosen, login, ratings)
    print(f"{imported.ratings} ratings of {imported.queries} queries, recorded as {login!r}.")
    for remark in imported.notes():
        note(remark)
