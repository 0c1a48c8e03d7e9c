"""`firstpage dcglearn choose`: choose the pairs to be judged next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.dcglearn import inputs
from firstpage.cli.help import documented_command
from firstpage.data.preferences import Preferences, read_utility, rows_to_judge, write_json_lines
from firstpage.evaluation.dcglearn import DCGLearn, advice, choose


@documented_command(
    "choose",
    "firstpage dcglearn choose pool.jsonl --measure measure.json",
    "firstpage dcglearn choose pool.jsonl --prefs prefs.jsonl --strategy diverse \\\n"
    "  --count 5 -o next.jsonl",
)
@click.argument("pool", type=options.FILE)
@click.option("--measure", type=options.FILE, help="Measure file learned so far.")
@click.option(
    "--prefs", type=options.FILE, help="Preferences so far, from which a measure is learned first."
)
@inputs.ranking_options
@click.option(
    "--strategy",
    default="simple-margin",
    type=click.Choice(["simple-margin", "diverse", "committee", "random"]),
    help="Active-learning strategy that chooses the pairs.",
)
@options.integer("--count", default=1, help="Number of pairs to choose.")
@options.integer("--K", "depth", default=10, help="With --prefs: number of ranks that count.")
@options.seed
@options.as_json
@options.output("jsonl", help="Write the pairs to be judged to this file (.jsonl).")
def command(
    pool: Path,
    measure: Path | None,
    prefs: Path | None,
    qrels: Path | None,
    runs: tuple[Path, ...],
    grades: str | None,
    strategy: Any,
    count: int,
    depth: int,
    seed: int,
    as_json: bool,
    output: Path | None,
) -> None:
    """Choose the pairs of POOL that are most informative to judge.

    Give --measure, a measure file (simple-margin, random), or --prefs, the preferences so far
    (all strategies, and advice on whether more judgments would pay).
    """
    options.only_with("--prefs", prefs is not None, "depth")
    if (measure is None) == (prefs is None):
        raise click.UsageError("give either --measure or --prefs.")

    files = (qrels, runs, inputs.parse_grades(grades))
    pairs = inputs.read(pool, *files, pool=True)
    learned, advice = _learned(measure, prefs, files, seed, pairs, depth)
    rows = choose(learned, pairs, count, strategy, seed)
    chosen = rows_to_judge(pool, rows)
    if output is not None:
        write_json_lines(chosen, output)
    if as_json:
        print(json.dumps({"rows": rows, "pairs": chosen, "advice": advice}, indent=1))
        return
    if 0 < len(rows) < count:
        shared.note(f"{pool}: only {len(rows)} of {count} pairs chosen; no others differ.")
    for number, row in enumerate(chosen, 1):
        sides = (row.get(side, f"the {side} run") for side in ("left", "right"))
        name = f"query {row['query']}, " if "query" in row else ""
        print(f"{number}. row {rows[number - 1] + 1}: {name}{' or '.join(map(str, sides))}?")
    if not rows:
        print("no pair of the pool differs; there is nothing to judge.")
    if advice:
        print(advice["text"])


def _learned(
    measure: Path | None,
    prefs: Path | None,
    files: tuple[Any, ...],
    seed: int,
    pairs: Preferences,
    depth: int,
) -> tuple[Any, dict[str, Any] | None]:
    """Return the measure of a file, or the learner fitted to preferences with its advice."""
    if measure is not None:
        return read_utility(measure), None

    assert prefs is not None
    preferences = inputs.read(prefs, *files)
    preferences = preferences.with_grades(sorted({*preferences.grades, *pairs.grades}))
    learner = DCGLearn(depth, grades=files[2], seed=seed).fit(preferences)
    return learner, advice(learner).to_dict()
