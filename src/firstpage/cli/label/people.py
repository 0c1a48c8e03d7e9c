"""`firstpage label add` and `link`: more people for a project, and links for new passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from firstpage.cli.label.setup import add_people, check_text, deal_and_open, tell
from firstpage.cli.shared import note, open_store, with_web

if TYPE_CHECKING:
    from firstpage.web.store.assigning import AssignmentPlan
    from firstpage.web.store.connect import Tx
    from firstpage.web.store.people import Person
    from firstpage.web.store.projects import Project


@click.command("add")
@click.argument("project")
@click.option("--name", metavar="SLUG", help="Which project, where the store holds several.")
@click.option(
    "--assessor", "assessors", multiple=True, metavar="LOGIN", help="Who judges; may be repeated."
)
@click.option(
    "--lead", "leads", multiple=True, metavar="LOGIN", help="Who leads it; may be repeated."
)
@click.option("--url", default="http://127.0.0.1:8210", show_default=True, help="For the links.")
@with_web
def add_people_command(
    project: str, name: str | None, assessors: tuple[str, ...], leads: tuple[str, ...], url: str
) -> None:
    """Add people to PROJECT (a folder or a database URL), and deal its open work out again.

    Begun and finished work stays where it is.  A project that is not open yet is opened, as
    `label setup --assessor` does.
    """
    if not assessors and not leads:
        raise click.UsageError("give --assessor or --lead.")
    for option, logins in (("--assessor", assessors), ("--lead", leads)):
        for login in logins:
            check_text(option, login)
    with open_store(project) as store, store.write() as tx:
        from firstpage.web.store.projects import find_project

        chosen = find_project(tx, name)
        links = add_people(tx, chosen, assessors, leads)
        plan = _dealt(tx, chosen, assessors) if assessors else None
    for login, path in links:
        print(f"{login} comes in here (once): {url}{path}")
    if plan is not None:
        tell(plan)
    if plan is not None and plan.idle:
        note(f"no queries for {', '.join(plan.idle)}: nothing is open that they could have.")


def _dealt(tx: Tx, project: Project, assessors: tuple[str, ...]) -> AssignmentPlan | None:
    """Deal the open work out; a line says why, where nothing can be dealt out."""
    from firstpage.web.store import people, texts

    if project.state == "closed":
        note(
            f"the project {project.slug!r} is closed; its work is dealt out once it is open again."
        )
        return None
    if not texts.of_project(tx, project.id):
        note(f"the project {project.slug!r} has no queries yet; import some, then deal them out.")
        return None
    return deal_and_open(tx, project, _first_lead(tx, project) or people.ensure(tx, assessors[0]))


def _first_lead(tx: Tx, project: Project) -> Person | None:
    from firstpage.web.store import people, projects

    rows = projects.members(tx, project, "lead")
    return next((people.get(tx, row["person"]) for row in rows if row["departed_at"] is None), None)


@click.command("link")
@click.argument("project")
@click.argument("login")
@click.option("--url", default="http://127.0.0.1:8210", show_default=True, help="For the link.")
@with_web
def link_command(project: str, login: str, url: str) -> None:
    """Print a link by which LOGIN sets a new password in PROJECT (a folder or a database URL).

    For operators of the server: an admin who forgot the password has nobody else to ask.
    The link works once, for two days, and ends the links before it; the audit lists it.
    """
    check_text("LOGIN", login)
    from firstpage.errors import DataError

    with open_store(project) as store, store.write() as tx:
        from firstpage.web.store import invitations, people

        person = people.by_login(tx, login)
        if person is None or person.login == people.LOCAL:
            raise DataError(f"{project}: has no account {login!r} that could sign in.")
        path = invitations.reset_link(tx, person, None).path
    print(f"{person.login} sets a new password here (once): {url}{path}")
