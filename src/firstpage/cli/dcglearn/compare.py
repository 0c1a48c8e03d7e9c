"""`firstpage dcglearn compare`: compare two measures on the same rankings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option, ranking_options, read_convention
from firstpage.evaluation.dcglearn import (
    SystemRankings,
    coherence_of_rankings,
    parse_dcg,
    verdicts_of_rankings,
)
from firstpage.interop.report import coherence_page, coherence_text


@documented_command(
    "compare",
    "firstpage dcglearn compare DCG@10 NDCG@10 test.qrels ours.run bm25.run \\\n"
    "  --within 1.5 -o verdicts.html",
    "firstpage dcglearn compare NDCG@10 'NDCG(measure.json)@10' test.txt \\\n"
    "  --scores ours.scores --scores theirs.scores",
)
@click.argument("arguments", nargs=-1, metavar="MEASURE MEASURE [DATA] [RUNS]")
@ranking_options
@duplicates_option
@click.option(
    "--baseline",
    metavar="NAME",
    show_default="every pair",
    help="Compare all rankings with this one, by its run tag or file name.",
)
@click.option(
    "--vary",
    type=click.Choice(["gains", "discounts", "both", "weights"]),
    show_default="both",
    help="What may differ from the first MEASURE; weights: of each rank and grade.",
)
@click.option(
    "--within", type=float, metavar="X", help="Also decide for all steps within this factor."
)
@click.option(
    "--any-discounts", is_flag=True, help="Allow discounts that do not fall with the rank."
)
@options.integer(
    "--max-boxes",
    default=100,
    help="Limit on boxes per proof for NDCG; more take longer and prove more.",
)
@options.integer("--bins", default=10, help="Number of bins of score differences.")
@options.convention
@options.ties
@options.queries
@options.seed
@options.as_json
@options.output(*outputs.PAGES, help="Write to this file: .txt, .json or .html.")
def command(
    arguments: tuple[str, ...], as_json: bool, output: Path | None, **settings: Any
) -> None:
    """Compare two measures on the same rankings.

    MEASURE is a DCG, an NDCG or a measure file.  Give judgments with several RUNS, or DATA with
    several --scores, as for `firstpage compare`.

    Shows how often the two measures agree on which list is better.  For each pair of systems,
    shows whether the verdict of the first MEASURE holds for all gains that rise with the grade
    and all discounts that fall with the rank, or by what factor they may change before it flips.
    """
    kind = outputs.report_format(None, as_json, output, outputs.PAGES)
    if len(arguments) < 2:
        raise click.UsageError("name two measures, such as NDCG@10 'DCG(gain=linear)@10'.")
    # a misspelled measure is an error before any file is read
    measures = parse_dcg(arguments[0]), parse_dcg(arguments[1])
    rankings = RankingFiles.from_command_line(
        [Path(name) for name in arguments[2:]], *map(settings.pop, ("qrels", "runs", "scores"))
    )
    if rankings.count < 2:
        raise click.UsageError("give at least two rankings, all as --scores or all as runs.")
    options.only_with("--run or RUNS", bool(rankings.runs), "queries", "duplicates")
    truth = rankings.read_truth()
    systems = rankings.read_systems(truth, settings.pop("duplicates"))
    settings["baseline"] = rankings.baseline_name(settings["baseline"], systems)
    coherence, verdicts = _compare(measures, systems, truth, settings)
    outputs.write_text(_render(coherence, verdicts, kind), output)


def _compare(measures: Any, systems: dict[str, Any], truth: Any, settings: dict[str, Any]) -> Any:
    """Return the coherence of the two measures, and the verdicts of the first."""
    depth = max(measure.depth for measure in measures)
    ranked = SystemRankings.from_systems(systems, truth, read_convention(settings), depth=depth)
    first, second = (ranked.bind(measure) for measure in measures)
    with shared.progress_bar("certificates") as progress:
        verdicts = verdicts_of_rankings(
            ranked,
            first,
            settings["baseline"],
            settings["vary"],
            settings["within"],
            not settings["any_discounts"],
            settings["max_boxes"],
            progress,
        )
    return coherence_of_rankings(ranked, first, second, settings["bins"]), verdicts


def _render(coherence: Any, verdicts: Any, kind: str) -> str:
    if kind == "json":
        record = {**coherence.to_dict(), "verdicts": [v.to_dict() for v in verdicts]}
        return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    render = coherence_page if kind == "html" else coherence_text
    return render(coherence, verdicts)
