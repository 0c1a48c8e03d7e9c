"""`firstpage label stats`: effort, agreement and consistency of a project's assessors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from firstpage.cli import options, outputs
from firstpage.cli.shared import note, open_store

if TYPE_CHECKING:
    from firstpage.labeling.statistics.profiles import AssessorProfile
    from firstpage.labeling.statistics.study import Study

    Studied = tuple[Study, list[AssessorProfile]]
ROUNDS = 2000  # of the bootstrap


@click.command("stats")
@click.argument("project", required=False)
@click.option("--name", metavar="SLUG", help="Which project, where the store holds several.")
@click.option(
    "--records", type=options.FILE, help="Instead of PROJECT: judgments of your own (JSON lines)."
)
@click.option("--results", type=options.FILE, help="With --records: final labels (JSON lines).")
@click.option("--symmetrize", is_flag=True, help="Count every pair in both orientations.")
@options.as_json
@options.output(*outputs.PAGES, help="Write here: .txt, .json or .html.")
def command(
    project: str | None, name: str | None, records: Path | None, results: Path | None,
    symmetrize: bool, as_json: bool, output: Path | None,
) -> None:  # fmt: skip
    """Tell how long judging took, how far people agree, and how steady they are.

    PROJECT is a folder or a database URL.
    """
    if (project is None) == (records is None):
        raise click.UsageError("give a project, or --records.")
    if records is None and results is not None:
        raise click.UsageError("--results goes with --records; a project has its own.")
    if records is not None and name is not None:
        raise click.UsageError("--name is for a project; --records are of one study.")
    shown = outputs.chosen_format(None, as_json, output, outputs.PAGES)
    if records is None:
        assert project is not None
        found, people = _of_project(project, name, symmetrize)
    else:
        found, people = _of_files(records, results, symmetrize)
    if shown == "json":
        record = {**found.to_dict(), "assessors": [p.to_dict() for p in people]}
        outputs.deliver(json.dumps(record, indent=2), output)
    elif shown == "html":
        from firstpage.report.labeling import study_page

        outputs.deliver(study_page(project or str(records), found, people), output)
    else:
        outputs.deliver(str(found), output)


def _of_project(project: str, name: str | None, symmetrize: bool) -> Studied:
    with open_store(project) as store, store.read() as tx:
        from firstpage.web.analysis.figures import project_study, skipped_questions
        from firstpage.web.store.projects import find_project

        chosen = find_project(tx, name)
        skipped = skipped_questions(tx, chosen)
        if skipped:
            note(f"{skipped} questions were skipped, and are in no figure.")
        return project_study(tx, chosen, symmetrize, ROUNDS)


def _of_files(records: Path, results: Path | None, symmetrize: bool) -> Studied:
    from firstpage.labeling.statistics.profiles import assessor_profiles
    from firstpage.labeling.statistics.records import read_records, read_results
    from firstpage.labeling.statistics.study import study

    rows, ends = read_records(records), {} if results is None else read_results(results)
    found = study(rows, ends, symmetrize=symmetrize, rounds=ROUNDS)
    return found, assessor_profiles(rows, ends)
