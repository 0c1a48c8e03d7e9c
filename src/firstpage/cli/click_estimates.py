"""`--clicks` of `evaluate` and `compare`: rankings are measured by the clicks on old ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from firstpage import clicks as logs  # the face: only --clicks loads what is behind it
from firstpage.cli import options, shared
from firstpage.cli.clicks.log_options import read_plain_log
from firstpage.data.formats import read_run
from firstpage.evaluation.measures import expand_patterns, unique_names

OWN = ("propensities", "estimator", "rewards", "clip", "by_user")
REPORTS = ("clicks", "measures", "files", "runs", "as_json", "format_", "output", "per_query")
COMPARISON = ("baseline", "test", "correction", "rounds", "seed")

click_options = options.combine(
    click.option(
        "--clicks",
        type=options.FILE,
        metavar="LOG",
        help="Instead of judgments: a log of clicks, to estimate Clicks@10 and DCG@10 from.",
    ),
    click.option(
        "--propensities",
        type=options.FILE,
        help="With --clicks: what `firstpage clicks propensities -o` wrote; without it, clicks are "
        "divided by logged propensities.",
    ),
    click.option(
        "--estimator",
        metavar="NAME",
        show_default="policy-aware with --propensities, else ips",
        help="With --clicks: policy-aware, ips, snips, dr or dm.",
    ),
    click.option(
        "--rewards",
        type=options.FILE,
        metavar="RUN",
        help="With --estimator dr or dm: predictions of a reward model, in the form of a run.",
    ),
    click.option(
        "--clip", type=float, metavar="X", help="With --clicks: the largest 1 / propensity."
    ),
    click.option("--by-user", is_flag=True, help="With --clicks: intervals by user, not by query."),
)


def take_estimates(
    values: dict[str, Any],
    files: Sequence[Path],
    runs: Sequence[Path],
    measures: Sequence[str],
    comparing: bool = False,
) -> list[logs.ClickEvaluation] | None:
    """Return the estimates of the runs on the command line, or None without --clicks.

    The options of `click_options` are taken out of `values`; others, which would have no effect,
    are refused.
    """
    log, own = values.pop("clicks"), {name: values.pop(name) for name in OWN}
    if log is None:
        options.only_with("--clicks", False, *OWN)
        return None
    allowed = {*OWN, *REPORTS, *(COMPARISON if comparing else ())}
    others = (p.name or "" for p in click.get_current_context().command.params)
    options.only_with("no --clicks", False, *(name for name in others if name not in allowed))
    paths = expand_patterns([*files, *runs])
    if len(paths) < 1 + comparing:
        least = "two" if comparing else "one"
        raise click.UsageError(f"--clicks measures runs; give at least {least}.")
    path, rewards = own["propensities"], own["rewards"]
    propensities = None if path is None else logs.Propensities.load(path)
    rankings = [read_run(file) for file in paths]
    by: Any = "user" if own["by_user"] else "query"
    counted = logs.ClickLog(read_plain_log(log), propensities, by, own["clip"])
    given: dict[str, Any] = {"method": own["estimator"]}
    if measures:
        given["measures"] = ",".join(measures)
    if rewards is not None:
        given["rewards"] = read_run(rewards)
    names = unique_names([run.name for run in rankings], paths)
    with shared.status_line("estimating"):
        return [
            logs.evaluate_clicks(run, counted, name=name, **given)
            for run, name in zip(rankings, names, strict=True)
        ]
