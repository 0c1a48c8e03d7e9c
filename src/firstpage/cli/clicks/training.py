"""Options of `firstpage train` for clicks, and training data from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.clicks.log_options import query_option, read_plain_log, with_ids
from firstpage.cli.ranker_options import prepare_for_pairs
from firstpage.clicks import ClickModel, Propensities, TrustBias, load_model
from firstpage.core import DataError
from firstpage.data import Dataset
from firstpage.data.shards import Shards
from firstpage.learning.clicks import CORRECTIONS, DISPLAYS, ClickTraining, from_clicks
from firstpage.learning.rankers import Ranker, RankNet, RankSVM

CLICK_NAMES = ("queries", "propensities", "correction", "display", "clip")
click_options = options.combine(
    click.option(
        "--clicks",
        type=options.FILE,
        metavar="LOG",
        help="Log of clicks to learn from, instead of labels; `clicks describe --save` writes one.",
    ),
    query_option,
    click.option(
        "--propensities",
        type=options.FILE,
        help="Propensities or trust bias (`clicks propensities -o`, `--trust-to`) or click model "
        "(`clicks fit -o`) of --clicks.",
    ),
    click.option(
        "--correction",
        type=click.Choice(CORRECTIONS),
        show_default="the first one if first pages vary and are many, else ips",
        help="ips: clicks by the propensity of their rank; policy-aware: also for the cut-off of "
        "the first page; empirical-bayes: the same, shrunk towards the mean of the query.",
    ),
    click.option(
        "--display",
        type=click.Choice(DISPLAYS),
        default="estimated",
        show_default=True,
        help="Probabilities of display, for all but ips.",
    ),
    click.option("--clip", type=float, metavar="P", help="Raise propensities to P at least."),
)


def learn_from_clicks(log: Path, data: Dataset | Shards, values: dict[str, Any]) -> ClickTraining:
    """Return training data of the log with the options of clicks; print what can be trusted."""
    if isinstance(data, Shards):
        raise click.UsageError("--clicks needs training data in memory, not shards.")
    path, queries = values.pop("propensities"), values.pop("queries")
    known = None if path is None else _read_propensities(path)
    sessions = read_plain_log(log)
    if queries is not None:
        sessions = with_ids(sessions, queries)
    with shared.status_line("counting clicks"):
        training = from_clicks(sessions, data, known, **values)
    for line in str(training).splitlines():
        shared.note(line)
    return training


def check_clicks(ranker: Ranker, **others: Any) -> bool:
    """Return whether a ranker learns clicks as pairs; refuse options that exclude --clicks."""
    for name in ("pairs", "qrels"):
        if others[name] is not None:
            raise click.UsageError(f"--clicks replaces the labels of TRAIN; drop --{name}.")
    if not isinstance(ranker, (RankNet, RankSVM)):
        return False
    if others["valid"] is not None:
        raise click.UsageError(
            f"{type(ranker).__name__} learns clicks as pairs, which --valid does not have; drop "
            "--valid, or train a ranker of labels such as ListNet."
        )
    prepare_for_pairs(ranker, "--clicks")
    return True


def _read_propensities(path: Path) -> Propensities | TrustBias | ClickModel:
    """Return the content of a file of propensities, of trust bias, or of a click model."""
    errors = []
    for read in (Propensities.load, TrustBias.load, load_model):
        try:
            return read(path)
        except DataError as error:
            errors.append(error)
    raise errors[0]
