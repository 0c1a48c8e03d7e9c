"""`firstpage dcglearn`: learn a measure, look at it, and put it to use."""

from __future__ import annotations

import click

from firstpage.cli.dcglearn import choose, compare, learn, show


@click.group("dcglearn")
def command() -> None:
    """Learn the gains and discounts of DCG from preferences over rankings."""


for _file in (learn, choose, compare, show):
    command.add_command(_file.command)
command.add_command(learn.simulate_command)
