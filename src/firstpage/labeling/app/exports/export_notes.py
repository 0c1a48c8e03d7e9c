"""Notes on exports: what they omit, and how reliable they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstpage.labeling.app.analysis.measure import (
    has_grades,
    learned_measure,
    list_judgments,
    skipped_lists,
)
from firstpage.labeling.app.analysis.records import task_judgments
from firstpage.labeling.app.analysis.truth import NotJudged, QueryTruth, judged_queries
from firstpage.labeling.app.exports.make import OPINIONS
from firstpage.labeling.app.store import Project, Tx, adjudication, texts
from firstpage.labeling.app.store.scales import describe_scale
from firstpage.labeling.planning.tasks import format_names


def notes(
    tx: Tx, project: Project, name: str, tool: str | None = None, partial: bool = False
) -> Iterator[str]:
    """Yield the notes on an export, one sentence each; `name` is one of `make.EXPORTS`."""
    if name.startswith(("truth.", "data.", "quepid.")):
        truths, not_judged = judged_queries(tx, project, tool, partial)
        yield from truth_notes(tx, project, truths, not_judged, tool)
        graded = (tool or project.tool) == "grades" and project.options.grades
        if graded and name in ("truth.qrels", "truth.letor", "quepid.csv"):
            yield f"The grades are {describe_scale(project.options.grades)}."
    elif name == "measure.json":
        comparison = learned_measure(tx, project).comparison
        if comparison is not None and comparison.verdict != "better":
            yield _sentence(str(comparison))
    elif name == "preferences.jsonl":
        yield from _preference_notes(tx, project)
    elif name == "pairs.csv":
        yield from _pair_notes(tx, project)


def truth_notes(
    tx: Tx,
    project: Project,
    truths: Sequence[QueryTruth],
    not_judged: Sequence[NotJudged],
    tool: str | None = None,
) -> Iterator[str]:
    """Yield what the truth of a tool omits, and what is not based on an answer."""
    count = len(texts.of_project(tx, project.id))
    unfinished = count - len(truths) - len(not_judged)
    partial = [truth for truth in truths if not truth.finished]
    if partial:
        yield (
            f"{len(partial)} of {count} queries are not finished: their truth is that of the "
            "answers so far; truth.jsonl has its confidence."
        )
    if count and unfinished == count:
        yield f"No query is finished yet; all {count} are left out."
    elif unfinished and partial:
        yield f"{unfinished} of {count} queries are left out: nobody has answered a question."
    elif unfinished:
        yield f"{unfinished} of {count} queries are left out: nobody has finished them."
    if not_judged:
        yield (
            f"{len(not_judged)} of {count} queries are left out, since everything was skipped: "
            f"{format_names(repr(query.query) for query in not_judged)}."
        )
    yield from _skip_notes(truths)
    if (tool or project.tool) != "grades":
        yield from _tie_notes(truths)
    decided = sum(truth.verdicts for truth in truths)
    if decided:
        yield (
            f"{decided} verdict{'s' if decided != 1 else ''} of leads count as "
            f"{project.options.verdict_weight:g} answers each."
        )
    others = [name for name in project.tools if name != (tool or project.tool)]
    if others:
        yield (
            f"Judgments with the tool {' and '.join(others)} are left out; each tool has its own "
            "export."
        )


def _skip_notes(truths: Sequence[QueryTruth]) -> Iterator[str]:
    gaps = [truth for truth in truths if truth.unjudged and truth.finished]
    if gaps:
        count = sum(len(truth.unjudged) for truth in gaps)
        yield (
            f"In {len(gaps)} of {len(truths)} queries "
            f"({format_names(repr(truth.query) for truth in gaps)}) {count} documents were only "
            "skipped: without an answer they have label 0 (unjudged in truth.jsonl)."
        )
    skipped = sum(truth.skipped for truth in truths)
    if skipped:
        questions = skipped + sum(truth.judgments for truth in truths)
        yield (
            f"{skipped} of {questions} questions behind these labels were skipped; truth.jsonl has "
            "the confidence of each order."
        )


def _tie_notes(truths: Sequence[QueryTruth]) -> Iterator[str]:
    """Yield how many documents share a label, and how many ties leave a query undecided."""
    tied = [truth for truth in truths if truth.tied]
    if not tied:
        return
    equal = sum(len(group) for truth in tied for group in truth.tied)
    outside = sum(len(truth.equal_outside) for truth in tied)
    yield (
        f"In {len(tied)} of {len(truths)} queries, {equal} documents were judged equal to another "
        "one and share its label"
        + (f"; {outside} of them are outside of the top k." if outside else ".")
    )
    undecided = [truth for truth in tied if truth.undecided]
    if undecided:
        nothing = sum(not any(truth.labels.values()) for truth in undecided)
        yield (
            f"In {len(undecided)} of {len(truths)} queries, the last tie is above no other "
            f"document; its {sum(len(t.undecided) for t in undecided)} documents have label 0"
            + (f", as do all documents of {nothing} of these queries." if nothing else ".")
        )


def _pair_notes(tx: Tx, project: Project) -> Iterator[str]:
    tasks = [task for task in task_judgments(tx, project) if task.tool == "pairs"]
    skipped = sum(task.skipped for task in tasks)
    if skipped:
        yield f"{skipped} skipped comparisons are left out."
    checks = sum(judgment.kind not in OPINIONS for task in tasks for judgment, _ in task.judgments)
    if checks:
        yield f"{checks} answers to hidden repeats, gold and training questions are left out."
    flagged = sum(bool(judgment.bad) for task in tasks for judgment, _ in task.judgments)
    if flagged:
        yield f"{flagged} comparisons flag a document as bad; only the log (log.csv) tells which."
    others = [name for name in project.tools if name != "pairs"]
    if others:
        yield f"Judgments with the tool {' and '.join(others)} are left out; they are not pairs."


def _preference_notes(tx: Tx, project: Project) -> Iterator[str]:
    skipped = skipped_lists(tx, project)
    if skipped:
        yield f"{skipped} skipped judgments are left out."
    if adjudication.recorded(tx, project, "lists"):
        yield "Verdicts of leads are left out; truth.jsonl takes them into account."
    rows = list(list_judgments(tx, project))
    if rows and not has_grades(tx, project):
        yield (
            "No item of the lists has a grade, so the lists name documents; give "
            "`firstpage dcglearn learn` their judgments (--qrels)."
        )
        return
    ungraded = sum(all(g is None for g in (*row.left, *row.right)) for row in rows)
    if ungraded:
        yield f"{ungraded} of {len(rows)} judgments are of lists without any grade."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
