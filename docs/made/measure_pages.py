"""The pages of the measures on the site: a page per measure, with a picture and an example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np

from firstpage import evaluate
from firstpage.core import FirstpageError, charts
from firstpage.evaluation.measures import Measure, measure_classes
from made.markdown import toctree
from made.measures import measure_files, measure_section, overview

DEPTH = 20
SCORES, LABELS, QUERIES = [4, 3, 2, 1], [0, 2, 1, 0], [1, 1, 1, 1]


def measure_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages with their names: the list of the measures, and a page per measure."""
    names = [cls.__name__.lower() for cls in measure_classes()]
    own = re.compile(rf"\]\(#({'|'.join(names)})\)")
    text = own.sub(r"](measures/\1.md)", "\n".join([*overview(), *measure_files()]))
    yield "measures.md", text + toctree(f"measures/{name}" for name in names)
    for cls in measure_classes():
        text = "\n".join([*measure_section(cls), *_example(cls)]).replace("## ", "# ", 1)
        yield f"measures/{cls.__name__.lower()}.md", re.sub(r"\]\((?=\w+\.md)", "](../", text)


@cache
def measure_pictures() -> dict[str, str]:
    """Return a chart per measure by its name: the value by the rank of the relevant document."""
    labels, scores = np.eye(DEPTH).ravel(), np.tile(-np.arange(DEPTH, dtype=float), DEPTH)
    queries = np.repeat(np.arange(DEPTH), DEPTH)
    pictures = {}
    for cls in measure_classes():
        if (shown := _shown(cls)) is None:
            continue
        values = evaluate(scores, labels, qid=queries, measures=shown).per_query(shown)
        if np.ptp(values) > 0:  # the others do not depend on the order
            points = list(zip(range(1, DEPTH + 1), values.tolist(), strict=True))
            title = f"{shown} where the only relevant document is at this rank"
            drawing = charts.curves({shown: points}, title, "rank", shown)
            pictures[cls.__name__.lower()] = charts.stacked([(drawing, title)], title).svg
    return pictures


def _shown(cls: type[Measure]) -> str | None:
    """Return the measure as its page shows it, None where labels of documents do not suffice."""
    for text in (f"{cls.__name__}@10", cls.__name__):
        try:
            evaluate(SCORES, LABELS, qid=QUERIES, measures=text)
        except FirstpageError:
            continue
        return text
    return None


def _example(cls: type[Measure]) -> list[str]:
    """Return the picture of a measure, and its value on a small list."""
    if (shown := _shown(cls)) is None:
        return []
    lines, name = list[str](), cls.__name__.lower()
    if name in measure_pictures():
        alt = f"A curve: {shown} where the only relevant document is at rank 1 to {DEPTH}."
        for theme, suffix in (("light", ""), ("dark", "-dark")):
            lines += [f"![{alt}](../images/measures/{name}{suffix}.svg){{.only-{theme}}}"]
    value = evaluate(SCORES, LABELS, qid=QUERIES, measures=shown)[shown]
    code = f"fp.evaluate({SCORES}, {LABELS}, qid={QUERIES}, measures={shown!r})[{shown!r}]"
    lines += ["", "**Example**", "", "Four documents of a query, by their scores and labels:", ""]
    return [
        *lines,
        "```pycon",
        ">>> import firstpage as fp",
        f">>> {code}",
        f"{value:.4f}",
        "```",
        "",
    ]
