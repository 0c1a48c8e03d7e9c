"""The guided first task: a few questions about sample texts, which explain the judging page.

Its texts are in `tour.toml`.  It has no state on the server: the page sends the number of its step,
and nothing is stored but that a person has finished it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firstpage.labeling.app.document_html import DocumentContent, content_of
from firstpage.labeling.app.store.options import Options
from firstpage.labeling.app.store.sessions import (
    OpenQuestion,
    ShownDocument,
    ShownQuery,
    TaskState,
    shown_document,
    shown_options,
)

QUERY = ShownQuery(
    "how long to boil a soft egg", "A relevant document says for how many minutes the egg boils."
)


@dataclass(frozen=True)
class Sample:
    """A sample document: a text, or the titles of a list of results."""

    title: str
    text: str = ""
    items: Sequence[str] = ()


@dataclass(frozen=True)
class TourStep:
    """A question of the tour: its documents, a tip, and an explanation of the best answer.

    `best` is the better side (1 left, -1 right); of a single document, whether it is a good one (1)
    or a bad one (-1).
    """

    tip: str
    left: Sample
    right: Sample | None
    best: int
    explanation: str


def _step(samples: Mapping[str, Sample], record: Mapping[str, Any]) -> TourStep:
    values: dict[str, Any] = {"right": None, **record}
    values |= {side: samples[record[side]] for side in ("left", "right") if side in record}
    return TourStep(**values)


_TOUR = tomllib.loads(Path(__file__).with_name("tour.toml").read_text("utf-8"))
_SAMPLES = {name: Sample(**sample) for name, sample in _TOUR["samples"].items()}
STEPS = {tool: [_step(_SAMPLES, s) for s in steps] for tool, steps in _TOUR["steps"].items()}
DONE: str = _TOUR["done"]


def state(slug: str, tool: str, options: Options, number: int = 0) -> TaskState:
    """Return the question of a step; after the last one the task is done."""
    steps = STEPS[tool]
    step = steps[number] if number < len(steps) else None
    documents: dict[str, DocumentContent] = {}
    question = None
    if step is not None:
        shown = [
            _document(f"tour-{tool}-{number}-{side}", position, sample, documents)
            for position, (side, sample) in enumerate((("left", step.left), ("right", step.right)))
            if sample is not None
        ]
        question = OpenQuestion("judgment", shown[0], shown[1] if len(shown) > 1 else None)
    remaining = len(steps) - min(number, len(steps))
    progress = number, (remaining, remaining), step is None, False
    tip = DONE if step is None else step.tip
    task = slug, tool, QUERY, number, question
    return TaskState(0, *task, *progress, shown_options(options), tip, documents)


def _document(
    key: str, number: int, sample: Sample, documents: dict[str, DocumentContent]
) -> ShownDocument:
    """Return a sample as a document to show, and add its content."""
    row: dict[str, Any] = {
        "id": number, "key": key, "title": sample.title, "kind": "text", "body": sample.text,
        "fields": None, "image": None,
    }  # fmt: skip
    if sample.items:
        row |= {"kind": "list", "fields": {"items": [{"title": t} for t in sample.items]}}
    shown = shown_document(row)
    url = f"/documents/{key}"
    documents[url] = content_of(row)
    return replace(shown, url=url)


def check(tool: str, number: int, outcome: int, grades: int = 5) -> tuple[bool, str]:
    """Return whether an answer to a step agrees with the best one, and the explanation."""
    step = STEPS[tool][number]
    if tool == "grades":
        correct = 2 * outcome >= grades if step.best > 0 else outcome == 0
    else:
        correct = outcome * step.best > 0
    return correct, step.explanation
