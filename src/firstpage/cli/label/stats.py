"""`firstpage label stats`: effort, agreement and consistency of the assessors of a project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store
from firstpage.cli.shared import note
from firstpage.labeling import (
    AssessorProfile,
    Study,
    assessor_profiles,
    read_records,
    read_results,
    study,
    study_page,
)
from firstpage.labeling.app import analysis
from firstpage.labeling.app import store as stores

StudyAndProfiles = tuple[Study, list[AssessorProfile]]
BOOTSTRAP_ROUNDS = 2000


@documented_command(
    "stats", "firstpage label stats shop", "firstpage label stats shop -o study.html"
)
@click.argument("project", required=False)
@click.option("--name", metavar="SLUG", help="Project to analyze, if the store has several.")
@click.option(
    "--records", type=options.FILE, help="Judgments of your own (JSON lines), instead of PROJECT."
)
@click.option("--results", type=options.FILE, help="With --records: final labels (JSON lines).")
@click.option("--symmetrize", is_flag=True, help="Count every pair in both orientations.")
@options.as_json
@options.output(*outputs.PAGES, help="Write to this file: .txt, .json or .html.")
def command(
    project: str | None,
    name: str | None,
    records: Path | None,
    results: Path | None,
    symmetrize: bool,
    as_json: bool,
    output: Path | None,
) -> None:
    """Report effort, agreement and consistency of assessors.

    PROJECT is a folder or a database URL.
    """
    if (project is None) == (records is None):
        raise click.UsageError("give a project, or --records.")
    if records is None and results is not None:
        raise click.UsageError("--results requires --records; a project has its own.")
    if records is not None and name is not None:
        raise click.UsageError("--name requires a project; --records belong to one study.")
    kind = outputs.report_format(None, as_json, output, outputs.PAGES)
    if records is None:
        assert project is not None
        study, profiles = _project_study(project, name, symmetrize)
        questions = _questions(project, name)
    else:
        study, profiles = _file_study(records, results, symmetrize)
        questions = None
    if kind == "json":
        record = {**study.to_dict(), "assessors": [p.to_dict() for p in profiles]}
        if questions is not None:
            record["questions"] = questions["all"]
        outputs.write_text(json.dumps(record, indent=2), output)
    elif kind == "html":
        outputs.write_text(study_page(project or str(records), study, profiles), output)
    else:
        outputs.write_text(str(study), output)
    if questions is not None and questions["all"]["asked"]:
        note(_question_note(questions["all"]))


def _questions(location: str, name: str | None) -> dict[str, Any]:
    with open_store(location) as store, store.read() as tx:
        return analysis.questions(tx, stores.find_project(tx, name))


def _question_note(counts: dict[str, Any]) -> str:
    """Return how the order of the pairs is known, as a sentence."""
    text = (
        f"{counts['asked']:,} pairs were asked, {counts['implied']:,} follow from the answers, and "
        f"{counts['pruned']:,} were never needed"
    )
    probes = counts["transitivity"]
    if not probes["total"]:
        return f"{text}."
    return (
        f"{text}; {probes['hits']} of {probes['total']} implied pairs were confirmed when asked "
        f"({100 * probes['low']:.0f} to {100 * probes['high']:.0f} %)."
    )


def _project_study(location: str, name: str | None, symmetrize: bool) -> StudyAndProfiles:
    with open_store(location) as store, store.read() as tx:
        project = stores.find_project(tx, name)
        skipped = analysis.skipped_questions(tx, project)
        if skipped:
            note(f"{skipped} questions were skipped; no figure includes them.")
        return analysis.project_study(tx, project, symmetrize, BOOTSTRAP_ROUNDS)


def _file_study(records: Path, results: Path | None, symmetrize: bool) -> StudyAndProfiles:
    rows, labels = read_records(records), {} if results is None else read_results(results)
    analysis = study(rows, labels, symmetrize=symmetrize, rounds=BOOTSTRAP_ROUNDS)
    return analysis, assessor_profiles(rows, labels)
