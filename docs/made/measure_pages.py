"""The pages of the measures on the site: a page per measure, with a picture and an example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from warnings import catch_warnings

import numpy as np

from firstpage import DiversityQrels, evaluate
from firstpage.core import FirstpageWarning, charts
from firstpage.evaluation.measures import Measure, measure_classes
from made.markdown import Docstring, toctree
from made.measures import measure_files, measure_section, overview

Points = list[tuple[int, float]]
DEPTH = 20
RANKS = range(1, DEPTH + 1)
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
    """Return a chart per measure by its name: of the first scene in which its value changes."""
    pictures = {}
    for cls in measure_classes():
        name = _text(cls)
        for axis, caption, points_of in SCENES:
            if (points_of is _by_subtopic) != cls.of_subtopics:
                continue
            with catch_warnings(action="ignore", category=FirstpageWarning):  # unjudged documents
                points = points_of(name)
            if len({value for _, value in points}) > 1:
                title = f"{name} {caption}"
                drawing = charts.curves({name: points}, title, axis, name)
                pictures[cls.__name__.lower()] = charts.stacked([(drawing, title)], title).svg
                break
    return pictures


def _by_rank(measure: str) -> Points:
    labels, scores = np.eye(DEPTH).ravel(), np.tile(-np.arange(DEPTH, dtype=float), DEPTH)
    queries = np.repeat(np.arange(DEPTH), DEPTH)
    values = evaluate(scores, labels, qid=queries, measures=measure).per_query(measure)
    return list(enumerate(values.tolist(), 1))


def _by_length(measure: str) -> Points:
    qrels = {"q": {str(rank): int(rank in RELEVANT) for rank in JUDGED}}
    runs = ({str(rank): -rank for rank in range(1, 1 + length)} for length in RANKS)
    return list(
        enumerate((evaluate({"q": run}, qrels, measures=measure)[measure] for run in runs), 1)
    )


def _by_subtopic(measure: str) -> Points:
    qrels = DiversityQrels.from_dict({"q": {"1": {"1": 1}, "2": {"second": 1}}})
    others = {str(rank): -rank for rank in RANKS}
    runs = ({"q": others | {"second": 0.5 - rank}} for rank in RANKS[1:])
    return list(enumerate((evaluate(run, qrels, measures=measure)[measure] for run in runs), 2))


RELEVANT, JUDGED = {2, 3, 5, 8, 15}, [1, 2, 3, 4, 5, 6, 8, 9, 12, 15]
SCENES = [
    ("rank", "where the only relevant document is at this rank", _by_rank),
    (
        "length",
        "of a list that ends here: 2, 3, 5, 8 and 15 are relevant, 5 others judged",
        _by_length,
    ),
    ("rank", "where rank 1 covers one subtopic, and this rank the other", _by_subtopic),
]


def _text(cls: type[Measure]) -> str:
    """Return the measure as its page shows it: with a cut-off if it takes one."""
    has_cutoff = any(each.name == "cutoff" for each in fields(cls))
    return f"{cls.__name__}@10" if has_cutoff else cls.__name__


def _example(cls: type[Measure]) -> list[str]:
    """Return the picture of a measure, and its value on a small list."""
    lines, name, shown = list[str](), cls.__name__.lower(), _text(cls)
    if name in measure_pictures():
        caption = re.findall(r"<title>(.*?)</title>", measure_pictures()[name])[0]
        for theme, suffix in (("light", ""), ("dark", "-dark")):
            lines += [
                f"![A curve: {caption}.](../images/measures/{name}{suffix}.svg){{.only-{theme}}}"
            ]
    if cls.of_subtopics:
        return [*lines, "", "**Example**", "", *Docstring.of(cls).example()]
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
