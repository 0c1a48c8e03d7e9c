"""`firstpage label webhook`: show, set or remove the webhook of a project."""

from __future__ import annotations

import click

from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.label.setup import check_text, first_lead
from firstpage.core import DataError, Table
from firstpage.labeling import app
from firstpage.labeling.app import store as stores


@documented_command(
    "webhook",
    "firstpage label webhook shop --url https://example.org/hook",
    "firstpage label webhook shop",
)
@click.argument("project")
@click.option("--name", metavar="SLUG", help="Project to change, if the store has several.")
@click.option("--url", metavar="URL", help="Address that gets a message per finished query.")
@click.option(
    "--private-webhooks",
    is_flag=True,
    help="With --url: allow an address of this machine or of a private network. The server must "
    "run with the same option.",
)
@click.option("--remove", is_flag=True, help="Remove the webhook and its unsent messages.")
@with_web
def command(
    project: str, name: str | None, url: str | None, private_webhooks: bool, remove: bool
) -> None:
    """Show, set or remove the webhook of a project.

    PROJECT is a folder or a database URL.  When the last assessor of a query has finished it,
    `firstpage label serve` posts a JSON message to the address, signed with the secret that is
    printed once.
    """
    if url is not None and remove:
        raise click.UsageError("give --url or --remove.")
    if private_webhooks and url is None:
        raise click.UsageError("--private-webhooks requires --url.")
    check_text("--url", url)
    if url is None and not remove:
        with open_store(project) as store, store.read() as tx:
            print(_text(tx, stores.find_project(tx, name)))
        return
    if url is not None:
        app.check_public(url, private_webhooks)
    with open_store(project) as store, store.write() as tx:
        chosen = stores.find_project(tx, name)
        lead = first_lead(tx, chosen)
        if url is not None:
            print(f"Secret of the signatures: {stores.webhooks.put(tx, chosen, url, lead).secret}")
        elif not stores.webhooks.remove(tx, chosen, lead):
            raise DataError(f"the project {chosen.slug!r} has no webhook.")


def _text(tx: stores.Tx, project: stores.Project) -> str:
    """Return the address and the last messages."""
    hook = stores.webhooks.find(tx, project.id)
    if hook is None:
        return f"The project {project.slug!r} has no webhook."
    rows = [
        [
            m["created"][:16],
            m["query"],
            str(m["attempts"]),
            "delivered" if m["delivered"] else m["error"] or "waiting",
        ]
        for m in stores.webhooks.recent(tx, project.id)
    ]
    table = Table(["created", "query", "attempts", "state"], rows, left_aligned=4).text()
    return f"{hook.url}\n{table}" if rows else hook.url
