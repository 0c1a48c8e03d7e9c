"""What a person should know of an export: what it leaves out, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstpage.labeling.planning.tasks import format_names
from firstpage.web.analysis.measure import compared, learned, skipped_lists
from firstpage.web.analysis.truth import NotJudged, Truth, judged_queries
from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project


def notes(tx: Tx, project: Project, name: str) -> Iterator[str]:
    """Yield a sentence each; names are those of `make.export`."""
    if name.startswith("truth."):
        found, without = judged_queries(tx, project)
        yield from truth_notes(tx, project, found, without)
        if name != "truth.jsonl":
            yield from _equal_notes(found)
    elif name == "measure.json":
        comparison = learned(tx, project).comparison
        if comparison is not None and comparison.verdict != "better":
            yield _sentence(str(comparison))
    elif name == "preferences.jsonl":
        yield from _preference_notes(tx, project)


def truth_notes(
    tx: Tx, project: Project, found: Sequence[Truth], without: Sequence[NotJudged],
    tool: str | None = None,
) -> Iterator[str]:  # fmt: skip
    """Yield what the truth of a tool leaves out, and what no answer supports."""
    count = len(texts.of_project(tx, project.id))
    unfinished = count - len(found) - len(without)
    if count and unfinished == count:
        yield f"No query is finished yet; all {count} are left out."
    elif unfinished:
        yield f"{unfinished} of {count} queries are left out: nobody has finished them."
    if without:
        yield (
            f"{len(without)} of {count} queries are left out, since everything was skipped: "
            f"{format_names(repr(query.query) for query in without)}."
        )
    yield from _skip_notes(found)
    others = [name for name in project.tools if name != (tool or project.tool)]
    if others:
        yield f"Judgments with the tool {' and '.join(others)} are left out."


def _skip_notes(found: Sequence[Truth]) -> Iterator[str]:
    partly = [truth for truth in found if truth.unjudged]
    if partly:
        count = sum(len(truth.unjudged) for truth in partly)
        yield (
            f"In {len(partly)} of {len(found)} queries "
            f"({format_names(repr(truth.query) for truth in partly)}) {count} documents were only "
            "skipped: no answer places them, so they have label 0 (truth.jsonl: unjudged)."
        )
    skipped = sum(truth.skipped for truth in found)
    if skipped:
        asked = skipped + sum(truth.judgments for truth in found)
        yield (
            f"{skipped} of {asked} questions behind these labels were skipped; the confidence in "
            "truth.jsonl says how far each order can be trusted."
        )


def _equal_notes(found: Sequence[Truth]) -> Iterator[str]:
    count = sum(bool(truth.tied) for truth in found)
    if count:
        yield (
            f"In {count} of {len(found)} queries documents that were called equal, or have the "
            "same grade, get different labels here; truth.jsonl names them (tied)."
        )


def _preference_notes(tx: Tx, project: Project) -> Iterator[str]:
    skipped = skipped_lists(tx, project)
    if skipped:
        yield f"{skipped} skipped judgments are left out."
    rows = list(compared(tx, project))
    bare = sum(all(g is None for g in (*row.left, *row.right)) for row in rows)
    if bare:
        yield f"{bare} of {len(rows)} judgments are of lists without any grade."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
