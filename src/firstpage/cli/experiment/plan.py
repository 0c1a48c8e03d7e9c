"""`firstpage experiment plan`: how many sessions an experiment needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.clicks.log_options import log_options, query_option, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import click_model, plan_experiment
from firstpage.data.formats import read_run


@documented_command(
    "plan",
    "firstpage experiment plan clicks.log --runs current.run next.run",
)
@log_options
@query_option
@click.option(
    "--runs",
    type=options.FILE,
    nargs=2,
    required=True,
    metavar="FIRST SECOND",
    help="The two rankings (runs) of queries of the log.",
)
@click.option(
    "-m",
    "--model",
    default="PBM",
    show_default=True,
    metavar="MODEL",
    help="Click model of the simulated people, fitted to LOG.",
)
@options.integer("--sessions", default=20_000, help="Simulated sessions per design.")
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, metavar="P", help="Level of the test."
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    metavar="P",
    help="Probability that the difference is found.",
)
@options.seed
@options.as_json
def command(
    runs: tuple[Path, Path], model: str, sessions: int, as_json: bool, **values: Any
) -> None:
    """Compute how many sessions it takes to decide between two rankings.

    Interleaving (team draft) and an A/B test are simulated with a click model of LOG.  One look is
    a test at the end; all looks is a confidence sequence, which may be looked at daily.
    """
    chosen = {name: values.pop(name) for name in ("alpha", "power", "seed")}
    parsed, first, second = click_model(model), read_run(runs[0]), read_run(runs[1])
    log = read_log(values)
    with shared.progress_bar("simulating") as progress:
        plan = plan_experiment(
            log, first, second, parsed, n_sessions=sessions, progress=progress, **chosen
        )
    print(json.dumps(plan.to_dict(), indent=2) if as_json else plan)
