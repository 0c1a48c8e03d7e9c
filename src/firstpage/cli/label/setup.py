"""`firstpage label setup`: make a project from files, ready to serve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options
from firstpage.cli.shared import note, open_store, with_web

if TYPE_CHECKING:
    from firstpage.web.imports.bundle import Sources
    from firstpage.web.imports.texts import ImportCounts
    from firstpage.web.store.assigning import AssignmentPlan
    from firstpage.web.store.connect import Tx
    from firstpage.web.store.people import Person
    from firstpage.web.store.projects import Project

LONGEST_GUIDELINES = 200_000
FILES = (
    "queries", "documents", "topics", "run", "letor", "collection", "golds", "training", "qrels",
)  # fmt: skip


def _files(command: Any) -> Any:
    """An option for each kind of file."""
    words = {
        "queries": "Queries as rows (.jsonl, .csv, .parquet).",
        "documents": "Documents as rows, with the query of each.",
        "topics": "Queries as TREC topics.",
        "run": "A TREC run: its best documents are judged.",
        "letor": "A LETOR file: its documents are judged.",
        "collection": "Texts for --run or --letor (TREC text or .jsonl).",
        "golds": "Questions with known answers, mixed in (see --gold-share).",
        "training": "Questions with known answers, asked before the first real one.",
        "qrels": "Grades of the items of lists, by their ids; assessors never see them.",
    }
    for name in reversed(FILES):
        command = click.option(f"--{name}", type=options.FILE, help=words[name])(command)
    return command


@click.command("setup")
@click.argument("project")
@click.option("--name", default="labels", show_default=True, help="Short name of the project.")
@click.option("--title", default="", help="What people read; the name by default.")
@click.option("--guidelines", type=options.FILE, help="A text file (UTF-8) for the assessors.")
@_files
@click.option("--images", type=options.FILE, help="Folder of the pictures that documents name.")
@options.whole(
    "--depth", default=50, help="How many documents of each query are judged, from --run."
)
@click.option(
    "--tool", "tools", multiple=True, type=click.Choice(["pairs", "grades", "lists"]),
    help="pairs by default; two of them make a study with both.",
)  # fmt: skip
@click.option("--k", default=10, show_default=True, help="How many top places are ordered.")
@click.option("--strategy", help="How the next pair is chosen; the best by default.")
@click.option("--refine", default=0, show_default=True, help="More questions near the k-th place.")
@click.option("--seed", default=0, show_default=True, help="For everything random.")
@click.option(
    "--repeats", default=0.0, show_default=True,
    help="Share (0 to 1) of questions that are asked again later, unseen by the assessor.",
)  # fmt: skip
@click.option(
    "--gold-share", default=0.0, show_default=True,
    help="Share (0 to 1) of questions that come from --golds.",
)  # fmt: skip
@click.option(
    "--choose", type=click.Choice(["order", "simple-margin", "diverse", "committee"]),
    default="order", show_default=True,
    help="With --tool lists: which pair of lists comes next (see the Measure page).",
)  # fmt: skip
@click.option("--ties/--no-ties", default=False, show_default=True, help="A button for ties.")
@click.option(
    "--assessor", "assessors", multiple=True, metavar="LOGIN",
    help="Who judges; may be repeated.",
)  # fmt: skip
@click.option(
    "--replicates", default=1, show_default=True, help="How many assessors judge each query."
)
@click.option("--lead", metavar="LOGIN", help="Who leads it; prints a link to come in by.")
@click.option("--url", default="http://127.0.0.1:8210", show_default=True, help="For the links.")
@with_web
def command(project: str, url: str, **given: Any) -> None:
    """Make a project in PROJECT: a folder (made if absent) or a database URL."""
    from firstpage.web.imports import bundle, texts
    from firstpage.web.store import people, projects

    _check_words(given)
    _check_tools(given)
    guidelines = _guidelines(given["guidelines"])
    with ExitStack() as files:
        chosen = _sources(given, files)
        some = any(given[name] is not None for name in FILES)
        read = bundle.read(chosen) if some else None
        setting = projects.setting_of(_setting(given))
        with (
            open_store(project, make=True) as store,
            texts.staged(store, read, given["tools"] or ("pairs",), setting) as ready,
            store.write() as tx,
        ):
            lead = _lead(tx, given["lead"])
            made = projects.create(
                tx, given["name"], given["title"], tool=(given["tools"] or ("pairs",))[0],
                guidelines=guidelines, setting=_setting(given), options=_options(given), by=lead,
            )  # fmt: skip
            came = ready.publish(tx, made, lead)
            chiefs = [] if lead is None else [lead.login]
            links = add_people(tx, made, given["assessors"], chiefs, lead)
            dealt = came.queries and given["assessors"]
            first = lead or (people.ensure(tx, given["assessors"][0]) if dealt else None)
            plan = deal_and_open(tx, made, first) if dealt and first else None
            unused = list(_unused(tx, made))
    print(f"{project}: project {given['name']!r}, {_counts(came)}")
    for line in (*(read.notes if read else ()), *unused):
        note(line)
    for login, path in links:
        print(f"{login} comes in here (once): {url}{path}")
    if plan is not None:
        tell(plan)


def _check_tools(given: dict[str, Any]) -> None:
    """Refuse options that the tools have no use for."""
    tools = given["tools"] or ("pairs",)
    options.only_with("--tool lists", "lists" in tools, "choose")
    options.only_with("--tool pairs", "pairs" in tools, "strategy", "refine", "ties")
    options.only_with("--run", given["run"] is not None, "depth")
    if given["gold_share"] and given["golds"] is None:
        raise click.UsageError("--gold-share needs --golds, the questions to take them from.")


def _unused(tx: Tx, project: Project) -> Iterator[str]:
    """Yield what came in and will not be used, a line each."""
    from firstpage.web.store import texts

    golds = texts.golds_of(tx, project.id, "gold")
    if golds and not project.setting.golds:
        yield f"{len(golds)} known answers are stored and never asked; --gold-share mixes them in."
    fits = {name == "grades" for name in project.tools}  # a grade has no right document
    odd = sum((gold["right"] is None) not in fits for gold in golds)
    if odd:
        words = " and ".join(project.tools)
        yield f"{odd} of {len(golds)} known answers do not fit the tool {words}, and are not asked."
    partial = [
        row["key"]
        for row in texts.of_project(tx, project.id)
        if len({d["prior"] is None for d in texts.documents_of(tx, row["id"])}) > 1
    ]
    if partial:
        yield (
            f"of {len(partial)} queries ({partial[0]}, ..) only some documents have a prior; it is "
            "used only where all have one."
        )


def _counts(came: ImportCounts) -> str:
    words = {"golds": "known answers", "training": "practice questions", "grades": "grades"}
    more = [f"{getattr(came, name)} {word}" for name, word in words.items() if getattr(came, name)]
    return ", ".join([f"{came.queries} queries, {came.documents} documents", *more])


def _check_words(given: dict[str, Any]) -> None:
    """Words of the command line may hold bytes that are no text."""
    for name in ("name", "title", "lead", "strategy", "assessors"):
        for word in given[name] if name == "assessors" else (given[name] or "",):
            check_text(f"--{name.removesuffix('s')}", word)


def check_text(option: str, word: str) -> None:
    """Refuse what no database keeps."""
    from firstpage.errors import DataError
    from firstpage.web.api.bodies import storable

    try:
        storable(word)
    except ValueError as error:
        raise DataError(f"{option} {error}; take it out.") from error


def _guidelines(path: Path | None) -> str:
    """The text of a file, as both databases keep it."""
    if path is None:
        return ""
    from firstpage.data.io.files import read_all
    from firstpage.errors import DataError

    data = read_all(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8.") from error
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise DataError(f"{path}:{line}: holds the character NUL; take it out.")
    if len(text) > LONGEST_GUIDELINES:
        raise DataError(
            f"{path}: has {len(text):,} characters; guidelines have at most {LONGEST_GUIDELINES:,}."
        )
    return text


def _sources(given: dict[str, Any], files: ExitStack) -> Sources:
    from firstpage.data.io.files import check_readable
    from firstpage.errors import DataError
    from firstpage.web.imports.bundle import File, Sources
    from firstpage.web.imports.pictures import Pictures, from_folder

    found = {}
    for name in FILES:
        path: Path | None = given[name]
        if path is not None:
            check_readable(path)
            found[name] = File(str(path), files.enter_context(path.open("rb")))
    if given["images"] is not None and not given["images"].is_dir():
        raise DataError(f"{given['images']}: is no folder; --images names the folder of pictures.")
    pictures = from_folder(given["images"]) if given["images"] else Pictures()
    depth = given["depth"] if given["run"] is not None else None
    return Sources(**found, pictures=pictures, depth=depth)


def _setting(given: dict[str, Any]) -> dict[str, Any]:
    found = {"k": given["k"], "seed": given["seed"], "repeats": given["repeats"]}
    found |= {"golds": given["gold_share"], "refine": given["refine"]}
    return {**found, "strategy": given["strategy"]} if given["strategy"] else found


def _options(given: dict[str, Any]) -> dict[str, Any]:
    found = {name: given[name] for name in ("ties", "replicates", "choose")}
    return {**found, "tools": list(given["tools"])} if len(given["tools"]) > 1 else found


def _lead(tx: Tx, login: str | None) -> Person | None:
    """The person who leads; the first one in a store sees to everything."""
    from firstpage.web.store import people

    if login is None:
        return None
    return people.ensure(tx, login, admin=not people.any_account(tx))


def add_people(
    tx: Tx, project: Project, assessors: Sequence[str], leads: Sequence[str] = (),
    by: Person | None = None,
) -> list[tuple[str, str]]:  # fmt: skip
    """Add people to a project; return a link to set a password for each who has none."""
    from firstpage.web.store import invitations, people, projects

    links: dict[str, str] = {}
    for role, logins in (("assessor", assessors), ("lead", leads)):
        for login in logins:
            person = people.ensure(tx, login)
            projects.join(tx, project, person, role, by=by)
            if person.login != people.LOCAL and people.password_hash(tx, person.id) is None:
                links[login] = invitations.reset_link(tx, person, None, invitations.DAYS).path
    return list(links.items())


def deal_and_open(tx: Tx, project: Project, by: Person) -> AssignmentPlan:
    """Deal the work out, and open a project that is not open yet."""
    from firstpage.web.store import assigning, projects

    plan = assigning.assign_tasks(tx, project, by)
    if project.state == "draft":
        projects.set_state(tx, project, "open", by)
    return plan


def tell(plan: AssignmentPlan) -> None:
    """Print what each person has to do, and what is not covered."""
    print(f"about {plan.judgments:,.0f} judgments, {plan.hours:,.1f} hours in all:")
    for load in plan.loads:
        work = f"{load.tasks} queries, {load.judgments:,.0f} judgments, {load.hours:.1f} h"
        print(f"  {load.name}: {work}")
    for problem in plan.problems:
        print(f"note: {problem}")
