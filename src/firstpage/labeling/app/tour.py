"""The guided first task: a few questions about sample texts, which explain the judging page.

It has no state on the server: the page sends the number of its step, and nothing is stored but that
a person has finished it.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    items: tuple[str, ...] = ()


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


TIMES = Sample(
    "Boiling times of eggs",
    "For a soft egg, boil it for five minutes; the white is then set, and the yolk is liquid. "
    "For a hard egg, boil it for ten minutes.\n\nTake eggs from the refrigerator early.",
)
CUPS = Sample(
    "A short history of the egg cup",
    "Egg cups were found in Pompeii. In the nineteenth century they were made of silver, porcelain "
    "and wood, often in sets with a stand and spoons.",
)
LONG = Sample(
    "Breakfast like grandmother made it",
    "\n\n".join(
        (
            "My grandmother had twelve hens and a stove that was never cold.",
            "Bread came first, then butter, then the kettle, which sang while the table was set.",
            "The garden gave us chives; the cellar gave us pears, and in winter apples.",
            "We children fetched the eggs, still warm, and were not allowed to run.",
            "She boiled soft eggs for exactly five minutes, counted by two verses of a hymn, and "
            "put them under cold water at once, so that they did not go on cooking.",
        )
    ),
)
WRAPPED = Sample(
    "Eggs in the kitchen",
    "Eggs bind, leaven, color and glaze.  They are beaten for omelets,\n"
    "whipped for meringues, and boiled, soft or hard, for breakfast.\n"
    "How they are boiled is a matter of taste.",
)
SIX = Sample(
    "Soft-boiled eggs",
    "Bring water to a boil. Lower the egg into it with a spoon. Boil it for six minutes, then cool "
    "it in cold water and serve it at once.",
)
SIXTEEN = Sample(
    "Soft-boiled eggs",
    "Bring water to a boil. Lower the egg into it with a spoon. Boil it for sixteen minutes, then "
    "cool it in cold water and serve it at once.",
)
GOOD_LIST = Sample("", items=("Boiling times of eggs", "Soft-boiled eggs", "A history of egg cups"))
BAD_LIST = Sample("", items=("A history of egg cups", "Hens as pets", "Boiling times of eggs"))

START = (
    "This is a short tour with sample texts; none of your answers here is stored. Click a button, "
    "or press the key that it shows. "
)
STEPS: dict[str, tuple[TourStep, ...]] = {
    "pairs": (
        TourStep(
            START + "Choose the document that answers the query better.",
            TIMES,
            CUPS,
            1,
            "The left document answers the query; the right one mentions eggs.",
        ),
        TourStep(
            "Words of the query are marked, and wrapped lines are joined; View switches that off "
            "and on. Long documents scroll, also with ↓ or the space bar.",
            WRAPPED,
            LONG,
            -1,
            "The answer is at the end of the right document: five minutes. A "
            "document is judged by all of it, not by how it starts.",
        ),
        TourStep(
            "These two are nearly the same, and their differences are marked (X).",
            SIX,
            SIXTEEN,
            1,
            "After sixteen minutes an egg is hard. One word can decide.",
        ),
    ),
    "grades": (
        TourStep(
            START + "Grade how well the document answers the query.",
            TIMES,
            None,
            1,
            "It says exactly for how long a soft egg boils: a high grade.",
        ),
        TourStep(
            "Words of the query are marked; H switches that off and on.",
            CUPS,
            None,
            -1,
            "It mentions eggs and does not answer the query: the lowest grade.",
        ),
        TourStep(
            "Long documents scroll with ↓ or the space bar; J joins lines that were wrapped.",
            LONG,
            None,
            1,
            "The answer is at the end: five minutes. All of a document counts.",
        ),
    ),
    "lists": (
        TourStep(
            START + "Choose the list of results that you would rather get.",
            BAD_LIST,
            GOOD_LIST,
            -1,
            "The right list has two good results at its top. The first results count most.",
        ),
        TourStep(
            "Words of the query are marked; H switches that off and on.",
            GOOD_LIST,
            BAD_LIST,
            1,
            "The left list is the one from before; the sides change.",
        ),
    ),
}
DONE = "That was the tour. Z enlarges images, G shows the guidelines, ? shows all keys."


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
    return TaskState(
        0,
        slug,
        tool,
        QUERY,
        number,
        question,
        number,
        (remaining, remaining),
        step is None,
        False,
        shown_options(options),
        DONE if step is None else step.tip,
        documents,
    )


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
    return ShownDocument(
        shown.id, key, shown.title, shown.kind, url, None, shown.fields, shown.items
    )


def check(tool: str, number: int, outcome: int, grades: int = 5) -> tuple[bool, str]:
    """Return whether an answer to a step agrees with the best one, and the explanation."""
    step = STEPS[tool][number]
    if tool == "grades":
        correct = 2 * outcome >= grades if step.best > 0 else outcome == 0
    else:
        correct = outcome * step.best > 0
    return correct, step.explanation
