"""`firstpage label tokens`: list, create and revoke API tokens."""

from __future__ import annotations

import click

from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.label.setup import check_text
from firstpage.core import DataError, Table
from firstpage.labeling.app import store as stores


@documented_command(
    "tokens",
    "firstpage label tokens shop",
    "firstpage label tokens shop --create nightly --login robot --days 90",
    "firstpage label tokens shop --revoke 1",
)
@click.argument("project")
@click.option("--create", "name", metavar="NAME", help="Create a token of this name.")
@click.option("--login", metavar="LOGIN", help="Person as whom the new token signs in.")
@click.option(
    "--scope",
    type=click.Choice(["read", "judge", "lead"]),
    default="read",
    help="What the new token may do.",
)
@click.option("--days", type=float, metavar="N", help="Days until the new token expires.")
@click.option("--revoke", type=int, metavar="ID", help="Revoke the token with this number.")
@with_web
def command(
    project: str,
    name: str | None,
    login: str | None,
    scope: str,
    days: float | None,
    revoke: int | None,
) -> None:
    """List, create or revoke API tokens.

    PROJECT is a folder or a database URL.  A program sends its token as `Authorization: Bearer
    TOKEN` and may then do what the person may, within the scope: read, judge (also answer their
    questions) or lead (also change what they lead).  A token is printed once and stored hashed.
    """
    if (name is None) != (login is None) or (name is not None and revoke is not None):
        raise click.UsageError("give --create with --login, or --revoke, or neither to list.")
    check_text("--create", name)
    check_text("--login", login)
    if name is None and revoke is None:
        with open_store(project) as store, store.read() as tx:
            print(_text(stores.tokens.listed(tx)))
        return
    with open_store(project) as store, store.write() as tx:
        if revoke is not None:
            if not stores.tokens.revoke(tx, revoke, None):
                raise DataError(f"{project}: has no token {revoke}; run without --revoke to list.")
            print(f"Token {revoke} was revoked.")
            return
        person = stores.people.by_login(tx, login or "")
        if person is None:
            raise DataError(f"{project}: has no account {login!r}.")
        secret, _ = stores.tokens.create(tx, person, name or "", scope, days)
    print(secret)


def _text(rows: list[stores.ApiToken]) -> str:
    """Return a table of tokens."""
    head = ["id", "login", "name", "scope", "created", "last used", "expires"]
    cells = [
        [str(row.id), row.login, row.name, row.scope, *(time[:10] for time in times)]
        for row in rows
        for times in [(row.created, row.last_used or "never", row.expires or "never")]
    ]
    return Table(head, cells, left_aligned=len(head)).text() if cells else "There are no tokens."
