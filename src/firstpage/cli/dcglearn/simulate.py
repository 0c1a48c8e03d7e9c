"""`firstpage dcglearn simulate`: the paper's simulations."""

from __future__ import annotations

import json

import click

from firstpage.cli import options, shared


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
def command(data: str, pairs: int, noise: float, runs: int, seed: int, as_json: bool) -> None:
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
