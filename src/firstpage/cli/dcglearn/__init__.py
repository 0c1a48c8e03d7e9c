"""`firstpage dcglearn`: one file a verb."""

from __future__ import annotations

import click


@click.group("dcglearn")
def command() -> None:
    """Learn the gains and discounts of DCG from preferences over rankings."""
