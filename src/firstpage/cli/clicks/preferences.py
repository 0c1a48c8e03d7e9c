"""`firstpage clicks preferences`: preferences between displayed lists, for `dcglearn learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.clicks.log_options import log_options, query_option, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import preferences
from firstpage.evaluation.dcglearn import write_preferences


@documented_command(
    "preferences",
    "firstpage clicks preferences clicks.log --qrels people.qrels -o lists.jsonl",
)
@log_options
@query_option
@click.option(
    "--qrels", type=options.FILE, required=True, metavar="QRELS", help="Grades of the documents."
)
@options.integer("--depth", default=10, help="Number of ranks that count.")
@options.integer(
    "--lists", default=20, minimum=2, help="Largest number of different lists per query."
)
@options.output("jsonl", "npz", required=True, help="Write the preferences to this file.")
def command(qrels: Path, output: Path, **values: Any) -> None:
    """Turn clicks into preferences between displayed lists.

    Lists of grades of one query are compared by their clicks per page; the weight of a preference
    says how certain it is.  `firstpage dcglearn learn` learns gains and discounts from the file.
    """
    grades = shared.read_qrels_option(qrels)
    assert grades is not None
    sessions = read_log(values)
    with shared.status_line("comparing lists"):
        pairs = preferences(sessions, grades, **values)
    write_preferences(pairs, output)
    shared.note(
        f"wrote {output}: {len(pairs):,} pairs of lists, whose preferences have a mean weight of "
        f"{pairs.weight.mean():.2f}; learn from it by: firstpage dcglearn learn {output}"
    )
