"""`firstpage dcglearn compare`: two measures on the same runs, and how far verdicts go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared


@click.command("compare")
@click.argument("given", nargs=-1, metavar="MEASURE MEASURE [DATA]")
@click.option("--qrels", type=options.FILE, help="Judgments in TREC form, instead of DATA.")
@click.option(
    "--run", "--runs", "runs", type=options.FILE, multiple=True, help="A run in TREC form; repeat."
)
@click.option("--scores", type=options.FILE, multiple=True, help="Scores of DATA; repeat it.")
@click.option("--baseline", metavar="NAME", help="Judge all against this one; else every pair.")
@click.option(
    "--vary",
    type=click.Choice(["gains", "discounts", "both", "weights"]),
    help="What may differ from the first MEASURE; weights: of every place and grade.  [both]",
)
@click.option(
    "--within", type=float, metavar="F", help="Also decide for all steps within this factor."
)
@click.option("--any-discounts", is_flag=True, help="Discounts need not fall with the place.")
@options.whole(
    "--effort",
    default=100,
    help="Boxes that a proof for NDCG may ask: more take longer and prove more.",
)
@options.whole("--bins", default=10, help="Of differences.")
@click.option(
    "--convention",
    default="default",
    show_default=True,
    metavar="NAME",
    help="default, trec or letor: what the measures mean.",
)
@click.option("--ties", metavar="RULE", help="average, file, docid, shuffle or worst.")
@click.option("--queries", metavar="WHICH", help="judged: all judged queries; run: those it has.")
@options.seed
@options.as_json
@options.output(*outputs.PAGES, help="Write here: .txt, .json or .html.")
def command(given: tuple[str, ...], as_json: bool, output: Path | None, **asked: Any) -> None:
    """Compare two measures (DCG, NDCG, measure files) on the same rankings.

    How often the two agree on which list is better; and for each pair of systems, whether the
    first MEASURE's verdict stands for all gains that rise with the grade and all discounts that
    fall with the place, or by what factor they may move before it flips.

    Rankings are --qrels with several --run, or DATA with several --scores.
    """  # fmt: skip
    from firstpage.dcglearn.system_rankings import parse_dcg

    shown = outputs.chosen_format(None, as_json, output, outputs.PAGES)
    if len(given) < 2:
        raise click.UsageError("name two measures, such as NDCG@10 'DCG(gain=linear)@10'.")
    measures = (
        parse_dcg(given[0]),
        parse_dcg(given[1]),
    )  # a misspelled one is said before files are read
    systems, truth = _read([Path(name) for name in given[2:]], asked)
    coherence, verdicts = _found(measures, systems, truth, asked)
    outputs.deliver(_rendered(coherence, verdicts, shown), output)


def _read(files: list[Path], asked: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Systems by name, and the truth.  Files after an option's first one are more of its kind."""
    runs, scores, qrels = asked["runs"], asked["scores"], asked["qrels"]
    if bool(runs) == bool(scores):
        raise click.UsageError("give several rankings, all as --run or all as --scores.")
    data = files.pop(0) if qrels is None and files else None
    every = [*(runs or scores), *files]
    if len(every) < 2:
        raise click.UsageError("there is one ranking only; give at least two.")
    truth: Any = shared.read_truth(data, qrels)
    systems = shared.named_systems(every, truth, bool(runs))
    return systems, shared.as_qrels(truth) if runs else truth


def _found(measures: Any, systems: dict[str, Any], truth: Any, asked: dict[str, Any]) -> Any:
    from firstpage.dcglearn.certificates.verdicts import verdicts_of_rankings
    from firstpage.dcglearn.coherence import coherence_of_rankings
    from firstpage.dcglearn.system_rankings import SystemRankings
    from firstpage.measures.measure import convention

    settings = {name: asked[name] for name in ("ties", "queries", "seed")}
    depth = max(measure.depth for measure in measures)
    how = convention(asked["convention"], **settings)
    ranked = SystemRankings.from_systems(systems, truth, how, depth=depth)
    one, two = (ranked.bind(m) for m in measures)
    with shared.counting("certificates") as progress:
        verdicts = verdicts_of_rankings(
            ranked, one, shared.full_name(asked["baseline"], systems), asked["vary"],
            asked["within"], not asked["any_discounts"], asked["effort"], progress,
        )  # fmt: skip
    return coherence_of_rankings(ranked, one, two, asked["bins"]), verdicts


def _rendered(coherence: Any, verdicts: Any, shown: str) -> str:
    from firstpage.report.coherence import coherence_page, coherence_text

    if shown == "json":
        held = {**coherence.to_dict(), "verdicts": [v.to_dict() for v in verdicts]}
        return json.dumps(held, indent=2, ensure_ascii=False, allow_nan=False)
    made = coherence_page if shown == "html" else coherence_text
    return made(coherence, verdicts)
