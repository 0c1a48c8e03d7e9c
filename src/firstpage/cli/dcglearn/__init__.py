"""`firstpage dcglearn`: learn a measure from preferences, inspect it and compare measures."""

from __future__ import annotations

import click

from firstpage.cli.dcglearn import choose, compare, learn, show
from firstpage.cli.help import SectionedGroup

SECTIONS = {
    "Learn": [learn.command, choose.command, show.command],
    "Check": [compare.command, learn.simulate_command],
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
