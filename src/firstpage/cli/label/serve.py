"""`firstpage label serve`: serve the labeling application."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import with_web
from firstpage.cli.shared import note
from firstpage.labeling import app
from firstpage.labeling.app import store as stores

HEADER_NAME = re.compile(r"[A-Za-z0-9\-]{1,100}")
STANDARD_HEADERS = ("host", "cookie", "authorization", "origin", "content-type", "content-length")


@documented_command(
    "serve",
    "firstpage label serve shop --open",
    "firstpage label serve shop --host 0.0.0.0 --allow-host labels.example.org",
    "firstpage label serve shop --proxy --auth-header X-Remote-User \\\n  --auth-from 10.0.0.0/8",
)
@click.argument("project")
@click.option(
    "--open",
    "single_user",
    is_flag=True,
    help="Serve one person on this machine, without accounts.",
)
@options.address(8210)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Host name by which people reach the server; may be repeated.",
)
@click.option(
    "--proxy",
    is_flag=True,
    help="Behind a reverse proxy: trust its X-Forwarded-For and X-Forwarded-Proto.",
)
@click.option(
    "--auth-header",
    metavar="NAME",
    help="Header in which a proxy names the person whom it has authenticated.",
)
@click.option(
    "--auth-from",
    multiple=True,
    metavar="NETWORK",
    help="Address or network of that proxy, such as 10.0.0.0/8; may be repeated.",
)
@click.option(
    "--auth-create", is_flag=True, help="Create accounts for new people whom that proxy names."
)
@click.option(
    "--private-webhooks",
    is_flag=True,
    help="Let webhooks have addresses of this machine and of private networks.",
)
@options.integer(
    "--workers",
    default=1,
    help="Server processes that share the projects, for more people than one core can serve.",
)
@options.integer("--max-upload", default=64, help="Limit on the size of an upload, in megabytes.")
@options.integer(
    "--max-unpacked", default=512, help="Limit on the size of an unpacked upload, in megabytes."
)
@options.integer(
    "--max-connections",
    default=1000,
    help="Limit on open connections; a new one beyond it closes the longest idle one.",
)
@with_web
def command(project: str, host: str, port: int, workers: int, **chosen: Any) -> None:
    """Serve the labeling application.

    PROJECT is a folder, which is created if absent, or a database URL (postgresql://host/name).
    """
    single_user = chosen["single_user"]
    if single_user and host not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError("--open has no accounts, so it listens on this machine only.")
    if single_user and (chosen["proxy"] or chosen["hosts"] or chosen["auth_header"]):
        raise click.UsageError(
            "--open is for this machine only; leave out --proxy, --allow-host and --auth-header."
        )
    _check_header(chosen["auth_header"], chosen["auth_from"], chosen["auth_create"])
    if single_user and workers > 1:
        raise click.UsageError("--open serves one person; leave out --workers.")
    if workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise click.UsageError(
            "this system cannot share an address between processes; leave out --workers, or start "
            "several servers on different ports behind a reverse proxy."
        )

    for name in ("max_upload", "max_unpacked"):
        chosen[name] <<= 20
    if not stores.holds_store(project):
        problem = "has no labeling project" if Path(project).exists() else "does not exist"
        note(
            f"{project} {problem}; an empty application is created. `firstpage label setup` "
            "creates one from files."
        )
    app.serve(project, host, port, app.ServeSettings(**chosen), workers=workers)


def _check_header(name: str | None, networks: tuple[str, ...], create: bool) -> None:
    """Refuse options of sign-in by a header that are incomplete or cannot work."""
    if name is None:
        if networks or create:
            raise click.UsageError("--auth-from and --auth-create need --auth-header.")
        return
    if not networks:
        raise click.UsageError(
            "--auth-header needs --auth-from with the address of the proxy; anybody else could "
            "send the header too."
        )
    if not HEADER_NAME.fullmatch(name) or name.lower() in STANDARD_HEADERS:
        raise click.UsageError(f"--auth-header {name!r} is not a name such as X-Remote-User.")

    app.parse_networks(networks)
