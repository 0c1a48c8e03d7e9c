"""`firstpage label simulate`: what a strategy costs and finds, before anybody is asked."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.shared import note

if TYPE_CHECKING:
    from firstpage.labeling.simulation.simulate import Simulation
    from firstpage.labeling.simulation.votes import Votes
    from firstpage.types import Progress

RUNS, RUNS_OF_VOTES = 2000, 30


@click.command("simulate")
@click.option(
    "--strategy", "strategies", multiple=True, metavar="NAME",
    help="adaptive, heap, heap-memo, heap-closure, tournament, insertion, quick-sort, "
    "select-best or five-grade; may be repeated. [adaptive]",
)  # fmt: skip
@options.whole("--n", default=50, help="Documents.")
@options.whole("--k", default=10, help="Places sought.")
@options.whole("--runs", help=f"[{RUNS}; {RUNS_OF_VOTES} a query with --votes]")
@click.option("--noise", default=0.0, show_default=True, help="Chance of a wrong answer.")
@click.option("--ties", default=0.0, show_default=True, help="Share of documents equally bad.")
@options.whole("--grades", help="Merit has only so many levels.")
@click.option("--prior-tau", type=float, help="Kendall's tau of a prior order with the truth.")
@click.option("--votes", type=options.FILE, help="Recorded votes of people: CSV.")
@click.option(
    "--equal", type=click.Choice(["tie", "coin"]), default="tie", show_default=True,
    help="What a recorded 'equal' answers.",
)  # fmt: skip
@options.whole("--budget", "budgets", multiple=True, help="Questions at most; may be repeated.")
@options.whole(
    "--refine", default=0, least=0, help="More questions near the k-th place after the strategy."
)
@options.seed
@options.as_json
@click.option(
    "--html", type=outputs.OutputFile("html"), help="Write a page with the quality over budgets."
)
def command(
    strategies: tuple[str, ...], votes: Path | None, runs: int | None, budgets: tuple[int, ...],
    as_json: bool, html: Path | None, **given: Any,
) -> None:  # fmt: skip
    """Rehearse labeling strategies: how many questions they ask, and how much they find.

    On made-up queries of --n documents, or on recorded votes of real people: each question is
    answered by one of those who judged that pair.
    """
    from firstpage.labeling.strategies.registry import strategy

    made_up = "made-up queries, not with --votes"
    options.only_with(made_up, votes is None, "n", "noise", "ties", "grades", "prior_tau")
    options.only_with("--votes", votes is not None, "equal")
    chosen = strategies or ("adaptive",)
    for name in chosen:
        strategy(name)
    recorded = _votes(votes)
    runs = runs or (RUNS if recorded is None else RUNS_OF_VOTES)
    asked: list[int | None] = [*sorted(set(budgets))] or [None]
    found: list[tuple[int | None, Simulation]] = []
    for name in chosen:
        with shared.counting(name) as progress:
            results = _simulated(name, recorded, runs, asked, given, progress)
        found += list(zip(asked, results, strict=True))
    if as_json:
        print(json.dumps(_as_dict(found), indent=2))
    else:
        print(_table(found, recorded).text())
    if html is not None:
        from firstpage.report.labeling import simulation_page

        outputs.deliver(simulation_page(found, _table(found, recorded)), html)


def _votes(path: Path | None) -> list[Votes] | None:
    if path is None:
        return None
    from firstpage.labeling.simulation.votes import read_votes

    found = read_votes(path)
    pairs = sum(comb(len(query.documents), 2) for query in found)
    unasked = pairs - sum(len(query.outcomes) for query in found)
    if unasked:
        note(f"{unasked} of {pairs} pairs in {path} have no vote; they are answered as ties.")
    return found


def _simulated(
    name: str, votes: list[Votes] | None, runs: int, budgets: list[Any], given: dict[str, Any],
    progress: Progress | None,
) -> list[Simulation]:  # fmt: skip
    from firstpage.labeling.simulation.simulate import SimulatedQueries, simulate
    from firstpage.labeling.strategies.adaptive import Refined
    from firstpage.labeling.strategies.registry import strategy

    how = Refined(strategy(name), given["refine"]) if given["refine"] else strategy(name)
    queries = SimulatedQueries(
        given["n"], given["noise"], given["ties"], given["grades"], given["prior_tau"]
    )
    return simulate(
        how, given["k"], queries=queries, votes=votes, runs=runs, budgets=budgets,
        equal=given["equal"], seed=given["seed"], progress=progress, name=name,
    )  # fmt: skip


def _as_dict(found: list[tuple[int | None, Simulation]]) -> dict[str, Any]:
    """One result is itself; several are a list."""
    rows = [{**result.to_dict(), "budget": budget} for budget, result in found]
    return rows[0] if len(rows) == 1 else {"results": rows}


def _table(found: list[tuple[int | None, Simulation]], votes: list[Votes] | None) -> Any:
    from firstpage.table import Table

    k = found[0][1].k
    head = ["strategy", "budget", "questions", "sd", "recall", "se", f"kNDCG@{k}", "se"]
    rows = []
    for budget, result in found:
        values = result.to_dict()
        rows.append([
            result.strategy, "-" if budget is None else str(budget),
            f"{values['mean']:.1f}", f"{values['sd']:.1f}",
            f"{values['recall']:.3f}", f"{values['recall_se']:.3f}",
            *(f"{values[key]:.3f}" if key in values else "-" for key in (f"kNDCG@{k}", "kndcg_se")),
        ])  # fmt: skip
    runs = len(found[0][1].question_counts)
    what = "made-up queries" if votes is None else f"runs over {len(votes)} queries with votes"
    return Table(head, rows, note=f"{runs} {what}; se: standard error of the mean")
