"""What the README and the manual claim of measures and conventions."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.evaluation.measures.registry import measure_classes
from tests.docs.pages import ROOT, unknown_options


def test_the_number_of_measures() -> None:
    (number,) = re.findall(r"\[(\d+) measures\]", (ROOT / "README.md").read_text())
    assert int(number) == len(measure_classes())


def test_the_number_of_methods() -> None:
    (number,) = re.findall(r"\[(\d+) methods\]", (ROOT / "README.md").read_text())
    pages = {path.stem for path in (ROOT / "docs" / "rankers").glob("*.md")} - {"README"}
    assert int(number) == len(pages)


def test_tables_of_results_are_those_of_the_file(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    results = import_module("made.results")
    tables = []
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.read_text()
        tables += re.findall("<!-- table: (.*?) -->", page)
        assert results.filled(page) == page, f"{path.name}: run `make docs`"
    assert sorted(tables) == sorted(results.TABLES)


FIGURE = r"(?<![\w.,])(?:p = )?[+-]?\d*[.,]?\d+(?: %)?(?![\w%]|[.,]\d)"
LINK = r"\[[^\]]*\]\(([\w./]+\.md)[^)]*\)"


def occurs(figure: str, page: str) -> bool:
    """Return whether a page has a figure; a p-value also as a cell of a table."""
    number = re.escape(figure.removeprefix("p = "))
    start = r"(?:p = |\| \**)" if figure.startswith("p = ") else r"(?<![\w.,])"
    return re.search(rf"{start}{number}(?!\w|[.,]\d)", page) is not None


def figures_not_on_linked_pages(text: str, folder: Path) -> list[str]:
    """Return the figures of rows or paragraphs that stand nowhere on the pages these link."""
    missing = []
    for block in re.findall(r"<!-- figures of the linked pages -->\n(.+?)(?:\n\n|\Z)", text, re.S):
        for unit in block.splitlines() if block.startswith("|") else [block]:
            pages = [(folder / name).read_text() for name in re.findall(LINK, unit)]
            linked = " ".join(" ".join(pages).split())
            own = re.sub(LINK, "", unit) if pages else ""
            missing += [f for f in re.findall(FIGURE, own) if not occurs(f, linked)]
    return missing


def test_repeated_figures_stand_on_the_linked_pages() -> None:
    marked = [p for p in (ROOT / "docs").rglob("*.md") if "<!-- figures of" in p.read_text()]
    assert ROOT / "docs" / "claims.md" in marked
    for page in marked:
        assert figures_not_on_linked_pages(page.read_text(), page.parent) == [], page.name


@pytest.mark.parametrize(
    ("figure", "changed"),
    [
        ("+.0012", "+.0013"), ("p = .30", "p = .31"), ("p = .19", "p = .18"), ("98 %", "93 %"),
        ("800 pairs", "900 pairs"), ("p = .006", "p = .004"),
    ],
)  # fmt: skip
def test_a_changed_digit_of_a_repeated_figure_is_reported(figure: str, changed: str) -> None:
    page = (ROOT / "docs" / "claims.md").read_text()
    summary = page[: page.index("## What each comparison")]
    assert figure in summary
    altered = summary.replace(figure, changed)
    assert figures_not_on_linked_pages(altered, ROOT / "docs")


def test_recorded_results_name_the_commands_that_measure_them(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    results = import_module("results")
    recorded = json.loads(results.FILE.read_text())
    for name, command in results.COMMANDS.items():
        assert recorded[name]["command"] == command, f"python docs/results.py DATA {name!r}"
        if command.startswith("firstpage "):
            assert unknown_options(shlex.split(command)[1:]) == []


OUTPUTS = [  # trec_eval's own tests: expected output, judgments, run, equivalent of its flags
    ("out.test.aq", "qrels.test", "results.test", {}),
    ("out.test.aqc", "qrels.test", "results.trunc", {"queries": "judged"}),
    ("out.test.aqcM", "qrels.test", "results.trunc", {"queries": "judged", "depth": 100}),
    ("out.test.aql", "qrels.rel_level", "results.test", {"rel": 2}),
]
DIFFERENT = r"rbp|rbp_resid|iprec_at_recall|11pt_avg"  # as docs/conventions.md says
NOT_MEASURES = r"runid|relstring"


@pytest.mark.data
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda each: each[0])
def test_all_measures_of_trec_eval_but_the_documented_ones(output, real_data: Path) -> None:
    expected, qrels, run, options = output
    folder = real_data / "trec_eval"
    printed: dict[str, dict[str, str]] = defaultdict(dict)
    for name, query, number in map(str.split, (folder / expected).read_text().splitlines()):
        if not re.match(NOT_MEASURES, name):
            printed[name][query] = number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)  # unjudged documents, mixed queries
        system, truth = fp.read_run(folder / run), fp.read_qrels(folder / qrels)
        evaluation = fp.evaluate(
            system, truth, measures=list(printed), convention=fp.Convention("trec", **options)
        )
    differing = set()
    for name, by_query in printed.items():
        per_query = dict(zip(evaluation.queries, evaluation.per_query(name), strict=True))
        for query, number in by_query.items():
            value = evaluation[name] if query == "all" else per_query[query]
            if f"{value:.{len(number.partition('.')[2])}f}" != number:
                differing.add(name)
    assert len(printed) > 70
    assert all(re.match(DIFFERENT, name) for name in differing), differing
    page = (ROOT / "docs" / "conventions.md").read_text()
    assert all(f"`{name}`" in page for name in DIFFERENT.split("|"))
