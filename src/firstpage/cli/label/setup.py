"""`firstpage label setup`: create a project from files, ready to serve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Any

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.shared import note
from firstpage.core import DataError, counted
from firstpage.data.io import check_readable, read_all
from firstpage.labeling import RATES
from firstpage.labeling.app import imports
from firstpage.labeling.app import store as stores
from firstpage.search import Index

MAX_GUIDELINES = 200_000  # characters
SOURCE_FILES = {
    "queries": "Queries: rows (.jsonl, .csv, .tsv, .parquet), TREC topics, SMART or NPL.",
    "documents": "Documents as rows, with the query of each.",
    "topics": "Queries as TREC topics.",
    "letor": "LETOR file, whose documents are judged.",
    "collection": "Texts for --run or --letor: any file or folder that `firstpage index` reads.",
    "gold_questions": "Questions with known answers, mixed in (see --gold-rate).",
    "training": "Practice questions with known answers, asked before the real ones.",
    "qrels": "Grades of the items of lists, by item id; assessors never see them.",
}


def _source_options(command: Any) -> Any:
    """Add an option for each kind of source file."""
    for name in reversed(SOURCE_FILES):
        option = click.option(
            f"--{name.replace('_', '-')}", type=options.FILE, help=SOURCE_FILES[name]
        )
        command = option(command)
    return command


assessors_option = click.option(
    "--assessor",
    "assessors",
    multiple=True,
    metavar="LOGIN",
    help="Login of an assessor; may be repeated.",
)
url_option = click.option(
    "--url",
    default="http://127.0.0.1:8210",
    metavar="URL",
    help="Address of the application in the printed links.",
)
list_selections = click.Choice(["order", "simple-margin", "diverse", "committee"])
SCALE_OPTIONS = {
    "grades": "With --tool grades: names of the grades, worst first, separated by semicolons, each "
    "with a key and a color if you like: 'Off topic, 1, #b3261e; Fair; Good'.",
    "aspects": "With --tool grades: what else to grade, separated by semicolons.",
    "reasons": "Reasons that assessors can choose with an answer, separated by semicolons.",
}


def scale_options(command: Any) -> Any:
    """Add the options for grades, aspects and reasons."""
    for name in reversed(SCALE_OPTIONS):
        command = click.option(f"--{name}", metavar="TEXT", help=SCALE_OPTIONS[name])(command)
    return command


def read_scales(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the project's options for grades, aspects and reasons that were given."""
    scale, tags = stores.parse_scale, stores.parse_tags
    parsers = {"grades": scale, "aspects": tags, "reasons": tags}
    return {
        name: parse(settings[name])
        for name, parse in parsers.items()
        if settings.get(name) is not None
    }


@documented_command(
    "setup",
    "firstpage label setup shop --queries queries.jsonl \\\n"
    "  --documents documents.jsonl --k 3 --ties",
    "firstpage label setup shop --index shop.index --queries queries.jsonl \\\n  --depth 20",
    "firstpage label setup team --queries queries.jsonl \\\n"
    "  --documents documents.jsonl --lead lena --assessor ada --assessor ben",
)
@click.argument("project")
@click.option("--name", default="labels", metavar="SLUG", help="Short name of the project.")
@click.option(
    "--title", default="", metavar="TEXT", show_default="the name", help="Title that people see."
)
@click.option("--guidelines", type=options.FILE, help="Text file (UTF-8) for the assessors.")
@_source_options
@click.option(
    "--query-format",
    metavar="NAME",
    show_default="by the file",
    help="Format of --queries: jsonl, csv, tsv, parquet, trec, smart, npl or lines.",
)
@click.option("--ordinal", is_flag=True, help="Number the queries 1, 2, .. in their order.")
@options.integer("--first", help="Take the first N queries only.")
@click.option(
    "--index",
    type=options.FOLDER,
    help="Index (`firstpage index`): its best documents by BM25 are judged; or the texts of --run "
    "and --letor. Export computes features from it.",
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=options.FILE,
    help="TREC run, whose documents are judged, with texts of --index or --collection; may be "
    "repeated. With --tool lists, the first pages of the runs are compared.",
)
@options.integer(
    "--depth",
    show_default="50; 10 with --tool lists",
    help="With --run or --index: documents per query; with --tool lists: documents per page.",
)
@click.option(
    "--pool",
    type=click.Choice(["depth", "rrf", "random", "stratified"]),
    default="depth",
    help="How --depth documents of all runs are chosen. depth: the first ranks of each run; rrf: "
    "the best by reciprocal rank fusion; random: a sample of all; stratified: as many of the best "
    "ranks 1-10, 11-20, 21-40 and so on.",
)
@click.option("--images", type=options.FOLDER, help="Folder of the pictures that documents name.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    type=click.Choice(["pairs", "grades", "lists"]),
    show_default="pairs",
    help="Judging tool; two of them make a study with both.",
)
@options.integer("--k", default=10, help="Number of top ranks to order.")
@click.option(
    "--strategy",
    metavar="NAME",
    show_default="adaptive",
    help="Strategy that chooses the next pair (see `firstpage label simulate`).",
)
@click.option("--refine", default=0, metavar="N", help="Additional questions near the k-th rank.")
@click.option("--seed", default=0, metavar="N", help="Seed of everything random.")
@click.option(
    "--repeat-rate",
    default=0.0,
    metavar="X",
    help="Probability (0 to 0.5) that a judgment is followed by a hidden repeat of an earlier "
    "question.",
)
@click.option(
    "--gold-rate",
    default=0.0,
    metavar="X",
    help="Probability (0 to 0.5) that a judgment is followed by one of --gold-questions.",
)
@click.option(
    "--probe-rate",
    default=0.0,
    metavar="X",
    help="Probability (0 to 0.5) that a judgment is followed by a pair whose order other answers "
    "imply, to measure whether it holds.",
)
@click.option(
    "--list-selection",
    type=list_selections,
    default="order",
    help="With --tool lists: strategy that chooses the next pair of lists.",
)
@click.option("--ties/--no-ties", default=False, help="Offer a button for ties.")
@scale_options
@assessors_option
@click.option(
    "--replicates", default=1, metavar="N", help="Number of assessors who judge each query."
)
@click.option("--lead", metavar="LOGIN", help="Login of the lead; prints a sign-in link.")
@url_option
@with_web
def command(project: str, url: str, **settings: Any) -> None:
    """Create a labeling project from files.

    PROJECT is a folder, which is created if absent, or a database URL.
    """
    _check_names(settings)
    _check_tools(settings)
    guidelines = read_guidelines(settings["guidelines"])
    tools = settings["tools"] or ("pairs",)
    with ExitStack() as files:
        sources = _open_sources(settings, files)
        named = any(settings[name] is not None for name in (*SOURCE_FILES, "index"))
        contents = imports.bundle.read(sources) if named or settings["runs"] else None
        setting = stores.projects.setting_of(_setting(settings))
        with (
            open_store(project, create=True) as store,
            imports.texts.staged(store, contents, tools, setting) as staged,
            store.write() as tx,
        ):
            lead = _lead(tx, settings["lead"])
            created = stores.projects.create(
                tx,
                settings["name"],
                settings["title"],
                tool=tools[0],
                guidelines=guidelines,
                setting=_setting(settings),
                options=_project_options(settings),
                source=_source_record(settings, sources),
                by=lead,
            )
            imported = staged.publish(tx, created, lead)
            leads = [] if lead is None else [lead.login]
            links = add_people(tx, created, settings["assessors"], leads, lead)
            assignable = imported.queries and settings["assessors"]
            actor = lead
            if lead is None and assignable:
                actor = stores.people.ensure(tx, settings["assessors"][0])
            plan = assign_and_open(tx, created, actor) if assignable and actor else None
            unused = list(_unused_inputs(tx, created))
    print(f"{project}: project {settings['name']!r}, {_counts(imported)}")
    for text in (*(contents.notes if contents else ()), *unused):
        note(text)
    for login, path in links:
        print(f"{login} signs in here (once): {url}{path}")
    if plan is not None:
        print_plan(plan)
    if imported.queries and not links and "://" not in project:
        note(f"to judge yourself: firstpage label serve {quote(project)} --open")


def _check_tools(settings: dict[str, Any]) -> None:
    """Refuse options that have no effect with the chosen tools."""
    tools = settings["tools"] or ("pairs",)
    options.only_with("--tool lists", "lists" in tools, "list_selection")
    options.only_with("--tool pairs", "pairs" in tools, "strategy", "refine", "ties", "probe_rate")
    options.only_with("--tool grades", "grades" in tools, "grades", "aspects")
    has_runs = bool(settings["runs"])
    candidates = settings["index"] is not None and not (settings["documents"] or settings["letor"])
    options.only_with("--run or --index", has_runs or candidates, "depth")
    options.only_with("--run", has_runs, "pool")
    options.only_with("--queries", settings["queries"] is not None, "query_format", "ordinal")
    if "lists" in tools and candidates and not has_runs:
        raise click.UsageError("--tool lists compares pages; give two runs or more (--run).")
    if "lists" in tools and has_runs:
        options.only_with("documents to judge, not pages (--tool lists)", False, "pool")
        if len(tools) > 1:
            raise click.UsageError(
                "--tool lists compares pages of the runs, which no other tool can judge; set up "
                "two projects (--name)."
            )
    counted_files = ("queries", "topics", "documents", "letor", "runs")
    if settings["first"] is not None and not any(settings[name] for name in counted_files):
        raise click.UsageError("--first requires queries or documents.")
    if settings["gold_rate"] and settings["gold_questions"] is None:
        raise click.UsageError(
            "--gold-rate needs --gold-questions, the questions with known answers."
        )


def _unused_inputs(tx: stores.Tx, project: stores.Project) -> Iterator[str]:
    """Yield a line for each kind of input that was imported and will not be used."""
    gold_questions = stores.texts.gold_questions_of(tx, project.id, "gold")
    if gold_questions and not project.setting.gold_rate:
        yield (
            f"{len(gold_questions)} known answers are stored and never asked; --gold-rate mixes "
            "them in."
        )
    is_graded = {name == "grades" for name in project.tools}  # a grade has no right document
    unusable = sum((gold["right"] is None) not in is_graded for gold in gold_questions)
    if unusable:
        tools = " and ".join(project.tools)
        yield (
            f"{unusable} of {len(gold_questions)} known answers do not fit the tool {tools}; "
            "not asked."
        )
    documents = {
        row["key"]: stores.texts.documents_of(tx, row["id"])
        for row in stores.texts.of_project(tx, project.id)
    }
    single = [key for key, rows in documents.items() if len(rows) == 1]
    if single and "grades" not in project.tools:
        yield (
            f"{len(single)} queries (such as {single[0]}) have a single document, so that nothing "
            "is compared in them."
        )
    partial = [
        key for key, rows in documents.items() if len({d["prior"] is None for d in rows}) > 1
    ]
    if partial:
        yield (
            f"in {len(partial)} queries (such as {partial[0]}) only some documents have a prior; "
            "it is used only where all have one."
        )


def _counts(imported: imports.ImportCounts) -> str:
    always = (imported.queries, "queries"), (imported.documents, "documents")
    others = (
        (imported.gold_questions, "known answers"),
        (imported.training, "practice questions"),
        (imported.grades, "grades"),
    )
    return ", ".join(counted(*each) for each in (*always, *(o for o in others if o[0])))


def _check_names(settings: dict[str, Any]) -> None:
    """Refuse names with bytes that are not text, which a command line may contain."""
    for name in ("name", "title", "lead", "strategy", *SCALE_OPTIONS, "assessors"):
        words = settings[name] if name == "assessors" else (settings[name],)
        check_text(f"--{name.removesuffix('s')}", *words)


def check_text(option: str, *words: str | None) -> None:
    """Refuse texts that databases cannot store."""
    try:
        for word in words:
            stores.storable(word or "")
    except ValueError as error:
        raise DataError(f"{option} {error}; remove it.") from error


def read_guidelines(path: Path | None) -> str:
    """Return the text of a file; refuse what a database cannot store."""
    if path is None:
        return ""

    data = read_all(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8.") from error
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise DataError(f"{path}:{line}: contains the character NUL; remove it.")
    if len(text) > MAX_GUIDELINES:
        raise DataError(
            f"{path}: has {len(text):,} characters; guidelines have at most {MAX_GUIDELINES:,}."
        )
    return text


def _open_sources(settings: dict[str, Any], files: ExitStack) -> imports.Sources:
    def opened_file(path: Path) -> imports.File:
        check_readable(path)
        return imports.File(str(path), files.enter_context(path.open("rb")))

    opened: dict[str, Any] = {}
    for name in SOURCE_FILES:
        path: Path | None = settings[name]
        if path is not None and name == "collection":
            if not path.is_dir():
                check_readable(path)
            opened[name] = imports.File.local_collection(path)
        elif path is not None:
            opened[name] = opened_file(path)
    if settings["index"] is not None:
        opened["index"] = Index(settings["index"])
    images: Path | None = settings["images"]
    if images is not None and not images.is_dir():
        raise DataError(f"{images}: is not a folder; --images names the folder of pictures.")
    pictures = imports.from_folder(images) if images else imports.Pictures()
    chosen = ("depth", "pool", "seed", "first", "query_format", "ordinal")
    return imports.Sources(
        **opened,
        runs=tuple(map(opened_file, settings["runs"])),
        pictures=pictures,
        pages="lists" in settings["tools"] and bool(settings["runs"]),
        grade_names=_grade_names(settings),
        outcomes=_outcomes(settings),
        **{name: settings[name] for name in chosen},
    )


def _grade_names(settings: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the project's grades, worst first."""
    return stores.grade_names(stores.read_options(read_scales(settings)).grades)


def _outcomes(settings: dict[str, Any]) -> tuple[int, ...]:
    """Return the outcomes of a comparison that the project offers."""
    tools = settings["tools"] or ("pairs",)
    return stores.comparison_outcomes(stores.read_options(_project_options(settings)), tools)


def _source_record(settings: dict[str, Any], sources: imports.Sources) -> dict[str, Any] | None:
    """Return where the documents come from, for the export of features."""
    record: dict[str, Any] = {}
    if sources.index is not None:
        record["index"] = {
            "path": str(sources.index.path.resolve()),
            "fingerprint": sources.index.fingerprint,
        }
    if settings["letor"] is not None:
        record["letor"] = {"path": str(settings["letor"].resolve())}
    return record or None


def _setting(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of judging, as the store saves them."""
    setting = {name: settings[name] for name in ("k", "seed", "refine", *RATES)}
    return {**setting, "strategy": settings["strategy"]} if settings["strategy"] else setting


def _project_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a project, as the store saves them."""
    chosen = {name: settings[name] for name in ("ties", "replicates", "list_selection")}
    chosen |= read_scales(settings)
    return {**chosen, "tools": list(settings["tools"])} if len(settings["tools"]) > 1 else chosen


def _lead(tx: stores.Tx, login: str | None) -> stores.Person | None:
    """Return the person who leads; the first person of a store becomes its administrator."""
    if login is None:
        return None
    return stores.people.ensure(tx, login, admin=not stores.people.any_account(tx))


def first_lead(tx: stores.Tx, project: stores.Project) -> stores.Person | None:
    """Return the lead who joined first and has not left; None if there is none."""
    leads = stores.projects.present(tx, project.id, "lead")
    return stores.people.get(tx, leads[0]) if leads else None


def add_people(
    tx: stores.Tx,
    project: stores.Project,
    assessors: Sequence[str],
    leads: Sequence[str] = (),
    by: stores.Person | None = None,
) -> list[tuple[str, str]]:
    """Add people to a project; return (login, link to set a password) for those without one."""
    links: dict[str, str] = {}
    for role, logins in (("assessor", assessors), ("lead", leads)):
        for login in logins:
            person = stores.people.ensure(tx, login)
            stores.projects.join(tx, project, person, role, by=by)
            known = stores.people.password_hash(tx, person.id) is not None
            if person.login != stores.people.LOCAL and not known:
                links[login] = stores.invitations.first_password_link(tx, person).path
    return list(links.items())


def assign_and_open(
    tx: stores.Tx, project: stores.Project, by: stores.Person
) -> stores.AssignmentPlan:
    """Assign the work to the assessors, and open a project that is not open yet."""
    plan = stores.assigning.assign_tasks(tx, project, by)
    if project.state == "draft":
        stores.projects.set_state(tx, project, "open", by)
    return plan


def print_plan(plan: stores.AssignmentPlan) -> None:
    """Print the work of each person, and what is not covered."""
    print(f"about {plan.judgments:,.0f} judgments, {plan.hours:,.1f} hours in total:")
    for load in plan.workloads:
        work = (
            f"{counted(load.tasks, 'queries')}, {load.judgments:,.0f} judgments, {load.hours:.1f} h"
        )
        print(f"  {load.name}: {work}")
    for problem in plan.problems:
        print(f"note: {problem}")
