"""`firstpage label judge`: let a program judge, recorded in the same log as people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.shared import note
from firstpage.core import DataError
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
from firstpage.labeling.app import store as stores

ENDPOINT_ONLY = (
    "model", "prices", "orders", "conflicts", "max_chars", "rubric", "prompt", "examples",
    "concurrency", "requests_per_minute", "tokens_per_minute", "max_price", "timeout", "attempts",
)  # fmt: skip
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
@options.endpoint
@click.option(
    "--orders",
    type=click.Choice(["both", "random"]),
    default="both",
    show_default=True,
    help="With --endpoint: ask a pair in both orders, or once, in a random order.",
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
    people do.  The endpoint is asked for each pair in both orders (--orders); its API key is read
    from the environment variable FIRSTPAGE_ENDPOINT_KEY.

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


def _summary(login: str, report: app.JudgingReport) -> str:
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


def _assessor(settings: dict[str, Any], project: stores.Project, store: stores.Store) -> Assessor:
    """Return the assessor; a note explains the treatment of conflicts before the first question."""
    grades = stores.shown_scale(project.options.grades)
    if settings["endpoint"] is None:
        function = shared.load_function(settings["function"], "--function")
        return Function(shared.with_error_report(function, settings["function"]), len(grades))

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
        options.endpoint_key(),
        project.guidelines,
        settings["prices"],
        settings["max_chars"],
        settings["timeout"],
        settings["attempts"],
        conflicts=_conflicts(settings, project, ties),
        ties=ties,
        rubric=rubric,
        instructions="" if prompt is None else shared.text_of(prompt),
        prompt_name="default" if prompt is None else prompt.name,
        examples=_examples(settings["examples"], project, store),
        max_examples=settings["examples"],
        orders=settings["orders"],
        limiter=RateLimiter(settings["requests_per_minute"], settings["tokens_per_minute"]),
    )


def _conflicts(settings: dict[str, Any], project: stores.Project, ties: bool) -> Conflicts:
    if settings["conflicts"] == "tie" and not ties:
        raise click.UsageError(
            f"--conflicts tie: the project {project.slug!r} has no ties, so none can be recorded; "
            "give skip or first."
        )
    conflicts: Conflicts = settings["conflicts"] or ("tie" if ties else "skip")
    if settings["orders"] == "random":
        if settings["conflicts"]:
            raise click.UsageError("--conflicts is about pairs asked in both orders (--orders).")
    elif set(project.tools) != {"grades"}:
        note(
            "each pair is asked in both orders; where the two answers differ, "
            f"{CONFLICT_NOTES[conflicts]} (--conflicts {conflicts})."
        )
    return conflicts


def _examples(count: int, project: stores.Project, store: stores.Store) -> tuple[Example, ...]:
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


def _notes(report: app.JudgingReport, max_chars: int) -> Iterator[str]:
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
