"""What a person should know of an export: what it leaves out, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator

from firstpage.web.findings.measure import learned
from firstpage.web.findings.truth import truths
from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project


def notes(tx: Tx, project: Project, name: str) -> Iterator[str]:
    """Yield a sentence each; names are those of `make.export`."""
    if name.startswith("truth."):
        yield from truth_notes(tx, project, len(truths(tx, project)))
    elif name == "measure.json":
        comparison = learned(tx, project).comparison
        if comparison is not None and comparison.verdict != "better":
            yield _sentence(str(comparison))


def truth_notes(tx: Tx, project: Project, finished: int, tool: str | None = None) -> Iterator[str]:
    """Yield what the truth of a tool leaves out."""
    count = len(texts.of_project(tx, project.id))
    if finished < count:
        yield f"{count - finished} of {count} queries are left out: nobody has finished them."
    others = [name for name in project.tools if name != (tool or project.tool)]
    if others:
        yield f"Judgments with the tool {' and '.join(others)} are left out."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
