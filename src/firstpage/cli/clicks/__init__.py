"""`firstpage clicks`: describe logs of clicks, and learn from them."""

from __future__ import annotations

import click

from firstpage.cli.help import SectionedGroup

SECTIONS = {
    "Look": {
        "describe": ("clicks.describe", "Describe a log of clicks."),
    },
    "Learn": {
        "fit": ("clicks.fit", "Fit click models, and compare how well they predict."),
        "propensities": (
            "clicks.propensities",
            "Estimate how probable it is that each rank is examined.",
        ),
        "judge": ("clicks.judge", "Judge documents by their clicks."),
        "preferences": (
            "clicks.preferences",
            "Turn clicks into preferences between displayed lists.",
        ),
        "safe": (
            "clicks.safe",
            "Take a new ranking where it is certain to be better, else the old one.",
        ),
    },
}


@click.group(
    "clicks",
    cls=SectionedGroup,
    sections=SECTIONS,
    examples=("firstpage clicks describe clicks.log",),
)
def command() -> None:
    """Read logs of clicks: what is in them, and what can be learned."""
