"""`firstpage dcglearn`: one file a verb."""

from __future__ import annotations

import click

from firstpage.cli.dcglearn import choose, compare, learn, show, simulate


@click.group("dcglearn")
def command() -> None:
    """Learn the gains and discounts of DCG from preferences over rankings."""


for _verb in (learn, choose, compare, show, simulate):
    command.add_command(_verb.command)
