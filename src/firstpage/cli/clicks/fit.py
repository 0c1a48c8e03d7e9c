"""`firstpage clicks fit`: fit click models, and compare how well they predict other pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.clicks.log_options import log_options, read_features, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import ClickModelComparison, click_model, compare_models, save_model
from firstpage.interop.report import figure, page

DEFAULT_MODELS = ("RankCTR", "PBM", "DBN", "UBM")


@documented_command(
    "fit",
    "firstpage clicks fit clicks.log -m PBM -m UBM",
    "firstpage clicks fit clicks.log -m UBM -o ubm.json",
)
@log_options
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    default=DEFAULT_MODELS,
    show_default=", ".join(DEFAULT_MODELS),
    help="Click model, such as PBM or 'UBM(prior=(1, 1))'; may be repeated.",
)
@click.option(
    "--test", type=options.FILE, metavar="LOG", help="Pages to predict, of the same form as LOG."
)
@click.option(
    "--split",
    default=0.2,
    show_default=True,
    metavar="X",
    help="Without --test: the fraction of LOG to predict.",
)
@click.option(
    "--split-by",
    type=click.Choice(["session", "query", "time"]),
    default="session",
    show_default=True,
    help="What is split: random sessions, random queries, or the last pages.",
)
@click.option(
    "--features",
    type=options.FILE,
    metavar="DATA",
    help="Features of documents: the attractiveness of those with few clicks, or of none, follows "
    "these.",
)
@options.seed
@click.option("--html", type=outputs.OutputFile("html"), help="Write a page with pictures here.")
@options.output("json", help="Write the best model, fitted to all of LOG, to this file.")
@options.as_json
def command(
    models: tuple[str, ...],
    test: Path | None,
    split: float,
    split_by: Any,
    features: Path | None,
    seed: int,
    html: Path | None,
    output: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Fit click models, and compare how well they predict.

    The pages that they predict are others than they were fitted to.  The models are ordered by
    their log-likelihood per impression; intervals and tests are by query.
    """
    options.only_with("no --test", test is None, "split", "split_by", "seed")
    parsed = [click_model(text) for text in models]
    if features is not None:
        data = read_features(features)
        parsed = [replace(m, features=data) if m.uses_documents else m for m in parsed]
    other = None if test is None else read_log({**values, "log": (test,)})
    sessions = read_log(values)
    train, held_out = (sessions, other) if other else sessions.split(split, split_by, seed)
    with shared.status_line("fitting") as show:
        progress = _progress(show)
        comparison = compare_models(parsed, train, held_out, progress, html is not None)
        best = comparison.models[0]
        if output is not None and other is None:
            best.fit(sessions, progress and partial(progress, best.name))
    if as_json:
        print(json.dumps(comparison.to_dict(), indent=1, allow_nan=False))
    else:
        print(comparison)
    if output is not None:
        save_model(best, output)
        shared.note(
            f"wrote {best.name} to {output}; `firstpage clicks judge --model` and "
            "`firstpage train --clicks LOG --propensities` read it."
        )
    if html is not None:
        outputs.write_text(_page(comparison, sessions.source), html)


def _progress(show: Callable[[str], None] | None) -> Any:
    """Return a function that shows the step of a fit on the status line, if there is one."""
    if show is None:
        return None
    return lambda name, done, _: show(f"fitting {name}: step {done}")


def _page(comparison: ClickModelComparison, source: str) -> str:
    """Return a page with the comparison, pictures, and the perplexity of each rank."""
    sections = [
        ("Prediction of other pages", [comparison.summary_table().html()]),
        (
            "By rank",
            [
                figure(
                    comparison.plot().svg,
                    "Probability of examination relative to the first rank, and perplexity of "
                    "clicks, with 95 % intervals by query",
                ),
                comparison.rank_table().html(),
            ],
        ),
    ]
    return page("Click models", f"Fitted to clicks of {source}.", sections)
