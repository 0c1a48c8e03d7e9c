"""`firstpage experiment`: plan and analyze comparisons of rankings with people."""

from __future__ import annotations

import click

from firstpage.cli.help import SectionedGroup

SECTIONS = {
    "Plan": {
        "plan": (
            "experiment.plan",
            "Compute how many sessions it takes to decide between two rankings.",
        ),
    },
    "Decide": {
        "analyze": ("experiment.analyze", "Tell which ranking people prefer."),
    },
    "Keep": {
        "prune": (
            "experiment.removal:prune_command",
            "Remove old queries and events of an event log.",
        ),
        "erase": ("experiment.removal:erase_command", "Erase users from an event log."),
    },
}


@click.group(
    "experiment",
    cls=SectionedGroup,
    sections=SECTIONS,
    examples=("firstpage experiment analyze events.jsonl --html result.html",),
)
def command() -> None:
    """Compare rankings with people, interleaved or A/B.

    `firstpage serve --experiment` shows people the rankings, and writes the log.
    """
