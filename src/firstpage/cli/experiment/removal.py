"""`firstpage experiment prune` and `erase`: remove rows of an event log."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage import serving  # the face: what is behind it needs the extra `serve`
from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.core import require_extras


@documented_command("prune", "firstpage experiment prune events --days 90")
@click.argument("folder", type=options.FOLDER)
@click.option(
    "--days",
    type=click.FloatRange(0, min_open=True),
    required=True,
    metavar="D",
    help="Age in days after which a row is removed.",
)
@click.option(
    "--ahead",
    is_flag=True,
    help="Also remove rows with times more than a day ahead of the clock of this machine.",
)
def prune_command(folder: Path, days: float, ahead: bool) -> None:
    """Remove old queries and events of an event log.

    FOLDER is that of `firstpage serve --events`; the server may run meanwhile.
    """
    require_extras("firstpage experiment prune", "serve")
    with shared.status_line("removing old rows"):
        removed = serving.prune(folder, days, ahead)
    too = ", or from ahead of the clock," if ahead else ""
    print(f"removed {removed:,} rows that are older than {days:g} days{too} from {folder}")


@documented_command("erase", "firstpage experiment erase events ann 7f3e51")
@click.argument("folder", type=options.FOLDER)
@click.argument("people", nargs=-1, required=True, metavar="ID..")
def erase_command(folder: Path, people: tuple[str, ...]) -> None:
    """Erase users from an event log.

    All of their queries are erased, and all events on these.

    An ID is a `client_id` or a `user_id` of the log.  FOLDER is that of `firstpage serve --events`;
    the server may run meanwhile.
    """
    require_extras("firstpage experiment erase", "serve")
    with shared.status_line("erasing"):
        removed = serving.erase(folder, people)
    if not removed:
        shared.note("no row has one of these ids.")
    print(f"erased {removed:,} rows from {folder}")
