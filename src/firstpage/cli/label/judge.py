"""`firstpage label judge`: let a program judge, recorded in the same log as people."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.shared import note
from firstpage.core import DataError
from firstpage.data.io import read_all
from firstpage.labeling import (
    DEFAULT_RUBRIC,
    Assessor,
    Budget,
    Chat,
    Conflicts,
    Example,
    Function,
    RateLimiter,
    Rubric,
    app,
)
from firstpage.labeling.app import JudgingReport
from firstpage.labeling.app import store as stores

if TYPE_CHECKING:
    from firstpage.labeling.app.store import Project, Store

ENDPOINT_ONLY = (
    "model", "prices", "conflicts", "max_chars", "rubric", "prompt", "examples", "concurrency",
    "requests_per_minute", "tokens_per_minute", "max_price", "timeout", "attempts",
)  # fmt: skip
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
    "firstpage label judge shop --assessor robot --model some-model \\\n"
    "  --endpoint https://api.example.com/v1 --prices 0.2 0.8 --max-price 5 \\\n"
    "  --concurrency 8 --requests-per-minute 300 --rubric rubric.txt --examples 4",
)
@click.argument("project")
@click.option(
    "--assessor", "login", required=True, metavar="LOGIN", help="Assessor whose work is done."
)
@click.option("--name", metavar="SLUG", help="Project to judge, if the store has several.")
@click.option("--endpoint", metavar="URL", help="OpenAI-compatible chat endpoint, up to /v1.")
@click.option("--model", metavar="NAME", help="With --endpoint: name of the model.")
@click.option(
    "--prices",
    type=(float, float),
    default=(0.0, 0.0),
    show_default=True,
    metavar="IN OUT",
    help="Prices per million input and output tokens.",
)
@click.option(
    "--conflicts",
    type=click.Choice(["tie", "skip", "first"]),
    show_default="tie; skip in a project without ties",
    help="With --endpoint: what is recorded if the answers to the two orders of a pair differ; "
    "first: the answer to the order asked first.",
)
@options.integer(
    "--max-chars",
    default=8_000,
    help="With --endpoint: characters of a document that the model reads.",
)
@click.option(
    "--rubric",
    type=options.FILE,
    help="With --endpoint: text file with the meaning of each grade, one line per grade.",
)
@click.option(
    "--prompt",
    type=options.FILE,
    help="With --endpoint: text file that replaces the first paragraph of the prompt.",
)
@options.integer(
    "--examples",
    default=0,
    minimum=0,
    help="With --endpoint: number of questions of other queries, on which people agree, that the "
    "model reads with their answers.",
)
@options.integer(
    "--concurrency", default=4, help="With --endpoint: number of queries judged at a time."
)
@click.option(
    "--requests-per-minute",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="With --endpoint: largest rate of requests.",
)
@click.option(
    "--tokens-per-minute",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="With --endpoint: largest rate of tokens.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --endpoint: time for a request with its whole reply.",
)
@options.integer(
    "--attempts",
    default=6,
    help="With --endpoint: attempts per request; the wait between them doubles, or is what the "
    "endpoint asks for.",
)
@options.integer(
    "--max-answers", help="Stop after this number of questions, those of earlier runs included."
)
@click.option(
    "--max-price",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="With --prices: stop before more than this is spent, by earlier runs included.",
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="Stop after this time; questions under way are finished.",
)
@click.option(
    "--function",
    metavar="MODULE:NAME",
    help="Function of (query, left, right); documents have key, body, title, fields and items. It "
    "returns left, right, tie, left bad, right bad, both bad, skip, or a grade.",
)
@options.as_json
@with_web
def command(project: str, login: str, name: str | None, as_json: bool, **settings: Any) -> None:
    """Let a program judge the open queries of an assessor.

    PROJECT is a folder or a database URL.  The program answers the practice questions first, as
    people do.  The endpoint is asked for each pair in both orders; its API key is read from the
    environment variable FIRSTPAGE_ENDPOINT_KEY.

    Every reply is stored when it is received.  A run that was stopped, killed or out of budget is
    continued by the same command; it asks for no stored reply again.
    """
    if (settings["endpoint"] is None) == (settings["function"] is None):
        raise click.UsageError("give --endpoint with --model, or --function.")
    if settings["endpoint"] is not None and not settings["model"]:
        raise click.UsageError("--endpoint needs --model.")
    options.only_with("--endpoint", settings["endpoint"] is not None, *ENDPOINT_ONLY)
    if settings["max_price"] is not None and not any(settings["prices"]):
        raise click.UsageError("--max-price requires --prices.")
    with open_store(project) as store:
        with store.read() as tx:
            chosen_project = stores.find_project(tx, name)
            person = stores.people.by_login(tx, login)
            is_assessor = person is not None and stores.projects.is_assessor(
                tx, chosen_project.id, person.id
            )
        if person is None or not is_assessor:
            name_option = f" --name {name}" if name else ""
            raise DataError(
                f"there is no assessor {login!r} in {chosen_project.slug!r}; add them: "
                f"firstpage label add {project}{name_option} --assessor {login}"
            )
        assessor = _assessor(settings, chosen_project, store)
        concurrency = 1 if settings["endpoint"] is None else settings["concurrency"]
        with shared.progress_bar(login) as progress:
            report = app.judge(
                store,
                chosen_project,
                person,
                assessor,
                progress,
                concurrency=concurrency,
                budget=_budget(settings),
            )
    print(json.dumps(report.to_dict(), indent=2) if as_json else _summary(login, report))
    for text in _notes(report, settings["max_chars"]):
        note(text)


def _budget(settings: dict[str, Any]) -> Budget:
    minutes = settings["max_minutes"]
    return Budget(
        settings["max_answers"], settings["max_price"], None if minutes is None else 60 * minutes
    )


def _summary(login: str, report: JudgingReport) -> str:
    text = (
        f"{login}: {report.queries} queries, {report.answers} answers, "
        f"{report.skipped.total()} skipped, {report.seconds:.1f} s, {report.tokens} tokens, "
        f"{report.price:.4f} spent"
    )
    if not report.attempts or not report.latencies:
        return text
    figures = report.to_dict()
    return (
        f"{text}\nper question: {figures['latency']['median']:.2f} s at the median, "
        f"{figures['latency']['p95']:.2f} s at the 95th percentile, "
        f"{figures['tokens_per_question']:.0f} tokens, {figures['price_per_question']:.6f} spent; "
        f"{report.attempts} requests"
    )


def _assessor(settings: dict[str, Any], project: Project, store: Store) -> Assessor:
    """Return the assessor; a note explains the treatment of conflicts before the first question."""
    grades = stores.shown_scale(project.options.grades)
    if settings["endpoint"] is None:
        function = shared.load_function(settings["function"], "--function")
        return Function(_with_error_report(function, settings["function"]), len(grades))

    rubric = DEFAULT_RUBRIC if settings["rubric"] is None else Rubric.read(settings["rubric"])
    if "grades" in project.tools and settings["rubric"] is None and project.options.grades:
        raise DataError(
            f"the project has its own grades ({stores.describe_scale(grades)}); say what each one "
            "means in a file, and give --rubric FILE."
        )
    if "grades" in project.tools and rubric.highest != len(grades) - 1:
        raise DataError(
            f"{settings['rubric']}: has {rubric.highest + 1} grades; the project has {len(grades)}."
        )
    ties = project.options.ties or "pairs" not in project.tools
    prompt: Path | None = settings["prompt"]
    return Chat(
        settings["endpoint"],
        settings["model"],
        os.environ.get(API_KEY_VARIABLE, ""),
        project.guidelines,
        settings["prices"],
        settings["max_chars"],
        settings["timeout"],
        settings["attempts"],
        conflicts=_conflicts(settings, project, ties),
        ties=ties,
        rubric=rubric,
        instructions="" if prompt is None else _text_of(prompt),
        prompt_name="default" if prompt is None else prompt.name,
        examples=_examples(settings["examples"], project, store),
        max_examples=settings["examples"],
        limiter=RateLimiter(settings["requests_per_minute"], settings["tokens_per_minute"]),
    )


def _conflicts(settings: dict[str, Any], project: Project, ties: bool) -> Conflicts:
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
    return conflicts


def _examples(count: int, project: Project, store: Store) -> tuple[Example, ...]:
    """Return the questions from which examples are taken; a note tells what they come from."""
    if not count:
        return ()

    with store.read() as tx:
        examples = app.agreed_examples(tx, project, project.tools)
    queries = len({example.query_key for example in examples})
    note(
        f"examples come from {len(examples)} questions of {queries} queries on which people agree; "
        "`firstpage label calibrate` leaves these queries out where they were shown."
    )
    return examples


def _text_of(path: Path) -> str:
    try:
        text = read_all(path).decode().strip()
    except UnicodeDecodeError:
        raise DataError(f"{path}: must be text in UTF-8.") from None
    if not text:
        raise DataError(f"{path}: is empty; it must have the instructions for the model.")
    return text


def _with_error_report(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the function such that its exceptions become one line with file and line number."""

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
    if report.exhausted:
        yield (
            f"the budget of {report.exhausted} is used up; run the command again with a larger "
            "one to continue."
        )
    elif not report.queries:
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
