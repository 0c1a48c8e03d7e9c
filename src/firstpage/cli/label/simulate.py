"""`firstpage label simulate`: simulate labeling strategies before anyone is asked."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.cli.shared import note
from firstpage.core import Progress, Table
from firstpage.labeling import (
    Refined,
    SimulatedQueries,
    Simulation,
    Votes,
    read_votes,
    simulate,
    simulation_page,
    strategy,
)

DEFAULT_RUNS, DEFAULT_RUNS_PER_QUERY = 2000, 30
PRIOR_KEYS = ("prior_ndcg", "prior_ndcg_complete")
BudgetResult = tuple[int | None, "Simulation"]


@documented_command(
    "simulate",
    "firstpage label simulate --strategy heap --strategy tournament --runs 200",
    "firstpage label simulate --votes votes.csv --k 3 --budget 20",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    show_default="adaptive",
    help="adaptive, heap, heap-memo, heap-closure, tournament, insertion, quick-sort, "
    "select-best, pools, duels or five-grade; may be repeated.",
)
@options.integer("--n", default=50, help="Documents per query.")
@options.integer("--k", default=10, help="Number of top ranks to find.")
@options.integer(
    "--runs",
    show_default=f"{DEFAULT_RUNS}; {DEFAULT_RUNS_PER_QUERY} per query with --votes",
    help="Number of simulated runs.",
)
@click.option("--noise", default=0.0, metavar="P", help="Probability of a wrong answer.")
@click.option(
    "--ties", default=0.0, metavar="X", help="Fraction of documents that are equally bad."
)
@options.integer("--grades", show_default="no ties", help="Number of levels of relevance.")
@click.option(
    "--prior-tau",
    type=float,
    metavar="TAU",
    show_default="no prior",
    help="Kendall's tau of a prior order with the truth.",
)
@click.option(
    "--votes", type=options.FILE, help="Recorded votes of people (CSV), instead of random queries."
)
@click.option(
    "--equal-votes",
    type=click.Choice(["tie", "random"]),
    default="tie",
    help="With --votes: the answer where a recorded vote is 'equal': a tie, or a random side.",
)
@options.integer(
    "--budget",
    "budgets",
    multiple=True,
    show_default="no limit",
    help="Limit on questions per query; may be repeated.",
)
@options.integer(
    "--refine",
    default=0,
    minimum=0,
    help="Additional questions near the k-th rank after the strategy.",
)
@options.seed
@options.as_json
@options.html("Write a page with a chart of quality over budget to this file.")
def command(
    strategies: tuple[str, ...],
    votes: Path | None,
    runs: int | None,
    budgets: tuple[int, ...],
    as_json: bool,
    html: Path | None,
    **settings: Any,
) -> None:
    """Simulate the cost and quality of labeling strategies.

    Shows how many questions each strategy asks, and how much of the true top it finds: on random
    queries of --n documents, or on recorded votes of people, where each question is answered by
    one of those who judged that pair.
    """
    condition = "random queries, not with --votes"
    options.only_with(condition, votes is None, "n", "noise", "ties", "grades", "prior_tau")
    options.only_with("--votes", votes is not None, "equal_votes")
    if votes is None and settings["k"] > settings["n"]:
        raise click.UsageError(
            f"--k {settings['k']} is more than the {settings['n']} documents (--n)."
        )
    names = strategies or ("adaptive",)
    for name in names:
        strategy(name)
    recorded = _read_votes(votes)
    runs = runs or (DEFAULT_RUNS if recorded is None else DEFAULT_RUNS_PER_QUERY)
    limits: list[int | None] = [*sorted(set(budgets))] or [None]
    results: list[BudgetResult] = []
    for name in names:
        with shared.progress_bar(name) as progress:
            simulations = _simulate(name, recorded, runs, limits, settings, progress)
        results += list(zip(limits, simulations, strict=True))
    if as_json:
        print(json.dumps(_to_dict(results), indent=2))
    else:
        print(_table(results, recorded).text())
    if html is not None:
        outputs.write_text(simulation_page(results, _table(results, recorded)), html)


def _read_votes(path: Path | None) -> list[Votes] | None:
    if path is None:
        return None

    votes = read_votes(path)
    pairs = sum(comb(len(query.documents), 2) for query in votes)
    missing = pairs - sum(len(query.outcomes) for query in votes)
    if missing:
        note(f"{missing} of {pairs} pairs in {path} have no vote; they are answered as ties.")
    return votes


def _simulate(
    name: str,
    votes: list[Votes] | None,
    runs: int,
    budgets: list[Any],
    settings: dict[str, Any],
    progress: Progress | None,
) -> list[Simulation]:
    """Return a simulation of a strategy per budget."""
    simulated = strategy(name)
    if settings["refine"]:
        simulated = Refined(simulated, settings["refine"])
    queries = SimulatedQueries(
        *(settings[key] for key in ("n", "noise", "ties", "grades", "prior_tau"))
    )
    return simulate(
        simulated,
        settings["k"],
        queries=queries,
        votes=votes,
        runs=runs,
        budgets=budgets,
        equal_votes=settings["equal_votes"],
        seed=settings["seed"],
        progress=progress,
        name=name,
    )


def _to_dict(results: list[BudgetResult]) -> dict[str, Any]:
    """Return a single result itself, or several results as a list."""
    rows = [{**simulation.to_dict(), "budget": budget} for budget, simulation in results]
    return rows[0] if len(rows) == 1 else {"results": rows}


def _table(results: list[BudgetResult], votes: list[Votes] | None) -> Table:
    k = results[0][1].k
    head = ["strategy", "budget", "questions", "sd", "recall", "se", f"kNDCG@{k}", "se"]
    with_prior = results[0][1].prior_ndcg is not None
    head += ["prior NDCG", "complete"] if with_prior else []
    rows = []
    for budget, simulation in results:
        values = simulation.to_dict()
        rows.append(
            [
                simulation.strategy,
                "-" if budget is None else str(budget),
                f"{values['mean_questions']:.1f}",
                f"{values['sd_questions']:.1f}",
                f"{values['recall']:.3f}",
                f"{values['recall_se']:.3f}",
                *(_decimals(values.get(key)) for key in (f"kNDCG@{k}", "kndcg_se")),
                *(_decimals(values[key]) for key in PRIOR_KEYS if with_prior),
            ]
        )
    runs = len(results[0][1].question_counts)
    kind = "random queries" if votes is None else f"runs over {len(votes)} queries with votes"
    meaning = f"{runs} {kind}; se: standard error of the mean"
    if with_prior:
        meaning += (
            f"; prior NDCG: NDCG@{k} of the prior order by these labels, and by complete ones"
        )
    return Table(head, rows, note=meaning)


def _decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
