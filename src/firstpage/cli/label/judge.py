"""`firstpage label judge`: a program answers, in the same log as people."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import shared

if TYPE_CHECKING:
    from firstpage.labeling.assessors import Assessor

KEY = "FIRSTPAGE_ENDPOINT_KEY"


@click.command("judge")
@click.argument("project")
@click.option("--assessor", "login", required=True, metavar="LOGIN", help="Whose work it does.")
@click.option("--name", metavar="SLUG", help="Which project, where the store holds several.")
@click.option("--endpoint", metavar="URL", help="An OpenAI-compatible chat endpoint, up to /v1.")
@click.option("--model", help="The model's name at the endpoint.")
@click.option(
    "--prices", type=(float, float), default=(0.0, 0.0), help="Of a million tokens in, and out."
)
@click.option("--function", metavar="MODULE:NAME", help="A function of (query, left, right).")
def command(project: str, login: str, name: str | None, **given: Any) -> None:
    """Let a program do the open work of an assessor in PROJECT (a folder or a database URL).

    A pair is asked of the endpoint in both orders; if its answers differ, it is a tie.  The key
    comes from the environment: FIRSTPAGE_ENDPOINT_KEY.
    """
    if (given["endpoint"] is None) == (given["function"] is None):
        raise click.UsageError("give --endpoint with --model, or --function.")
    if given["endpoint"] is not None and not given["model"]:
        raise click.UsageError("--endpoint needs --model.")
    from firstpage.cli.label.stores import opened

    with opened(project) as store:
        from firstpage.errors import DataError
        from firstpage.web.machines import judge
        from firstpage.web.store import people
        from firstpage.web.store.choose import the_project

        with store.read() as tx:
            chosen, person = the_project(tx, name), people.by_login(tx, login)
        if person is None:
            raise DataError(f"there is nobody {login!r} here; add them: label setup --assessor.")
        done = judge(store, chosen, person, _assessor(given, chosen.guidelines), _told)
    print(
        f"{login}: {done.queries} queries, {done.answers} answers, {done.seconds:.1f} s, "
        f"{done.tokens} tokens, {done.money:.4f} spent"
    )


def _assessor(given: dict[str, Any], guidelines: str) -> Assessor:
    from firstpage.labeling.assessors import Chat, Function

    if given["endpoint"] is not None:
        key = os.environ.get(KEY, "")
        return Chat(given["endpoint"], given["model"], key, guidelines, given["prices"])
    return Function(shared.function(given["function"], "--function"))


def _told(query: str, answers: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{query}: {answers} answers", end="", file=sys.stderr)
