"""`firstpage estimate`: measures from few human and many machine judgments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option
from firstpage.core import NOTATIONS
from firstpage.evaluation.measures import read_truth
from firstpage.evaluation.planning import estimate

FORMATS = ("text", "json", "csv", "markdown", "latex")


@documented_command(
    "estimate",
    "firstpage estimate bm25.run ours.run --sample sample.csv \\\n"
    "  --human test.qrels --machine robot.qrels -m NDCG@10",
)
@click.argument("runs", nargs=-1, required=True, type=options.FILE, metavar="RUNS")
@click.option("--human", type=options.FILE, required=True, help="Judgments of people.")
@click.option("--machine", type=options.FILE, required=True, help="Judgments of the machine.")
@click.option(
    "--sample",
    type=options.FILE,
    required=True,
    help="Sample that people judged, from `firstpage sample`.",
)
@duplicates_option
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Measure to estimate; may be repeated. NDCG@10 if there is none.",
)
@click.option("--baseline", metavar="NAME", help="System that all others are compared with.")
@click.option(
    "--machine-weight",
    type=float,
    metavar="NUMBER",
    show_default="tuned",
    help="Weight of the machine's values: 1 is plain prediction-powered inference, 0 uses people "
    "alone.",
)
@click.option(
    "--target",
    type=click.Choice(["population", "queries"]),
    default="population",
    show_default=True,
    help="What the intervals are about: the population that the queries come from, or these "
    "queries.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    metavar="NUMBER",
    help="Confidence level.",
)
@options.convention
@options.as_json
@options.report_format
@options.output(*FORMATS, help="Write the estimates to this file.")
def command(
    runs: tuple[Path, ...],
    human: Path,
    machine: Path,
    duplicates: str,
    measures: tuple[str, ...],
    baseline: str | None,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    **settings: Any,
) -> None:
    """Estimate measures from few human judgments.

    RUNS are ranked documents.  People judge a random sample of the queries, a machine judges all of
    them.  The machine's errors on the sample correct its means, so the intervals are valid however
    wrong it is.
    """
    kind = outputs.report_format(format_, as_json, output, FORMATS)
    rankings = RankingFiles.from_command_line(runs, human, ())
    truth = rankings.read_truth()
    systems = rankings.read_systems(truth, duplicates)
    result = estimate(
        systems,
        truth,
        read_truth(machine),
        measures=measures or "NDCG@10",
        baseline=rankings.baseline_name(baseline, systems),
        **settings,
    )
    if kind == "json":
        outputs.write_text(json.dumps(result.to_dict(), indent=2), output)
        return
    text = result.to_csv() if kind == "csv" else NOTATIONS[kind](result.summary_table())
    outputs.write_text(text, output)
