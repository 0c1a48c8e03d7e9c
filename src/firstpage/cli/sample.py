"""`firstpage sample`: draw the queries that people judge, with their probabilities."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.cli.shared import note
from firstpage.data.formats import SUFFIXES, QueryTable, format_of, read
from firstpage.data.io import suffix_of
from firstpage.evaluation.planning import QuerySample
from firstpage.search import read_queries


@documented_command("sample", "firstpage sample robot.qrels --size 8 --seed 1 -o sample.csv")
@click.argument("queries", type=options.FILE)
@options.integer("--size", required=True, help="Number of queries to draw.")
@click.option(
    "--sizes",
    type=options.FILE,
    help="Table with the columns query and size; a query is drawn with a probability proportional "
    "to its size.",
)
@options.seed
@options.output("csv", required=True, help="File with query, probability and drawn (yes or no).")
def command(queries: Path, size: int, sizes: Path | None, seed: int, output: Path) -> None:
    """Draw a random sample of queries for people to judge.

    QUERIES is a file of queries, judgments or a run; all its queries can be drawn.  `firstpage
    estimate` reads the sample.  Draw it before anybody judges, and judge every drawn query.
    """
    table = None if sizes is None else QueryTable.read(sizes).numbers("size")
    sample = QuerySample.draw(_query_ids(queries), size, sizes=table, seed=seed)
    sample.write(output)
    note(f"{len(sample.drawn_queries)} of {len(sample.queries)} queries drawn (seed {seed}).")


def _query_ids(path: Path) -> list[str]:
    """Return the ids of a file of queries, judgments or ranked documents."""
    if SUFFIXES.get(suffix_of(path)[0]) in ("qrels", "run", "letor"):
        kind = format_of(path)
        if kind in ("qrels", "run", "letor"):
            return list(read(path, kind).queries)

    return list(read_queries(path).ids)
