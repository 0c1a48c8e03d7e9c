"""`firstpage label link`: a link to set a new password, for a person who cannot sign in."""

from __future__ import annotations

import click

from firstpage.cli.label.setup import check_text


@click.command("link")
@click.argument("project")
@click.argument("login")
@click.option("--url", default="http://127.0.0.1:8210", show_default=True, help="For the link.")
def command(project: str, login: str, url: str) -> None:
    """Print a link by which LOGIN sets a new password in PROJECT (a folder or a database URL).

    For whoever has the server's shell: an admin who forgot the password has nobody else to ask.
    The link works once, for two days, and ends the links before it; the audit lists it.
    """
    check_text("LOGIN", login)
    from firstpage.cli.label.stores import opened
    from firstpage.errors import DataError

    with opened(project) as store, store.write() as tx:
        from firstpage.web.store import invitations, people

        person = people.by_login(tx, login)
        if person is None or person.login == people.LOCAL:
            raise DataError(f"{project}: has no account {login!r} that could sign in.")
        path = invitations.reset_link(tx, person, None).path
    print(f"{person.login} sets a new password here (once): {url}{path}")
