"""`firstpage estimate`: measures from few human and many machine judgments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option
from firstpage.data.formats import write_qrels
from firstpage.evaluation.measures import read_truth
from firstpage.evaluation.planning import combine, estimate


@documented_command(
    "estimate",
    "firstpage estimate bm25.run ours.run --sample sample.csv \\\n"
    "  --human test.qrels --machine robot.qrels -m NDCG@10",
    "firstpage estimate --human test.qrels --machine robot.qrels \\\n"
    "  --machine clicks.qrels --combined all.qrels",
)
@click.argument("runs", nargs=-1, type=options.FILE, metavar="[RUNS]")
@click.option("--human", type=options.FILE, required=True, help="Judgments of people.")
@click.option(
    "--machine",
    "machines",
    type=options.FILE,
    required=True,
    multiple=True,
    help="Judgments of the machine. May be repeated: several machines, and clicks "
    "(`firstpage clicks judge`), are combined with weights learned where people judge too.",
)
@click.option(
    "--sample",
    type=options.FILE,
    help="Sample that people judged, from `firstpage sample`; required with RUNS.",
)
@click.option(
    "--combined",
    type=outputs.OutputFile("qrels"),
    help="Write the judgments of people, and those predicted from several --machine elsewhere, as "
    "one file to train on. RUNS are not needed for it.",
)
@duplicates_option
@options.measures("Measure to estimate; may be repeated. NDCG@10 if there is none.")
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
    help="What the intervals are about: the population that the queries come from, or these "
    "queries.",
)
@click.option("--level", default=0.95, metavar="NUMBER", help="Confidence level.")
@options.convention
@options.table_options("Write the estimates to this file.")
def command(
    runs: tuple[Path, ...],
    human: Path,
    machines: tuple[Path, ...],
    sample: Path | None,
    combined: Path | None,
    duplicates: str,
    measures: tuple[str, ...],
    baseline: str | None,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    **settings: Any,
) -> None:
    """Estimate measures from few human judgments.

    RUNS are ranked documents.  People judge a random sample of the queries, or of the documents of
    queries (for measures such as P and DCG), a machine judges all of them.  The machine's errors on
    the sample correct its means, so the intervals are valid however wrong it is.  Without RUNS,
    judgments of several sources become one file (--combined), which is for training: its grades of
    judged queries are the human ones, so it cannot be the --machine.
    """
    kind = outputs.report_format(format_, as_json, output, outputs.TABLES)
    if not runs:
        if combined is None:
            raise click.UsageError("give RUNS to measure, or --combined to write judgments.")
        only_for_runs = ("sample", "measures", "baseline", "machine_weight", "target", "level")
        options.only_with("RUNS", False, *only_for_runs)
    if combined is not None:
        _combine(human, machines, combined, None if runs else kind, output)
    if not runs:
        return
    if sample is None:
        raise click.UsageError("RUNS are measured with the --sample that people judged.")
    rankings = RankingFiles.from_command_line(runs, human, ())
    truth = rankings.read_truth()
    systems = rankings.read_systems(truth, duplicates)
    result = estimate(
        systems,
        truth,
        [read_truth(machine) for machine in machines],
        sample,
        measures=measures or "NDCG@10",
        baseline=rankings.baseline_name(baseline, systems),
        **settings,
    )
    if kind == "text":
        outputs.write_text(str(result), output)
    else:
        outputs.write_table(result, kind, output)


def _combine(
    human: Path, machines: tuple[Path, ...], combined: Path, kind: str | None, output: Path | None
) -> None:
    """Write the judgments of all sources as one file; without runs, also report the weights."""
    combination = combine(human, machines)
    write_qrels(combination.qrels(), combined)
    shared.note(f"wrote {combined}; train on it by: firstpage train DATA --qrels {combined}")
    if kind is not None:
        outputs.write_table(combination, kind, output)
