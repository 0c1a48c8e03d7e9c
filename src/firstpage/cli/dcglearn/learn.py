"""`firstpage dcglearn learn` and `simulate`: a measure from preferences, of people or simulated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.dcglearn import inputs
from firstpage.errors import DataError

if TYPE_CHECKING:
    from firstpage.dcglearn.learn import DCGLearn


@click.command("learn")
@click.argument("prefs", type=options.FILE)
@inputs.rankings
@options.whole("--K", "places", default=10, help="Places.")
@options.whole("--L", "levels", least=2, help="Grades; those that occur if not given.")
@click.option("--C", "cost", default="cv", show_default=True, help="A number, or cv: by folds.")
@click.option("--C-tie", "tie_cost", type=float, help="Cost of ties broken; as C if not given.")
@click.option("--decreasing", is_flag=True, help="Discounts must not grow with the place.")
@click.option("--nonnegative", is_flag=True, help="Penalize worth above the worst grade.")
@click.option("--strong", default=1.0, show_default=True, help="Margin of 'much better'.")
@click.option(
    "--unjudged", type=click.Choice(["worst", "condense", "refuse"]), default="worst",
    show_default=True, help="What documents without a grade count.",
)  # fmt: skip
@click.option(
    "--pooling", default=1.0, show_default=True,
    help="How far a segment's measure is drawn to that of all, 0 to 1.",
)  # fmt: skip
@options.whole("--rounds", default=200, least=0, help="Resamplings for intervals; 0: none.")
@options.whole(
    "--test",
    "tests",
    default=99,
    least=0,
    help="Simulations for the test whether gains depend on the place; 0: none.",
)
@click.option(
    "--form", type=click.Choice(["gains", "weights"]), default="gains", show_default=True,
    help="What DCG(FILE) means: gains times discounts, or weights of each place and grade.",
)  # fmt: skip
@options.engine
@options.seed
@options.output("json", help="Write the measure here (.json).")
@click.option("--html", type=outputs.OutputFile("html"), help="Write a page with pictures here.")
@options.as_json
def command(
    prefs: Path, qrels: Path | None, runs: tuple[Path, ...], grades: str | None, rounds: int,
    tests: int, form: Any, engine: str | None, output: Path | None, html: Path | None,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Learn gains and discounts from PREFS, pairs of rankings of which people prefer one.

    PREFS is JSON lines, CSV, Parquet or .npz, or a folder of such files, which are worked on one
    by one, or by a cluster (--engine), without intervals and tests; see docs/dcglearn.md.  The
    measure is used by its file: firstpage evaluate -m "DCG(measure.json)@10" ..
    """
    if rounds == 1:
        raise click.UsageError("--rounds must be 0 (no intervals) or 2 and more.")
    learner = _learner(given)
    many = prefs.is_dir()
    options.only_with("a file of preferences, not with a folder", not many, "rounds", "tests")
    found: Any
    if many:
        found, learner = inputs.folder(prefs, qrels, runs, grades, learner)
    else:
        found = inputs.read(prefs, qrels, runs, grades)
    with shared.counting("choosing C") as progress:
        learner.fit(found, progress=progress, engine=engine)
    about = learner.about() if many else _about(learner, rounds, tests, form)
    utility = replace(learner.utility_, form=form, about=about)
    if output is not None:
        utility.save(output)
    if as_json:
        print(json.dumps(utility.to_dict(), indent=1))
    else:
        from firstpage.report.measure import utility_text

        print(utility_text(utility))
        if output is not None:
            print(f"wrote {output}: use it as DCG({output})@{learner.K}")
    if html is not None:
        from firstpage.report.measure import utility_page

        outputs.deliver(utility_page(utility, prefs.name), html)


def _learner(given: dict[str, Any]) -> DCGLearn:
    from firstpage.dcglearn.learn import DCGLearn

    return DCGLearn(
        given["places"], given["levels"], _cost(given["cost"]), given["tie_cost"],
        decreasing=given["decreasing"], nonnegative=given["nonnegative"], strong=given["strong"],
        unjudged=given["unjudged"], pooling=given["pooling"], seed=given["seed"],
    )  # fmt: skip


def _cost(text: str) -> Any:
    if text == "cv":
        return text
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--C is a number above 0, or cv; got {text!r}.") from None


def _about(learner: DCGLearn, rounds: int, tests: int, form: Any) -> dict[str, Any]:
    """All that a file says of its making: intervals, tests, and whether more would pay."""
    from firstpage.dcglearn.advice import advice, compare_with_dcg
    from firstpage.dcglearn.intervals import intervals, position_test
    from firstpage.dcglearn.pairs import truncation_notes, unjudged_notes

    about = learner.about()
    lines = list[str]()
    if not options.is_given("places"):
        lines += truncation_notes(learner.preferences_, learner.positions_)
    if not options.is_given("unjudged"):
        lines += unjudged_notes(learner.preferences_, learner.positions_, learner.unjudged_)
    one = len(set(learner.groups_.tolist())) < 2
    if rounds and one:
        lines.append("all pairs are of one query: no intervals.")
    for line in lines:
        shared.note(line)
    if rounds and not one:
        with shared.counting("intervals") as progress:
            about["intervals"] = intervals(
                learner, rounds, seed=learner.seed, progress=progress
            ).to_dict()
    if tests:
        with shared.counting("test of gains") as progress:
            about["position_test"] = position_test(learner, tests, learner.seed, progress).to_dict()
    about["against_dcg"] = compare_with_dcg(learner, form).to_dict()
    about["advice"] = advice(learner, form=form).to_dict()
    return about


@click.command("simulate")
@click.option(
    "--data", type=click.Choice(["1", "2"]), default="1", show_default=True,
    help="1: the gain is the grade; 2: 2^grade - 1.",
)  # fmt: skip
@options.whole("--pairs", default=800, help="To learn from.")
@click.option("--noise", default=0.0, show_default=True, help="Share of reversed pairs.")
@options.whole("--runs", default=5, help="Repetitions.")
@options.seed
@options.as_json
def simulate_command(
    data: str, pairs: int, noise: float, runs: int, seed: int, as_json: bool
) -> None:
    """Learn a known measure from simulated preferences (Zhou et al. 2013, section 5.2).

    Rankings are random orders of the grades 5 5 4 4 3 3 2 2 1 1; C is chosen on 800 validation
    pairs with the same noise; accuracy is on 4,000 clean test pairs.
    """
    from firstpage.dcglearn.simulation import simulate

    with shared.counting(f"Data {data}") as progress:
        found = simulate(int(data), pairs, noise, runs, seed, progress).to_dict()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    print(f"Data {data}: {pairs} pairs, {noise:.0%} reversed, {runs} runs")
    for name, what in (
        ("accuracy", "of test pairs judged as the true measure does"),
        ("other", "of them by the wrong measure (the other Data)"),
        ("similarity", "of the weights to the true ones (see docs/dcglearn.md for its limit)"),
    ):
        error = f" ± {found[f'{name}_se']:.4f}" if f"{name}_se" in found else ""
        print(f"{name:<10}  {found[name]:.4f}{error}  {what}")
