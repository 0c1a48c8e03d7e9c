"""`firstpage crossval`: train and test over the folds of a LETOR folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from firstpage.cli import options, outputs, shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstpage.data.folds import Fold
    from firstpage.rankers.selection.cross_validation import CrossValidation


@click.command("crossval")
@click.argument("folder", type=options.FILE)
@click.argument("rankers", nargs=-1, required=True)
@options.settings
@click.option("--tune", is_flag=True, help="Choose parameters on each fold's validation data.")
@options.whole("--seeds", default=1, help="Fits a fold.")
@click.option(
    "-t", "--test", "tests", multiple=True, metavar="MEASURE",
    help="Measured on test data; may be repeated. NDCG@1, NDCG@3, NDCG@10 and AP if not given.",
)  # fmt: skip
@options.whole(
    "--top-k",
    metavar="K",
    help="Train and test on the top-k truth of the labels (for kNDCG, kERR).",
)
@click.option("--baseline", metavar="RANKER", help="Mark what differs significantly from this one.")
@options.pad
@click.option("--convention", default="default", show_default=True, help="default, trec or letor.")
@click.option(
    "--published", type=options.FILE, help="Results to show beside: CSV, or LETOR's baselines."
)
@options.as_json
@click.option(
    "-f", "--format", "format_", metavar="NAME", help="text, json, csv, markdown, latex or html."
)
@options.output(*outputs.REPORTS, help="Write the table here.")
def command(
    folder: Path, rankers: tuple[str, ...], settings: tuple[str, ...], measure: str, normalize: str,
    seed: int, tune: bool, seeds: int, tests: tuple[str, ...], top_k: int | None,
    baseline: str | None, pad: bool, convention: str, published: Path | None, as_json: bool,
    format_: str | None, output: Path | None,
) -> None:  # fmt: skip
    """Train RANKERS on every fold of FOLDER (Fold1, Fold2, ..) and measure their test results.

    Shows the mean over folds, with its standard error over queries and, with --seeds, its standard
    deviation between seeds.
    """
    from firstpage.data.folds import read_folds
    from firstpage.measures.registry import measures as parse
    from firstpage.rankers.selection.cross_validation import DEFAULT_MEASURES, cross_validate
    from firstpage.report.rankers import read_published

    kind = outputs.chosen_format(format_, as_json, output)
    if published is not None:
        read_published(published)
    shown = tests or DEFAULT_MEASURES
    parse(shown)
    for name in rankers:
        if rankers.count(name) > 1:
            raise click.UsageError(f"{name} is named twice; name each ranker once.")
    named = {name: shared.ranker_from(name, settings, measure, normalize, seed) for name in rankers}
    if baseline is not None and baseline not in named:
        raise click.UsageError(f"--baseline must be one of the rankers: {', '.join(named)}.")
    folds = read_folds(folder)
    validated = any("valid" in fold.paths for fold in folds)
    for ranker in named.values():
        shared.refuse_without_validation(ranker, "folds that have validation data", validated)
    if pad and (width := _narrower(folds)):
        folds = read_folds(folder, n_features=width)

    with shared.following("cross-validation") as tell:

        def follow(name: str, fold: int, at: int) -> None:
            if tell is not None:
                tell(f"{name}  fold {fold}  seed {at}")

        found = cross_validate(
            named, folds, shown, convention, tune, range(seed, seed + seeds), follow, top_k
        )
    outputs.deliver(_rendered(found, kind, folder.name, published, baseline), output)


def _narrower(folds: Sequence[Fold]) -> int | None:
    """The greatest number of features, where some files have fewer; which is said."""
    from firstpage.data.columns import match_columns

    parts = [getattr(fold, name) for fold in folds for name in fold.paths]
    widest = max(parts, key=lambda part: part.n_features)
    narrow = [part for part in parts if part.n_features < widest.n_features]
    for part in narrow:
        match_columns(part, None, widest.n_features, widest.source, pad=True)
    return widest.n_features if narrow else None


def _rendered(
    found: CrossValidation, kind: str, source: str, published: Path | None, baseline: str | None
) -> str:
    from firstpage.report.rankers import folds_csv, folds_page, folds_table, read_published
    from firstpage.table import NOTATIONS

    if kind == "json":
        held = found.to_dict(baseline)
        if published is not None:
            held["published"] = read_published(published)
        return json.dumps(held, indent=1)
    if kind == "csv":
        return folds_csv(found, published, baseline)
    if kind == "html":
        return folds_page(found, source, published, baseline)
    return NOTATIONS[kind](folds_table(found, source, published, baseline))
