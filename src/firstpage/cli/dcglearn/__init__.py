"""`firstpage dcglearn`: learn a measure from preferences, inspect it and compare measures."""

from __future__ import annotations

import click

from firstpage.cli.help import SectionedGroup

SECTIONS = {
    "Learn": {
        "learn": ("dcglearn.learn", "Learn a measure from preferences between rankings."),
        "choose": (
            "dcglearn.choose",
            "Choose the pairs of POOL that are most informative to judge.",
        ),
        "show": ("dcglearn.show", "Show the gains and discounts of a learned measure."),
    },
    "Check": {
        "compare": ("dcglearn.compare", "Compare two measures on the same rankings."),
        "simulate": (
            "dcglearn.learn:simulate_command",
            "Learn a known measure from simulated preferences.",
        ),
    },
}


@click.group(
    "dcglearn",
    cls=SectionedGroup,
    sections=SECTIONS,
    examples=(
        "firstpage dcglearn learn prefs.jsonl -o measure.json",
        "firstpage evaluate test.txt --scores ours.scores -m 'NDCG(measure.json)@10'",
    ),
)
def command() -> None:
    """Learn the gains and discounts of DCG from preferences."""
