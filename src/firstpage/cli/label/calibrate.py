"""`firstpage label calibrate`: machines against people."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store
from firstpage.cli.shared import note
from firstpage.labeling import MachineCalibration, calibrate, read_records
from firstpage.labeling.app import analysis
from firstpage.labeling.app import store as stores

FORMATS = ("text", "json")


@documented_command("calibrate", "firstpage label calibrate --records judged.jsonl --machine robot")
@click.argument("project", required=False)
@click.option("--name", metavar="SLUG", help="Project to analyze, if the store has several.")
@click.option(
    "--records",
    type=options.FILE,
    help="Judgments of your own (JSON lines) by people and machines, instead of PROJECT.",
)
@click.option(
    "--machine",
    "machines",
    multiple=True,
    metavar="LOGIN",
    help="Assessor that is a machine; may be repeated. All programs of PROJECT if there is none.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    default=0.05,
    metavar="NUMBER",
    help="How much less often than another person a trusted machine may agree with a person.",
)
@options.as_json
@options.output(*FORMATS, help="Write the report to this file.")
def command(
    project: str | None,
    name: str | None,
    records: Path | None,
    machines: tuple[str, ...],
    margin: float,
    as_json: bool,
    output: Path | None,
) -> None:
    """Compare the judgments of machines with those of people.

    PROJECT is a folder or a database URL.  The report says whether a machine can take the place of
    a person, tests its biases, and lists the queries on which people are still needed.
    """
    if (project is None) == (records is None):
        raise click.UsageError("give a project, or --records.")
    if records is not None and not machines:
        raise click.UsageError("--records requires --machine.")
    if records is not None and name is not None:
        raise click.UsageError("--name requires a project.")
    kind = outputs.report_format(None, as_json, output, FORMATS)
    if project is not None:
        calibrations = _of_project(project, name, margin, machines)
    else:
        assert records is not None
        calibrations = calibrate(read_records(records), list(machines), margin=margin)
    for calibration in calibrations:
        if calibration.left_out:
            note(
                f"{calibration.machine}: {calibration.left_out} queries are left out, since their "
                "answers were examples in its prompt."
            )
    if kind == "json":
        text = json.dumps([calibration.to_dict() for calibration in calibrations], indent=2)
    else:
        text = "\n\n".join(str(calibration) for calibration in calibrations)
    outputs.write_text(text, output)


def _of_project(
    location: str, name: str | None, margin: float, machines: tuple[str, ...]
) -> list[MachineCalibration]:
    with open_store(location) as store, store.read() as tx:
        return analysis.project_calibration(tx, stores.find_project(tx, name), margin, machines)
