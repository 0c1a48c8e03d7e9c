"""Rankers and votes as the options of `train` and `crossval` describe them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options
from firstpage.core import parse_call, parse_literal
from firstpage.data.preferences import PreferencePairs, read_pairs
from firstpage.learning.rankers import ACCURACY, DEFAULT_MEASURE, LOG_LOSS, Ranker, pair_measure
from firstpage.learning.rankers import ranker as ranker_by_name


def ranker_from_options(
    name: str,
    settings: tuple[str, ...],
    measure: str | None,
    normalize: str,
    seed: int,
    threads: int | None = None,
) -> Ranker:
    """Return the ranker that the command line describes, with its parameters checked."""
    parameters: dict[str, Any] = {"seed": seed}
    if measure is not None:  # else the default of the ranker
        parameters["measure"] = measure
    if threads is not None:
        parameters["threads"] = threads
    if normalize != "none":
        parameters["normalize"] = normalize
    sources = {
        key: f"--{key}"
        for key in ("measure", "seed", "normalize", "threads")
        if options.on_command_line(key)
    }
    for item in settings:
        key, equals, value = (word.strip() for word in item.partition("="))
        if not equals or not key:
            raise click.UsageError(f"--set takes NAME=VALUE; got {item!r}.")
        if key in sources:
            raise click.UsageError(f"{key} is given twice: by {sources[key]} and by --set {item}.")
        parameters[key], sources[key] = parse_literal(value), f"--set {item}"
    inline = parse_call(name)[1]  # parameters in the name, as in ListMLE(k=10)
    if any(":" in str(value) for value in (name, *parameters.values())):
        options.search_current_folder()
    for key in inline:
        if key in sources:
            raise click.UsageError(f"{key} is given twice: in {name} and by {sources[key]}.")
    ranker = ranker_by_name(name, **{k: v for k, v in parameters.items() if k not in inline})
    ranker.check_parameters()
    return ranker


def refuse_without_validation(ranker: Ranker, condition: str, met: bool) -> None:
    """Refuse settings that need validation data: the measure and the patience.

    Rankers that train on a measure, whose default depends on k, need none for it.
    """
    trains_on_measure = type(ranker).measure is None
    options.only_with(condition, met or trains_on_measure, "measure")
    if ranker.patience is not None and not met:
        raise click.UsageError(f"patience={ranker.patience} requires {condition}.")


def read_pairs_option(path: Path, *rankers: Ranker) -> PreferencePairs:
    """Read the votes of --pairs; refuse rankers and measures that do not go with them."""
    for ranker in rankers:
        prepare_for_pairs(ranker, "--pairs")
    return read_pairs(path)


def prepare_for_pairs(ranker: Ranker, option: str) -> None:
    """Check a ranker that an option lets learn from pairs, and let it be validated on pairs."""
    ranker.check_parameters("votes")
    if ranker.measure == DEFAULT_MEASURE and options.on_command_line("measure"):
        raise click.UsageError(
            f"--measure {ranker.measure} measures labels; with {option}, give {ACCURACY} or "
            f"{LOG_LOSS}."
        )
    ranker.set_params(measure=str(pair_measure(ranker.measure)))
