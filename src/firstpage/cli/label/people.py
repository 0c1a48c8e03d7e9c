"""`firstpage label add` and `link`: add people to a project, and create links for new passwords."""

from __future__ import annotations

import click

from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.label.setup import (
    add_people,
    assessors_option,
    assign_and_open,
    check_text,
    first_lead,
    print_plan,
    url_option,
)
from firstpage.cli.shared import note
from firstpage.core import DataError
from firstpage.labeling.app import store as stores


@documented_command("add", "firstpage label add shop --assessor ada --assessor ben")
@click.argument("project")
@click.option("--name", metavar="SLUG", help="Project to change, if the store has several.")
@assessors_option
@click.option(
    "--lead", "leads", multiple=True, metavar="LOGIN", help="Login of a lead; may be repeated."
)
@url_option
@with_web
def add_command(
    project: str, name: str | None, assessors: tuple[str, ...], leads: tuple[str, ...], url: str
) -> None:
    """Add people to a project, and assign its open work again.

    PROJECT is a folder or a database URL.  Work that has begun or is finished is not reassigned.
    A project that is not open yet is opened, as by `firstpage label setup --assessor`.
    """
    if not assessors and not leads:
        raise click.UsageError("give --assessor or --lead.")
    check_text("--assessor", *assessors)
    check_text("--lead", *leads)
    with open_store(project) as store, store.write() as tx:
        changed = stores.find_project(tx, name)
        links = add_people(tx, changed, assessors, leads)
        plan = _assign(tx, changed, assessors) if assessors else None
    for login, path in links:
        print(f"{login} signs in here (once): {url}{path}")
    if plan is not None:
        print_plan(plan)
    if plan is not None and plan.idle:
        note(f"no queries for {', '.join(plan.idle)}: none are open that they could judge.")


def _assign(
    tx: stores.Tx, project: stores.Project, assessors: tuple[str, ...]
) -> stores.AssignmentPlan | None:
    """Assign the open work; where nothing can be assigned, print a note that says why."""
    if project.state == "closed":
        note(f"the project {project.slug!r} is closed; open it again to assign its work.")
        return None
    if not stores.texts.of_project(tx, project.id):
        note(f"the project {project.slug!r} has no queries yet; import some, then assign them.")
        return None
    return assign_and_open(
        tx, project, first_lead(tx, project) or stores.people.ensure(tx, assessors[0])
    )


@documented_command("link", "firstpage label link shop lena --url https://labels.example.org")
@click.argument("project")
@click.argument("login")
@url_option
@with_web
def link_command(project: str, login: str, url: str) -> None:
    """Print a link by which a person sets a new password.

    PROJECT is a folder or a database URL.  This is for operators of the server: an administrator
    who forgot the password has nobody else to ask.  The link works once, for two days, and
    invalidates earlier links; the audit log lists it.
    """
    check_text("LOGIN", login)

    with open_store(project) as store, store.write() as tx:
        person = stores.people.by_login(tx, login)
        if person is None or person.login == stores.people.LOCAL:
            raise DataError(f"{project}: has no account {login!r} that can sign in.")
        path = stores.invitations.reset_link(tx, person, None).path
    print(f"{person.login} sets a new password here (once): {url}{path}")
