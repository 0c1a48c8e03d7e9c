"""`firstpage dcglearn choose`: which pairs to have judged next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, shared
from firstpage.cli.dcglearn import inputs

if TYPE_CHECKING:
    from firstpage.data.preferences.preferences import Preferences


@click.command("choose")
@click.argument("pool", type=options.FILE)
@click.option("--measure", type=options.FILE, help="A measure learned so far.")
@click.option("--prefs", type=options.FILE, help="The preferences so far, to learn from first.")
@inputs.rankings
@click.option(
    "--strategy", default="simple-margin", show_default=True,
    type=click.Choice(["simple-margin", "diverse", "committee", "random"]), help="What to ask for.",
)  # fmt: skip
@options.whole("--count", default=1, help="Pairs.")
@options.whole("--K", "places", default=10, help="With --prefs: places that count.")
@options.seed
@options.as_json
@options.output("jsonl", help="Write the pairs here (.jsonl), to judge.")
def command(
    pool: Path, measure: Path | None, prefs: Path | None, qrels: Path | None,
    runs: tuple[Path, ...], grades: str | None, strategy: Any, count: int, places: int, seed: int,
    as_json: bool, output: Path | None,
) -> None:  # fmt: skip
    """Choose the pairs of POOL whose judgments would teach the measure most.

    Give --measure, a measure file (simple-margin, random), or --prefs, the preferences so far
    (all strategies, and advice whether more would pay).
    """
    options.only_with("--prefs", prefs is not None, "places")
    if (measure is None) == (prefs is None):
        raise click.UsageError("give what is known once: --measure or --prefs.")
    from firstpage.data.preferences.files import rows_to_judge, write_json_lines
    from firstpage.dcglearn.active import choose

    pairs = inputs.read(pool, qrels, runs, grades, pool=True)
    known, advice = _known(measure, prefs, (qrels, runs, grades), seed, pairs, places)
    rows = choose(known, pairs, count, strategy, seed)
    chosen = rows_to_judge(pool, rows)
    if output is not None:
        write_json_lines(chosen, output)
    if as_json:
        print(json.dumps({"rows": rows, "pairs": chosen, "advice": advice}, indent=1))
        return
    if 0 < len(rows) < count:
        shared.note(f"{pool}: {len(rows)} pairs of the {count} asked for; no others differ.")
    for number, row in enumerate(chosen, 1):
        sides = (row.get(side, f"the {side} run") for side in ("left", "right"))
        name = f"query {row['query']}, " if "query" in row else ""
        print(f"{number}. row {rows[number - 1] + 1}: {name}{' or '.join(map(str, sides))}?")
    if not rows:
        print("no pair of the pool has a difference; nothing to ask.")
    if advice:
        print(advice["text"])


def _known(
    measure: Path | None, prefs: Path | None, where: tuple[Any, ...], seed: int,
    pairs: Preferences, places: int,
) -> tuple[Any, dict[str, Any] | None]:  # fmt: skip
    if measure is not None:
        from firstpage.data.preferences.utility import read_utility

        return read_utility(measure), None
    from firstpage.dcglearn.advice import advice
    from firstpage.dcglearn.learn import DCGLearn

    assert prefs is not None
    given = inputs.read(prefs, *where)
    grades = tuple(sorted({*given.grades, *pairs.grades}))
    learner = DCGLearn(places, grades=grades, seed=seed).fit(given)
    return learner, advice(learner).to_dict()
