"""Reports on rankers: features of a model, and cross-validation beside published results."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from firstpage.core import DataError, Table, charts
from firstpage.data.formats import NO_LIMITS, read_csv_rows
from firstpage.data.io import read_all
from firstpage.interop.report.html_page import figure, page
from firstpage.learning.models import Explanation
from firstpage.learning.rankers import CrossValidation

BAR_WIDTH = 40  # characters of the longest bar
MAX_EFFECTS = 8  # step functions that are drawn


def _summary(explanation: Explanation) -> str:
    """Return a line on the ranker, its training data and its validation score."""
    record: dict[str, Any] = explanation.model.training
    data = record.get("data") or {}
    text = explanation.model.ranker
    if "queries" in data and "documents" in data:
        text += f", trained on {data['queries']} queries and {data['documents']} documents"
    elif "imported" in record:
        text += f", imported from {record['imported'].split()[0]}"
    if record.get("score") is not None:
        text += f"; {record['measure']} on validation data {record['score']:.4f}"
    return text


def explanation_text(explanation: Explanation, top: int) -> str:
    """Return the most important features of a model as plain text."""
    rows = explanation.ordered()[:top]
    largest = max((abs(value) for _, value in rows), default=0.0) or 1.0
    width = max((len(name) for name, _ in rows), default=1)
    lines = [_summary(explanation), "", f"{'feature':<{width}}  {explanation.kind}"]
    for name, value in rows:
        length = max(round(BAR_WIDTH * abs(value) / largest), 1 if value else 0)
        bar = ("█" if value >= 0 else "░") * length
        lines.append(f"{name:<{width}}  {value:+.4g}".ljust(width + 14) + bar)
    if len(explanation.names) > top:
        lines.append(f"({len(explanation.names) - top} more; --top shows them)")
    if any(value < 0 for _, value in rows):
        lines.append("░ lowers the score")
    return "\n".join(lines)


def explanation_page(explanation: Explanation, top: int) -> str:
    """Return a page on the features of a model."""
    rows = explanation.ordered()
    kind, training = explanation.kind, explanation.model.training
    values = [[name, f"{value:+.6g}"] for name, value in rows]
    curve = [(int(i), score) for i, _, score in training.get("curve", []) if score is not None]
    figures = [figure(charts.bars(rows[:top], kind), f"{kind}, the {top} largest")]
    if len(curve) > 1:
        title = f"{training['measure']} on validation data, by iteration"
        figures.append(figure(charts.line(curve, title), title))
    effects = [
        figure(charts.steps(*explanation.steps[name], f"contribution of {name} to the score"), name)
        for name, _ in rows[: min(top, MAX_EFFECTS)]
        if name in explanation.steps
    ]
    parameters = [[name, str(value)] for name, value in explanation.model.parameters.items()]
    sections = [
        ("Most important features", figures),
        *([("Feature effects", effects)] if effects else []),
        ("All features", [Table(["feature", kind], values).html()]),
        ("Parameters", [Table(["parameter", "value"], parameters, left_aligned=2).html()]),
    ]
    return page(explanation.model.ranker, _summary(explanation), sections)


ALIASES = {"pre": "p", "map": "ap", "meanndcg": "meanndcg"}
TRIAL_COLUMNS = {"algorithm", "trial", "measure", "value"}  # of a table with a value per line
PublishedResults = dict[str, dict[str, str]]
"""Values by method and by measure; names of measures are in lower case."""


def read_published(path: Path) -> PublishedResults:
    """Read published results from a file, or from all files of a folder.

    Formats are the text of LETOR 4.0 ("Algorithm: .." with a line of averages over folds on the
    testing set); a CSV table with a method per line; and one with the columns algorithm, table,
    trial, measure, value.
    """
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    results: PublishedResults = {}
    for file in files:
        data = read_all(file)
        if data.startswith(b"Algorithm:"):
            results |= _read_letor(data.decode("utf-8", "replace"))
        else:
            results |= _read_table(file, data)
    return results


def normalized_name(measure: str) -> str:
    """Return the name of a measure in lower case; `Pre@5` is `p@5`, and `MAP` is `ap`."""
    name, at, cutoff = measure.strip().lower().partition("@")
    return ALIASES.get(name, name) + at + cutoff


def _read_letor(text: str) -> PublishedResults:
    """Return the averages on the testing set of a LETOR 4.0 result file."""
    name = text.splitlines()[0].partition(":")[2].strip()
    blocks = re.split(r"^Performance on ", text, flags=re.M)[1:]
    values: dict[str, str] = {}
    for block in blocks:
        if not block.lower().startswith("test"):
            continue
        head: list[str] = []
        for line in block.splitlines():
            cells = line.split()
            if cells and cells[0].lower() in ("folds", "para"):
                head = cells
            elif cells and cells[0].lower() in ("average", "avg") and len(cells) == len(head):
                values |= {normalized_name(m): v for m, v in zip(head[1:], cells[1:], strict=True)}
    return {name: values}


def _read_table(file: Path, data: bytes) -> PublishedResults:
    """Return the results of a CSV table."""
    results: PublishedResults = {}
    head = ""
    for where, row in read_csv_rows(str(file), io.BytesIO(data), NO_LIMITS):
        cells = {name.lower(): cell for name, cell in row.items()}
        if {"trial", "measure"} & cells.keys():
            if missing := TRIAL_COLUMNS - cells.keys():
                raise DataError(f"{where}: lacks {', '.join(sorted(missing))}.")
            if "test" in cells.get("table", "test") and cells["trial"].lower() == "average":
                values_of_method = results.setdefault(cells["algorithm"], {})
                values_of_method[normalized_name(cells["measure"])] = cells["value"]
            continue
        (column, method), *values = row.items()
        head = head or column
        if column != head or not values:
            raise DataError(f"{where}: a line must have a method, then a value per measure.")
        results[method] = {normalized_name(measure): value for measure, value in values}
    if not results:
        raise DataError(f"{file}: contains no results; the first line must name the columns.")
    return results


def folds_table(
    results: CrossValidation,
    source: str,
    published: Path | None = None,
    baseline: str | None = None,
) -> Table:
    """Return a table of cross-validation results."""
    rows = []
    marks = _significance_marks(results, baseline)
    for name in results.values:
        cells = [name]
        for m in results.measures:
            cell = f"{results.mean(name, m):.4f} ± {results.standard_error(name, m):.3f}"
            cell += marks.get((name, m), "")
            seeds = results.seed_deviation(name, m)
            cells.append(cell if seeds is None else f"{cell} (seeds {seeds:.3f})")
        rows.append(cells)
    if published is not None:
        for name, values in read_published(published).items():
            rows.append([f"published: {name}", *(_cell(values, m) for m in results.measures)])
    note = (
        f"{source}: {len(results.queries)} test queries, convention {results.convention}; ± is the "
        "standard error over queries: smaller differences may be due to chance."
    )
    if baseline is not None:
        note += (
            f" ▲ ▼: differs from {baseline} at p < 0.05 (randomization test of the difference of "
            "means over queries, Holm correction over the rankers)."
        )
    return Table(["ranker", *results.measures], rows, note=note)


def folds_csv(
    results: CrossValidation, published: Path | None = None, baseline: str | None = None
) -> str:
    """Return cross-validation results as CSV: a row per ranker and measure, all digits."""
    tests = (
        {} if baseline is None else {m: results.differences(baseline, m) for m in results.measures}
    )
    rows = []
    for name in results.values:
        for m in results.measures:
            seeds = results.seed_deviation(name, m)
            numbers = [results.mean(name, m), results.standard_error(name, m), seeds]
            numbers += tests.get(m, {}).get(name, (None, None))
            rows.append([name, m, *("" if value is None else repr(value) for value in numbers)])
    for name, values in ({} if published is None else read_published(published)).items():
        means = [(m, values.get(normalized_name(m), "")) for m in results.measures]
        rows += [[f"published: {name}", m, mean, *[""] * 4] for m, mean in means]
    head = ["ranker", "measure", "mean", "se_queries", "sd_seeds", "difference", "p"]
    width = len(head) if baseline is not None else len(head) - 2
    return Table(head[:width], [row[:width] for row in rows]).csv()


def _significance_marks(
    results: CrossValidation, baseline: str | None
) -> dict[tuple[str, str], str]:
    """Return the mark of each significant difference from the baseline, by ranker and measure."""
    if baseline is None:
        return {}
    return {
        (name, m): " ▲" if difference > 0 else " ▼"
        for m in results.measures
        for name, (difference, p) in results.differences(baseline, m).items()
        if p < 0.05
    }


def folds_page(
    results: CrossValidation,
    source: str,
    published: Path | None = None,
    baseline: str | None = None,
) -> str:
    """Return a page on cross-validation results."""
    figures = []
    for m in results.measures:
        rows = []
        for name in results.values:
            mean, half_width = results.mean(name, m), 1.96 * results.standard_error(name, m)
            rows.append((name, mean, mean - half_width, mean + half_width))
        figures.append(figure(charts.intervals(rows, m), f"{m}: mean and 95 % interval"))
    table = folds_table(results, source, published, baseline)
    sections = [("Results", [table.html()]), ("Charts", figures)]
    return page(f"Rankers on {source}", table.note, sections)


def _cell(values: dict[str, str], measure: str) -> str:
    """Return a published value with four decimals, or as it is if it is not a number."""
    text = values.get(normalized_name(measure), "")
    try:
        return f"{float(text):.4f}"
    except ValueError:
        return text
