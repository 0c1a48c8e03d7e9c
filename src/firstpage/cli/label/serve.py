"""`firstpage label serve`: the labeling application."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options
from firstpage.cli.shared import note, with_web


@click.command("serve")
@click.argument("project")
@click.option("--open", "alone", is_flag=True, help="For you alone on this machine: no accounts.")
@options.address(8210)
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME",
    help="A name under which people reach the server; may be given several times.",
)  # fmt: skip
@click.option(
    "--proxy", is_flag=True,
    help="Behind a reverse proxy: believe its X-Forwarded-For and X-Forwarded-Proto.",
)  # fmt: skip
@options.whole("--max-upload", default=64, help="Megabytes of one upload.")
@options.whole("--max-unpacked", default=512, help="Megabytes of it unpacked.")
@options.whole(
    "--max-connections", default=1000, help="Open connections; more take the place of silent ones."
)
@with_web
def command(
    project: str, alone: bool, host: str, port: int, hosts: tuple[str, ...], proxy: bool,
    max_upload: int, max_unpacked: int, max_connections: int,
) -> None:  # fmt: skip
    """Serve PROJECT: a folder (made if absent) or a database URL (postgresql://..)."""
    if alone and host not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError("--open has no accounts, so it listens on this machine only.")
    if alone and (proxy or hosts):
        raise click.UsageError("--open is for this machine alone; leave out --proxy, --allow-host.")
    from firstpage.web.security import ServeSettings
    from firstpage.web.serve import serve

    settings = ServeSettings(
        open=alone, hosts=hosts, proxy=proxy, upload=max_upload << 20,
        unpacked=max_unpacked << 20, connections=max_connections,
    )  # fmt: skip
    if "://" not in project and not Path(project).exists():
        note(
            f"{project} was not there; an empty application begins. `firstpage label setup` makes "
            "one from files."
        )
    serve(project, host, port, settings)
