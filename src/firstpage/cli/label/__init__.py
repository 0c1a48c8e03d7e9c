"""`firstpage label`: collect judgments, from planning to the ground truth."""

from __future__ import annotations

import click

from firstpage.cli.help import SectionedGroup

SECTIONS = {
    "Plan": {
        "simulate": ("label.simulate", "Simulate the cost and quality of labeling strategies."),
        "setup": ("label.setup", "Create a labeling project from files."),
        "settings": ("label.settings", "Show the settings of a project, or change some."),
        "add": (
            "label.people:add_command",
            "Add people to a project, and assign its open work again.",
        ),
    },
    "Judge": {
        "serve": ("label.serve", "Serve the labeling application."),
        "judge": ("label.judge", "Let a program judge the open queries of an assessor."),
        "import": ("label.import_ratings", "Record ratings of Quepid as judgments of an assessor."),
    },
    "Use the results": {
        "queries": ("label.queries", "List the queries of a project."),
        "stats": ("label.stats", "Report effort, agreement and consistency of assessors."),
        "calibrate": ("label.calibrate", "Compare the judgments of machines with those of people."),
        "export": (
            "label.export",
            "Export the truth, data to train on, votes on pairs, the log or the report.",
        ),
    },
    "Administer": {
        "link": (
            "label.people:link_command",
            "Print a link by which a person sets a new password.",
        ),
        "tokens": ("label.tokens", "List, create or revoke API tokens."),
        "webhook": ("label.webhook", "Show, set or remove the webhook of a project."),
        "remove": ("label.remove", "Archive, restore or delete a project, queries or documents."),
        "backup": ("label.backup", "Back up a project while it is in use."),
        "restore": ("label.backup:restore_command", "Restore a backup into a new project."),
    },
}


@click.group(
    "label",
    cls=SectionedGroup,
    sections=SECTIONS,
    examples=(
        "firstpage label setup shop --queries queries.jsonl --documents documents.jsonl",
        "firstpage label serve shop --open",
        "firstpage label export shop -o truth.qrels",
    ),
)
def command() -> None:
    """Collect judgments with a labeling application."""
