"""`firstpage sample`: draw the queries or documents that people judge, with probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.shared import note
from firstpage.cli.systems import duplicates_option
from firstpage.data.formats import SUFFIXES, QueryTable, format_of, read, read_run, write_run
from firstpage.data.io import suffix_of
from firstpage.evaluation.measures import expand_patterns
from firstpage.evaluation.planning import DocumentSample, QuerySample
from firstpage.search import read_queries


@documented_command(
    "sample",
    "firstpage sample robot.qrels --size 8 --seed 1 -o sample.csv",
    "firstpage sample bm25.run ours.run --documents 4 --depth 10 \\\n"
    "  --drawn drawn.run -o documents.csv",
)
@click.argument("files", nargs=-1, required=True, type=options.FILE, metavar="QUERIES | RUNS")
@options.integer("--size", show_default="all, with --documents", help="Number of queries to draw.")
@click.option(
    "--sizes",
    type=options.FILE,
    help="Table with the columns query and size; a query is drawn with a probability proportional "
    "to its size.",
)
@options.integer(
    "--documents",
    minimum=2,
    help="Draw N documents of each query from the first ranks of RUNS, so that people need not "
    "judge whole queries.",
)
@options.integer(
    "--depth",
    default=10,
    help="With --documents: number of first ranks of each run, the cut-off of the measure or more.",
)
@click.option(
    "--drawn",
    type=outputs.OutputFile("run"),
    help="With --documents: write the drawn documents as a run in random order, for `firstpage "
    "label setup --run`.",
)
@duplicates_option
@options.seed
@options.output("csv", required=True, help="File with probabilities and drawn (yes or no).")
def command(
    files: tuple[Path, ...],
    size: int | None,
    sizes: Path | None,
    documents: int | None,
    depth: int,
    drawn: Path | None,
    duplicates: Any,
    seed: int,
    output: Path,
) -> None:
    """Draw queries, or documents of queries, for people to judge.

    QUERIES is a file of queries, judgments or a run; all its queries can be drawn.  With
    --documents, give all RUNS that will be estimated.  `firstpage estimate` reads the sample.  Draw
    it before anybody judges, and judge everything that was drawn.
    """
    options.only_with("--documents", documents is not None, "depth", "drawn", "duplicates")
    if documents is None:
        if len(files) > 1 or size is None:
            raise click.UsageError("give one file and --size; or --documents N, to draw from RUNS.")
        table = None if sizes is None else QueryTable.read(sizes).numbers("size")
        sample = QuerySample.draw(_query_ids(files[0]), size, sizes=table, seed=seed)
        sample.write(output)
        note(f"{len(sample.drawn_queries)} of {len(sample.queries)} queries drawn (seed {seed}).")
        return
    options.only_with("queries without --documents", False, "sizes")
    runs = [read_run(file, duplicates=duplicates) for file in expand_patterns(files)]
    of_queries = DocumentSample.draw(runs, documents, depth=depth, size=size, seed=seed)
    of_queries.write(output)
    if drawn is not None:
        write_run(of_queries.drawn_documents, drawn)
    note(
        f"{int(of_queries.drawn.sum())} of {len(of_queries.drawn)} documents drawn, of "
        f"{len(of_queries.queries.drawn_queries)} of {len(of_queries.pool)} queries (seed {seed})."
    )


def _query_ids(path: Path) -> list[str]:
    """Return the ids of a file of queries, judgments or ranked documents."""
    if SUFFIXES.get(suffix_of(path)[0]) in ("qrels", "run", "letor"):
        kind = format_of(path)
        if kind in ("qrels", "run", "letor"):
            return list(read(path, kind).queries)

    return list(read_queries(path).ids)
