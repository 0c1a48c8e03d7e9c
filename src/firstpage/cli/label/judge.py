"""`firstpage label judge`: let a program judge, recorded in the same log as people."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.cli.shared import note, open_store, with_web

if TYPE_CHECKING:
    from firstpage.labeling.assessors import Assessor, Conflicts
    from firstpage.web.machines import JudgingReport
    from firstpage.web.store.projects import Project

API_KEY_VARIABLE = "FIRSTPAGE_ENDPOINT_KEY"
CONFLICT_NOTES = {
    "tie": "a tie is recorded",
    "skip": "the pair is skipped",
    "first": "the answer to the first order is recorded",
}


@documented_command(
    "judge",
    "firstpage label judge shop --assessor robot --function taste:longer",
    "firstpage label judge shop --assessor robot --model some-model \\\n"
    "  --endpoint http://localhost:8000/v1",
)
@click.argument("project")
@click.option(
    "--assessor", "login", required=True, metavar="LOGIN", help="Assessor whose work is done."
)
@click.option("--name", metavar="SLUG", help="Project to judge, if the store has several.")
@click.option("--endpoint", metavar="URL", help="OpenAI-compatible chat endpoint, up to /v1.")
@click.option("--model", metavar="NAME", help="With --endpoint: name of the model.")
@click.option(
    "--prices", type=(float, float), default=(0.0, 0.0), show_default=True, metavar="IN OUT",
    help="Prices per million input and output tokens.",
)  # fmt: skip
@click.option(
    "--conflicts", type=click.Choice(["tie", "skip", "first"]),
    show_default="tie; skip in a project without ties",
    help="With --endpoint: what is recorded if the answers to the two orders of a pair differ; "
    "first: the answer to the order asked first.",
)  # fmt: skip
@options.integer(
    "--max-chars", default=8_000,
    help="With --endpoint: characters of a document that the model reads.",
)  # fmt: skip
@click.option(
    "--function", metavar="MODULE:NAME",
    help="Function of (query, left, right); documents have key, body, title, fields and items.",
)  # fmt: skip
@with_web
def command(project: str, login: str, name: str | None, **settings: Any) -> None:
    """Let a program judge the open queries of an assessor.

    PROJECT is a folder or a database URL.  The program answers the practice questions first, as
    people do.  The endpoint is asked for each pair in both orders; its API key is read from the
    environment variable FIRSTPAGE_ENDPOINT_KEY.
    """
    if (settings["endpoint"] is None) == (settings["function"] is None):
        raise click.UsageError("give --endpoint with --model, or --function.")
    if settings["endpoint"] is not None and not settings["model"]:
        raise click.UsageError("--endpoint needs --model.")
    if settings["endpoint"] is None and settings["conflicts"] is not None:
        raise click.UsageError("--conflicts requires --endpoint; a function is called once.")
    with open_store(project) as store:
        from firstpage.errors import DataError
        from firstpage.web.machines import judge
        from firstpage.web.store import people, projects
        from firstpage.web.store.projects import find_project

        with store.read() as tx:
            chosen_project, person = find_project(tx, name), people.by_login(tx, login)
            is_assessor = person is not None and projects.is_assessor(
                tx, chosen_project.id, person.id
            )
        if person is None or not is_assessor:
            name_option = f" --name {name}" if name else ""
            raise DataError(
                f"there is no assessor {login!r} in {chosen_project.slug!r}; add them: "
                f"firstpage label add {project}{name_option} --assessor {login}"
            )
        assessor = _assessor(settings, chosen_project)
        with shared.progress_bar(login) as progress:
            report = judge(store, chosen_project, person, assessor, progress)
    print(
        f"{login}: {report.queries} queries, {report.answers} answers, "
        f"{report.skipped.total()} skipped, {report.seconds:.1f} s, {report.tokens} tokens, "
        f"{report.price:.4f} spent"
    )
    for text in _notes(report, settings["max_chars"]):
        note(text)


def _assessor(settings: dict[str, Any], project: Project) -> Assessor:
    """Return the assessor; a note explains the treatment of conflicts before the first question."""
    from firstpage.labeling.assessors import Chat, Function

    if settings["endpoint"] is None:
        function = shared.load_function(settings["function"], "--function")
        return Function(_with_error_report(function, settings["function"]))
    ties = project.options.ties or "pairs" not in project.tools
    if settings["conflicts"] == "tie" and not ties:
        raise click.UsageError(
            f"--conflicts tie: the project {project.slug!r} has no ties, so none can be recorded; "
            "give skip or first."
        )
    conflicts: Conflicts = settings["conflicts"] or ("tie" if ties else "skip")
    if set(project.tools) != {"grades"}:
        note(
            "each pair is asked in both orders; where the two answers differ, "
            f"{CONFLICT_NOTES[conflicts]} (--conflicts {conflicts})."
        )
    return Chat(
        settings["endpoint"], settings["model"], os.environ.get(API_KEY_VARIABLE, ""),
        project.guidelines, settings["prices"], settings["max_chars"],
        conflicts=conflicts, ties=ties,
    )  # fmt: skip


def _with_error_report(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the function such that its exceptions become one line with file and line number."""
    from firstpage.errors import DataError

    def call(query: Any, left: Any, right: Any) -> Any:
        try:
            return function(query, left, right)
        except Exception as error:  # the user's function may raise anything; all of it is reported
            frame = traceback.extract_tb(error.__traceback__)[-1]
            pair = left.key if right is None else f"{left.key} and {right.key}"
            raise DataError(
                f"--function {name} failed on query {query.key}, {pair}: "
                f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})."
            ) from error

    return call


def _notes(report: JudgingReport, max_chars: int) -> Iterator[str]:
    """Yield a line for everything that was skipped, truncated or not seen."""
    if report.practice:
        yield f"{report.practice} practice questions were answered first, and passed."
    if not report.queries:
        yield "there were no open queries."
    for reason, count in report.skipped.items():
        yield f"{count} of {report.questions} questions were skipped: {reason}."
    if report.truncated:
        yield (
            f"the model read only the first {max_chars:,} characters (--max-chars) of "
            f"{len(report.truncated)} documents; the log lists them."
        )
    if report.pictures:
        yield f"{len(report.pictures)} documents are pictures; the program read only their titles."
