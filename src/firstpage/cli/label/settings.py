"""`firstpage label settings`: show or change the settings of a project."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.label.setup import (
    SCALE_OPTIONS,
    check_text,
    first_lead,
    list_selections,
    read_guidelines,
    read_scales,
    scale_options,
)
from firstpage.cli.shared import note
from firstpage.core import Table
from firstpage.labeling.app import store as stores

SETTING = ("k", "strategy", "refine", "seed", "repeat_rate", "gold_rate", "probe_rate")
OPTIONS = (
    "ties", "bad", "replicates", "list_selection", "away_after", "training_pass", "verdict_weight",
)  # fmt: skip
OF_TOOL = {
    "strategy": "pairs", "refine": "pairs", "ties": "pairs", "probe_rate": "pairs",
    "list_selection": "lists", "grades": "grades", "aspects": "grades",
}  # fmt: skip
FIXED = {"tool": "tool", "setting": "k, strategy, seed, refine and rates"}


@documented_command(
    "settings", "firstpage label settings shop", "firstpage label settings shop --k 5 --ties"
)
@click.argument("project")
@click.option("--name", metavar="SLUG", help="Project to show or change, if there are several.")
@click.option("--title", metavar="TEXT", help="Title that people see.")
@click.option("--guidelines", type=options.FILE, help="Text file (UTF-8) for the assessors.")
@options.integer("--k", help="Number of top ranks to order.")
@click.option("--strategy", metavar="NAME", help="Strategy that chooses the next pair.")
@click.option("--refine", type=int, metavar="N", help="Additional questions near the k-th rank.")
@click.option("--seed", type=int, metavar="N", help="Seed of everything random.")
@click.option("--repeat-rate", type=float, metavar="X", help="Rate of hidden repeats, 0 to 0.5.")
@click.option("--gold-rate", type=float, metavar="X", help="Rate of gold questions, 0 to 0.5.")
@click.option(
    "--probe-rate",
    type=float,
    metavar="X",
    help="Rate of questions whose answer is implied by others, 0 to 0.5.",
)
@click.option(
    "--verdict-weight",
    type=float,
    metavar="X",
    help="Number of answers that a verdict of a lead counts as, 0 to 1000.",
)
@click.option("--ties/--no-ties", default=None, help="Offer a button for ties.")
@click.option("--bad/--no-bad", default=None, help="Offer buttons for bad documents.")
@click.option("--replicates", type=int, metavar="N", help="Assessors per query.")
@click.option(
    "--list-selection", type=list_selections, help="Strategy that chooses the next pair of lists."
)
@click.option(
    "--away-after", type=int, metavar="SECONDS", help="Time without input until the page asks."
)
@click.option(
    "--training-pass",
    type=float,
    metavar="X",
    help="Fraction of practice questions to answer correctly.",
)
@scale_options
@with_web
def command(project: str, name: str | None, guidelines: Path | None, **chosen: Any) -> None:
    """Show the settings of a project, or change some.

    PROJECT is a folder or a database URL.  k, strategy, refine, seed and rates can change until
    the first answer, since later questions depend on them; the others at any time.
    """
    requested = {key: value for key, value in chosen.items() if value is not None}
    for key in ("title", "strategy", *SCALE_OPTIONS):
        check_text(f"--{key}", requested.get(key))
    changes: dict[str, Any] = {}
    if "title" in requested:
        changes["title"] = requested["title"]
    if guidelines is not None:
        changes["guidelines"] = read_guidelines(guidelines)
    for part, names in (("setting", SETTING), ("options", OPTIONS)):
        values = {key: requested[key] for key in names if key in requested}
        if values:
            changes[part] = values
    scales = read_scales(requested)
    if scales:
        changes["options"] = {**changes.get("options", {}), **scales}
    if not changes:
        with open_store(project) as store, store.read() as tx:
            shown = stores.find_project(tx, name)
            print(_text(shown))
            for part, reason in stores.fixed_settings(tx, shown).items():
                note(f"{FIXED[part]} cannot change any more. {reason}")
        return
    with open_store(project) as store, store.write() as tx:
        before = stores.projects.find_project(tx, name)
        _check_tools(before, requested)
        changed = stores.projects.change(tx, before, changes, first_lead(tx, before))
        assigned = bool(stores.tasks.of_project(tx, before.id))
    print(_text(changed))
    if assigned and changed.options.replicates != before.options.replicates:
        note("the queries are assigned as before; `firstpage label add` assigns them again.")


def _check_tools(project: stores.Project, requested: dict[str, Any]) -> None:
    """Refuse settings that have no effect with the tools of the project."""
    for key in requested:
        tool = OF_TOOL.get(key)
        if tool is not None and tool not in project.tools:
            raise click.UsageError(
                f"--{key.replace('_', '-')} has no effect: the project {project.slug!r} has the "
                f"tool {' and '.join(project.tools)}, not {tool}."
            )


def _text(project: stores.Project) -> str:
    """Return the settings of a project, one per line."""
    source = project.source or {}
    values: dict[str, Any] = {
        "title": project.title,
        "state": project.state,
        "tool": " and ".join(project.tools),
        **asdict(project.setting),
        **{key: value for key, value in project.options.to_dict().items() if key != "tools"},
        **{kind: record["path"] for kind, record in source.items()},
    }
    rows = [[key.replace("_", " "), _shown(value)] for key, value in values.items()]
    return Table([project.slug, ""], rows, left_aligned=2).text()


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return "; ".join(v["name"] if isinstance(v, dict) else str(v) for v in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
