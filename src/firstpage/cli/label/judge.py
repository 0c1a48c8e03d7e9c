"""`firstpage label judge`: a program answers, in the same log as people."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, shared
from firstpage.cli.shared import note, open_store, with_web

if TYPE_CHECKING:
    from firstpage.labeling.assessors import Assessor, Conflicts
    from firstpage.web.machines import JudgingReport
    from firstpage.web.store.projects import Project

KEY = "FIRSTPAGE_ENDPOINT_KEY"
RECORDED = {
    "tie": "a tie is recorded",
    "skip": "the pair is skipped",
    "first": "the answer to the first order is recorded",
}


@click.command("judge")
@click.argument("project")
@click.option("--assessor", "login", required=True, metavar="LOGIN", help="Whose work it does.")
@click.option("--name", metavar="SLUG", help="Which project, where the store holds several.")
@click.option("--endpoint", metavar="URL", help="An OpenAI-compatible chat endpoint, up to /v1.")
@click.option("--model", help="The model's name at the endpoint.")
@click.option(
    "--prices", type=(float, float), default=(0.0, 0.0), help="Per million tokens in, and out."
)
@click.option(
    "--conflicts", type=click.Choice(["tie", "skip", "first"]),
    help="With --endpoint: what is recorded where the answers to the two orders of a pair differ; "
    "first is the answer to the order that was asked first.  [tie; skip in a project without ties]",
)  # fmt: skip
@options.whole(
    "--longest",
    default=8_000,
    help="With --endpoint: characters of a document that the model reads.",
)
@click.option(
    "--function", metavar="MODULE:NAME",
    help="A function of (query, left, right): documents with key, body, title, fields, items.",
)  # fmt: skip
@with_web
def command(project: str, login: str, name: str | None, **given: Any) -> None:
    """Let a program do the open work of an assessor in PROJECT (a folder or a database URL).

    It answers the practice questions first, as people do.  A pair is asked of the endpoint in
    both orders.  The key comes from the environment: FIRSTPAGE_ENDPOINT_KEY.
    """
    if (given["endpoint"] is None) == (given["function"] is None):
        raise click.UsageError("give --endpoint with --model, or --function.")
    if given["endpoint"] is not None and not given["model"]:
        raise click.UsageError("--endpoint needs --model.")
    if given["endpoint"] is None and given["conflicts"] is not None:
        raise click.UsageError("--conflicts is for --endpoint; a function is asked once.")
    with open_store(project) as store:
        from firstpage.errors import DataError
        from firstpage.web.machines import judge
        from firstpage.web.store import people, projects
        from firstpage.web.store.projects import find_project

        with store.read() as tx:
            chosen, person = find_project(tx, name), people.by_login(tx, login)
            known = person is not None and projects.is_assessor(tx, chosen.id, person.id)
        if person is None or not known:
            which = f" --name {name}" if name else ""
            raise DataError(
                f"there is no assessor {login!r} in {chosen.slug!r}; add them: "
                f"firstpage label add {project}{which} --assessor {login}"
            )
        assessor = _assessor(given, chosen)
        with shared.counting(login) as progress:
            done = judge(store, chosen, person, assessor, progress)
    print(
        f"{login}: {done.queries} queries, {done.answers} answers, {done.skipped.total()} skipped, "
        f"{done.seconds:.1f} s, "
        f"{done.tokens} tokens, {done.money:.4f} spent"
    )
    for line in _notes(done, given["longest"]):
        note(line)


def _assessor(given: dict[str, Any], project: Project) -> Assessor:
    """Return the assessor; what becomes of contradictions is said before the first question."""
    from firstpage.labeling.assessors import Chat, Function

    if given["endpoint"] is None:
        return Function(_reported(shared.function(given["function"], "--function"), given))
    ties = project.options.ties or "pairs" not in project.tools
    if given["conflicts"] == "tie" and not ties:
        raise click.UsageError(
            f"--conflicts tie: the project {project.slug!r} has no ties, so nothing could be "
            "recorded; give skip or first."
        )
    conflicts: Conflicts = given["conflicts"] or ("tie" if ties else "skip")
    if set(project.tools) != {"grades"}:
        note(
            "each pair is asked in both orders; where the two answers differ, "
            f"{RECORDED[conflicts]} (--conflicts {conflicts})."
        )
    return Chat(
        given["endpoint"], given["model"], os.environ.get(KEY, ""), project.guidelines,
        given["prices"], given["longest"], conflicts=conflicts, ties=ties,
    )  # fmt: skip


def _reported(call: Callable[..., Any], given: dict[str, Any]) -> Callable[..., Any]:
    """Return the same function; what it raises is said in one line, with its place."""
    from firstpage.errors import DataError

    def called(query: Any, left: Any, right: Any) -> Any:
        try:
            return call(query, left, right)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            pair = left.key if right is None else f"{left.key} and {right.key}"
            raise DataError(
                f"--function {given['function']} failed on query {query.key}, {pair}: "
                f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})."
            ) from error

    return called


def _notes(done: JudgingReport, longest: int) -> Iterator[str]:
    """Yield what was skipped, cut or not seen, a line each."""
    if done.practice:
        yield f"{done.practice} practice questions were answered first, and passed."
    if not done.queries:
        yield "there was no open work."
    for reason, count in done.skipped.items():
        yield f"{count} of {done.questions} questions were skipped: {reason}."
    if done.truncated:
        yield (
            f"of {len(done.truncated)} documents the model read only the first {longest:,} "
            "characters (--longest); the log names them."
        )
    if done.pictures:
        yield f"{len(done.pictures)} documents are pictures; the program read only their titles."
