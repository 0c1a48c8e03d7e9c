"""`firstpage dcglearn learn` and `simulate`: learn a measure from real or simulated preferences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.dcglearn import inputs
from firstpage.cli.help import documented_command
from firstpage.core import DataError
from firstpage.evaluation.dcglearn import (
    DCGLearn,
    advice,
    compare_with_dcg,
    intervals,
    position_test,
    simulate,
    truncation_notes,
    unjudged_notes,
)
from firstpage.interop.report import utility_page, utility_text


@documented_command(
    "learn",
    "firstpage dcglearn learn prefs.jsonl -o measure.json",
    "firstpage dcglearn learn prefs.jsonl --K 5 --decreasing --html measure.html",
)
@click.argument("prefs", type=options.FILE)
@inputs.ranking_options
@options.integer("--K", "depth", default=10, help="Number of ranks that count.")
@options.integer(
    "--L", "levels", minimum=2, show_default="those that occur", help="Number of grades."
)
@click.option(
    "--C",
    "cost",
    default="cv",
    metavar="X",
    help="Cost of violated preferences: a number, or cv (chosen by cross-validation).",
)
@click.option(
    "--C-tie",
    "tie_cost",
    type=float,
    metavar="X",
    show_default="equal to C",
    help="Cost of violated ties.",
)
@click.option("--decreasing", is_flag=True, help="Discounts must not grow with the rank.")
@click.option(
    "--nonnegative",
    is_flag=True,
    help="Penalize weights relative to the worst grade, not the mean.",
)
@click.option(
    "--strong-margin",
    default=1.0,
    metavar="X",
    help='Margin of "much better"; that of "better" is 1.',
)
@click.option(
    "--unjudged",
    type=click.Choice(["worst", "condense", "refuse"]),
    default="worst",
    help="How documents without a grade count.",
)
@click.option(
    "--pooling",
    default=1.0,
    metavar="X",
    help="Strength (0 to 1) with which the measure of a segment is pulled to that of all.",
)
@options.integer(
    "--rounds", default=200, minimum=0, help="Resamplings for confidence intervals; 0: none."
)
@options.integer(
    "--test-rounds",
    "tests",
    default=99,
    minimum=0,
    help="Simulations of the test whether gains depend on the rank; 0: no test.",
)
@click.option(
    "--form",
    type=click.Choice(["gains", "weights"]),
    default="gains",
    help="What DCG(FILE) computes: gains times discounts, or a weight per rank and grade.",
)
@options.seed
@options.output("json", help="Write the measure to this file (.json).")
@options.html("Write a page with charts to this file.")
@options.as_json
def command(
    prefs: Path,
    qrels: Path | None,
    runs: tuple[Path, ...],
    grades: str | None,
    rounds: int,
    tests: int,
    form: Any,
    output: Path | None,
    html: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn a measure from preferences between rankings.

    PREFS has pairs of rankings, one of which is preferred: JSON lines, CSV, Parquet or .npz.

    The measure is used by its file: firstpage evaluate -m "DCG(measure.json)@10"
    """
    if rounds == 1:
        raise click.UsageError("--rounds must be 0 (no intervals), or at least 2.")
    if grades is not None and settings["levels"] is not None:
        raise click.UsageError("--grades lists all grades; leave out --L, their number.")
    all_grades = inputs.parse_grades(grades)
    learner = _learner(settings, all_grades)
    preferences = inputs.read(prefs, qrels, runs, all_grades)
    with shared.progress_bar("choosing C") as progress:
        learner.fit(preferences, progress=progress)
    for text in _notes(learner):
        shared.note(text)
    about = _about(learner, rounds, tests, form)
    utility = replace(learner.utility_, about=about).with_form(form)
    if output is not None:
        utility.save(output)
    if as_json:
        print(json.dumps(utility.to_dict(), indent=1))
    else:
        print(utility_text(utility))
        if output is not None:
            print(f"wrote {output}: use it as DCG({output})@{learner.K}")
    if html is not None:
        outputs.write_text(utility_page(utility, prefs.name), html)


def _learner(settings: dict[str, Any], grades: Sequence[int] | None) -> DCGLearn:
    names = ("decreasing", "nonnegative", "strong_margin", "unjudged", "pooling", "seed")
    return DCGLearn(
        settings["depth"],
        settings["levels"],
        _parse_cost(settings["cost"]),
        settings["tie_cost"],
        grades=grades,
        **{name: settings[name] for name in names},
    )


def _parse_cost(text: str) -> Any:
    if text == "cv":
        return text
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--C must be a positive number, or cv; got {text!r}.") from None


def _notes(learner: DCGLearn) -> Iterator[str]:
    """Yield what the defaults of --K and --unjudged change about the lists."""
    if not options.on_command_line("depth"):
        yield from truncation_notes(learner.preferences_, learner.K)
    if not options.on_command_line("unjudged"):
        yield from unjudged_notes(learner.preferences_, learner.K, learner.unjudged)


def _about(learner: DCGLearn, rounds: int, tests: int, form: Any) -> dict[str, Any]:
    """Return the record of a fit: intervals, tests, and advice on whether more would pay."""
    about = learner.about()
    single_query = len(set(learner.groups_.tolist())) < 2
    if rounds and single_query:
        shared.note("all pairs belong to one query: no intervals.")
    if rounds and not single_query:
        with shared.progress_bar("intervals") as progress:
            about["intervals"] = intervals(
                learner, rounds, seed=learner.seed, progress=progress
            ).to_dict()
    if tests:
        with shared.progress_bar("test of gains") as progress:
            about["position_test"] = position_test(learner, tests, learner.seed, progress).to_dict()
    about["dcg_comparison"] = compare_with_dcg(learner, form).to_dict()
    about["advice"] = advice(learner, form=form).to_dict()
    return about


@documented_command(
    "simulate", "firstpage dcglearn simulate --data 2 --pairs 100 --noise 0.1 --runs 1"
)
@click.option(
    "--data",
    type=click.Choice(["1", "2"]),
    default="1",
    help="1: the gain is the grade; 2: the gain is 2^grade - 1.",
)
@options.integer("--pairs", default=800, help="Number of training pairs.")
@click.option("--noise", default=0.0, metavar="X", help="Fraction of reversed pairs.")
@options.integer("--runs", default=5, help="Number of repetitions.")
@options.seed
@options.as_json
def simulate_command(
    data: str, pairs: int, noise: float, runs: int, seed: int, as_json: bool
) -> None:
    """Learn a known measure from simulated preferences.

    This is the experiment of Zhou et al. (2013), section 5.2.  Rankings are random orders of the
    grades 5 5 4 4 3 3 2 2 1 1; C is tuned on 800 validation pairs with the same noise; accuracy
    is measured on 4,000 test pairs without noise.
    """
    with shared.progress_bar(f"Data {data}") as progress:
        result = simulate(int(data), pairs, noise, runs, seed, progress).to_dict()
    if as_json:
        print(json.dumps(result, indent=1))
        return
    print(f"Data {data}: {pairs} pairs, {noise:.0%} reversed, {runs} runs")
    texts = {
        "accuracy": ("accuracy", "of test pairs ordered as by the true measure"),
        "other_accuracy": (
            "other",
            "of test pairs ordered so by the wrong measure (the other Data)",
        ),
        "similarity": ("similarity", "of the learned weights to the true ones"),
    }
    for key, (label, text) in texts.items():
        error = f" ± {result[f'{key}_se']:.4f}" if f"{key}_se" in result else ""
        print(f"{label:<10}  {result[key]:.4f}{error}  {text}")
