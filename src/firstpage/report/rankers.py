"""Rankers for people: a model's features, and results over folds with published ones beside."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from firstpage.data.formats.row_reader import NO_LIMITS, read_csv_rows
from firstpage.data.io.files import read_all
from firstpage.errors import DataError
from firstpage.rankers.explain import Explanation
from firstpage.rankers.selection.cross_validation import CrossValidation
from firstpage.report import draw
from firstpage.report.page import figure, page
from firstpage.table import Table

WIDE = 40  # characters of the longest bar
SHAPES = 8  # step functions drawn, at most


def _lead(found: Explanation) -> str:
    record: dict[str, Any] = found.model.training
    data = record.get("data") or {}
    text = (
        f"{found.model.ranker}, trained on {data.get('queries', '?')} queries and "
        f"{data.get('documents', '?')} documents"
    )
    if record.get("score") is not None:
        text += f"; {record['measure']} on validation data {record['score']:.4f}"
    return text


def explanation_text(found: Explanation, top: int) -> str:
    """Bars of blocks, to the right for positive and marked for negative weights."""
    rows = found.ordered()[:top]
    most = max((abs(v) for _, v in rows), default=0.0) or 1.0
    width = max((len(n) for n, _ in rows), default=1)
    lines = [_lead(found), "", f"{'feature':<{width}}  {found.kind}"]
    for name, value in rows:
        bar = ("█" if value >= 0 else "░") * max(round(WIDE * abs(value) / most), 1 if value else 0)
        lines.append(f"{name:<{width}}  {value:+.4g}".ljust(width + 14) + bar)
    if len(found.names) > top:
        lines.append(f"({len(found.names) - top} more; --top shows them)")
    if any(v < 0 for _, v in rows):
        lines.append("░ lowers the score")
    return "\n".join(lines)


def explanation_page(found: Explanation, top: int) -> str:
    rows = found.ordered()
    kept = [[n, f"{v:+.6g}"] for n, v in rows]
    curve = [(int(i), m) for i, _, m in found.model.training.get("curve", []) if m is not None]
    drawn = [figure(draw.bars(rows[:top], found.kind), f"{found.kind}, the {top} greatest")]
    if len(curve) > 1:
        title = f"{found.model.training['measure']} on validation data, by iteration"
        drawn.append(figure(draw.line(curve, title), title))
    shapes = [
        figure(draw.steps(*found.steps[n], f"what {n} adds to the score"), n)
        for n, _ in rows[: min(top, SHAPES)]
        if n in found.steps
    ]
    parameters = [[k, str(v)] for k, v in found.model.parameters.items()]
    sections = [
        ("What it looks at", drawn),
        *([("How it reads them", shapes)] if shapes else []),
        ("All features", [Table(["feature", found.kind], kept).html()]),
        ("Parameters", [Table(["parameter", "value"], parameters, left=2).html()]),
    ]
    return page(found.model.ranker, _lead(found), sections)


ALIASES = {"pre": "p", "map": "ap", "meanndcg": "meanndcg"}
TRIAL = {"algorithm", "trial", "measure", "value"}  # columns of a table with a line per number
Results = dict[str, dict[str, str]]
"""Values by measure by method; measures are written small."""


def read_published(path: Path) -> Results:
    """A file, or all files of a folder.

    LETOR 4.0's text ("Algorithm: .." with a line of averages over folds on the testing set); a CSV
    table with one method a line; or one with the columns algorithm, table, trial, measure, value.
    """
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    found: Results = {}
    for file in files:
        data = read_all(file)
        if data.startswith(b"Algorithm:"):
            found |= _letor(data.decode("utf-8", "replace"))
        else:
            found |= _table(file, data)
    return found


def plain(measure: str) -> str:
    """`Pre@5` and `P@5`, `MAP` and `AP` are the same."""
    name, at, cut = measure.strip().lower().partition("@")
    return ALIASES.get(name, name) + at + cut


def _letor(text: str) -> Results:
    name = text.splitlines()[0].partition(":")[2].strip()
    tests = re.split(r"^Performance on ", text, flags=re.M)[1:]
    values: dict[str, str] = {}
    for part in tests:
        if not part.lower().startswith("test"):
            continue
        head: list[str] = []
        for line in part.splitlines():
            cells = line.split()
            if cells and cells[0].lower() in ("folds", "para"):
                head = cells
            elif cells and cells[0].lower() in ("average", "avg") and len(cells) == len(head):
                values |= {plain(m): v for m, v in zip(head[1:], cells[1:], strict=True)}
    return {name: values}


def _table(file: Path, data: bytes) -> Results:
    found: Results = {}
    head = ""
    for where, row in read_csv_rows(str(file), io.BytesIO(data), NO_LIMITS):
        cells = {name.lower(): cell for name, cell in row.items()}
        if {"trial", "measure"} & cells.keys():
            if missing := TRIAL - cells.keys():
                raise DataError(f"{where}: lacks {', '.join(sorted(missing))}.")
            if "test" in cells.get("table", "test") and cells["trial"].lower() == "average":
                found.setdefault(cells["algorithm"], {})[plain(cells["measure"])] = cells["value"]
            continue
        (column, method), *values = row.items()
        head = head or column
        if column != head or not values:
            raise DataError(f"{where}: a line names a method, then its value of each measure.")
        found[method] = {plain(measure): value for measure, value in values}
    if not found:
        raise DataError(f"{file}: holds no results; the first line names the columns.")
    return found


def folds_table(
    found: CrossValidation, source: str, published: Path | None = None, baseline: str | None = None
) -> Table:
    """One row a ranker: mean ± standard error over queries (and ± between seeds).

    With a baseline, ▲ and ▼ where the difference to it is significant.
    """
    rows = []
    marks = _marks(found, baseline)
    for name in found.values:
        cells = [name]
        for m in found.measures:
            cell = f"{found.mean(name, m):.4f} ± {found.over_queries(name, m):.3f}"
            cell += marks.get((name, m), "")
            between = found.over_seeds(name, m)
            cells.append(cell if between is None else f"{cell} (seeds {between:.3f})")
        rows.append(cells)
    if published is not None:
        for name, values in read_published(published).items():
            rows.append([f"published: {name}", *(_short(values, m) for m in found.measures)])
    note = (
        f"{source}: {len(found.queries)} test queries, convention {found.convention}; ± is the "
        "standard error over queries: smaller differences are noise."
    )
    if baseline is not None:
        note += (
            f" ▲ ▼: other than {baseline} at p < 0.05 (randomization test of the difference of "
            "the means over queries, Holm's correction over the rankers)."
        )
    return Table(["ranker", *found.measures], rows, note=note)


def folds_csv(
    found: CrossValidation, published: Path | None = None, baseline: str | None = None
) -> str:
    """For programs: a row per ranker and measure, all digits, one number per cell.

    With a baseline, the difference of the mean to that of the baseline, and its p-value corrected
    by Holm's rule.
    """
    against = {} if baseline is None else {m: found.against(baseline, m) for m in found.measures}
    rows = []
    for name in found.values:
        for m in found.measures:
            between = found.over_seeds(name, m)
            numbers = [found.mean(name, m), found.over_queries(name, m), between]
            numbers += against.get(m, {}).get(name, (None, None))
            rows.append([name, m, *("" if value is None else repr(value) for value in numbers)])
    for name, values in ({} if published is None else read_published(published)).items():
        means = [(m, values.get(plain(m), "")) for m in found.measures]
        rows += [[f"published: {name}", m, mean, *[""] * 4] for m, mean in means]
    head = ["ranker", "measure", "mean", "se_queries", "sd_seeds", "difference", "p"]
    width = len(head) if baseline is not None else len(head) - 2
    return Table(head[:width], [row[:width] for row in rows]).csv()


def _marks(found: CrossValidation, baseline: str | None) -> dict[tuple[str, str], str]:
    if baseline is None:
        return {}
    return {
        (name, m): " ▲" if apart > 0 else " ▼"
        for m in found.measures
        for name, (apart, p) in found.against(baseline, m).items()
        if p < 0.05
    }


def folds_page(
    found: CrossValidation, source: str, published: Path | None = None, baseline: str | None = None
) -> str:
    """The table, and a picture a measure: means with their 95 % intervals over queries."""
    drawn = []
    for m in found.measures:
        rows = []
        for name in found.values:
            mean, reach = found.mean(name, m), 1.96 * found.over_queries(name, m)
            rows.append((name, mean, mean - reach, mean + reach))
        drawn.append(figure(draw.intervals(rows, m), f"{m}: mean and 95 % interval"))
    table = folds_table(found, source, published, baseline)
    sections = [("Results", [table.html()]), ("Pictures", drawn)]
    return page(f"Rankers on {source}", table.note, sections)


def _short(values: dict[str, str], measure: str) -> str:
    text = values.get(plain(measure), "")
    try:
        return f"{float(text):.4f}"
    except ValueError:
        return text
