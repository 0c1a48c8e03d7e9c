"""How an Evaluation and a Comparison are shown."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from csv import writer
from dataclasses import fields
from typing import Any

from firstpage.errors import FirstpageError
from firstpage.measures.compare import Comparison, Difference
from firstpage.measures.evaluate import Evaluation
from firstpage.report import draw
from firstpage.report.page import figure, page, paragraph
from firstpage.report.table import NOTATIONS, Table

FORMATS = ("text", "json", "csv", "markdown", "latex", "html")
MOST_PAIRS = 6  # comparisons whose most different queries a report lists


def render(found: Evaluation | Comparison, format: str, source: str = "") -> str:
    """The result in one of FORMATS."""
    checked_format(format)
    if format == "json":
        return json.dumps(_plain(found.to_dict()), indent=2, ensure_ascii=False, allow_nan=False)
    if isinstance(found, Evaluation):
        return _evaluation_page(found, source) if format == "html" else _evaluation(found, format)
    return _comparison_page(found, source) if format == "html" else _comparison(found, format)


def checked_format(format: str) -> str:
    if format not in FORMATS:
        raise FirstpageError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    return format


def _plain(value: Any) -> Any:
    """As JSON can hold it: an infinite number, such as an effect without spread, is null."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- one system


def evaluation_table(found: Evaluation) -> Table:
    head = ["measure", "mean"] + (["95 % interval"] if found.intervals else [])
    rows = []
    for text in found.texts:
        row = [text, f"{found[text]:.4f}"]
        if found.intervals:
            row.append("[{:.4f}, {:.4f}]".format(*found.intervals[text]))
        rows.append(row)
    return Table(head, rows)


def _evaluation_csv(found: Evaluation) -> str:
    """For programs: all digits, one number a cell."""
    bounds = {t: found.intervals.get(t, ("", "")) for t in found.texts}
    rows = [[t, repr(found[t]), *(str(b) for b in bounds[t])] for t in found.texts]
    return Table(["measure", "mean", "low", "high"], rows).csv()


def _comparison_csv(found: Comparison) -> str:
    """For programs: a row a comparison, all digits, with the means of both systems."""
    means = {e.name: e.means for e in found.evaluations}
    names = [f.name for f in fields(Difference)]
    head = [*names, "mean", "mean_against"]
    rows = [
        [
            *(str(getattr(d, name)) for name in names),
            repr(means[d.system][d.measure]),
            repr(means[d.against][d.measure]),
        ]
        for d in found.differences
    ]
    return Table(head, rows).csv()


def _evaluation(found: Evaluation, format: str) -> str:
    if format == "csv":
        return _evaluation_csv(found)
    table = NOTATIONS[format](evaluation_table(found))
    if format == "latex":
        return table
    return f"{_counted(found)}\n\n{table}"


def _counted(found: Evaluation) -> str:
    n = len(found.queries)
    return f"{n:,} quer{'y' if n == 1 else 'ies'}, convention {found.convention.name}"


def _evaluation_page(found: Evaluation, source: str) -> str:
    parts = [evaluation_table(found).html()]
    if found.intervals:
        rows = [(text, found[text], *found.intervals[text]) for text in found.texts]
        parts.append(figure(draw.intervals(rows, "means"), "Means with 95 % bootstrap intervals."))
    spread = [
        figure(draw.histogram(found.per_query(text), text), f"{text}: queries by value.")
        for text in found.texts
    ]
    return page(
        f"Evaluation of {found.name or source or 'a ranking'}",
        _counted(found),
        [("Means", parts), ("Spread over queries", spread)],
    )


# --- several systems


def means_table(found: Comparison) -> Table:
    texts = found.texts
    rows = [[e.name, *(f"{e[text]:.4f}" for text in texts)] for e in found.evaluations]
    bold = frozenset(
        (found.systems.index(found.best(text)), column + 1) for column, text in enumerate(texts)
    )
    return Table(["system", *texts], rows, bold=bold, note="")


def differences_table(found: Comparison) -> Table:
    head = [
        "measure", "system", "against", "difference", "95 % interval", "p", f"p {found.correction}",
        "p Tukey", "effect", "wins/ties/losses",
    ]  # fmt: skip
    rows = [
        [
            d.measure, d.system, d.against, f"{d.difference:+.4f}",
            f"[{d.low:+.4f}, {d.high:+.4f}]",
            _p(d.p), _p(d.p_corrected), _p(d.p_tukey), f"{d.effect:+.2f}",
            f"{d.wins}/{d.ties}/{d.losses}",
        ]
        for d in found.differences
    ]  # fmt: skip
    bold = frozenset((r, 6) for r, d in enumerate(found.differences) if d.p_corrected < 0.05)
    return Table(head, rows, left=3, bold=bold, star="†")


def _p(value: float) -> str:
    return "<.0001" if value < 0.0001 else f"{value:.4f}"


def queries_table(found: Comparison, text: str) -> Table:
    """The queries that differ most on one measure."""
    rows = []
    for d in _of(found, text)[:MOST_PAIRS]:
        for query, gap in found.most_different(text, d.system, d.against, 5):
            rows.append([d.system, d.against, query, f"{gap:+.4f}"])
    return Table(["system", "against", "query", f"difference in {text}"], rows, left=3)


def _of(found: Comparison, text: str) -> list[Difference]:
    return [d for d in found.differences if d.measure == text]


def _test_line(found: Comparison) -> str:
    base = f"against {found.baseline}" if found.baseline else "every pair"
    return (
        f"{_counted(found.evaluations[0])}; {found.test} test, {found.correction} correction "
        f"within each measure, {base}."
    )


def _comparison(found: Comparison, format: str) -> str:
    if format == "csv":
        return _comparison_csv(found)
    notation: Callable[[Table], str] = NOTATIONS[format]
    tables = [means_table(found), differences_table(found)]
    if format == "latex":
        return "\n\n".join(notation(t) for t in tables)
    tables.append(queries_table(found, found.texts[0]))
    stars = "* best mean; † p below .05" if format == "text" else "bold: best mean; p below .05"
    parts = [_test_line(found), *(notation(t) for t in tables if t.rows), stars]
    return "\n\n".join(parts)


def _comparison_page(found: Comparison, source: str) -> str:
    sections: list[tuple[str, list[str]]] = [("Means", [means_table(found).html()])]
    for text in found.texts:
        parts: list[str] = []
        if all(text in e.intervals for e in found.evaluations):
            rows = [(e.name, e[text], *e.intervals[text]) for e in found.evaluations]
            parts.append(figure(draw.intervals(rows, text), f"{text}: means, 95 % intervals."))
        differences = _of(found, text)
        gaps = [(f"{d.system} − {d.against}", d.difference, d.low, d.high) for d in differences]
        caption = "Differences with 95 % intervals; blue where the interval excludes 0."
        parts.append(figure(draw.intervals(gaps, f"differences in {text}", zero=True), caption))
        wins = [(f"{d.system} − {d.against}", d.wins, d.ties, d.losses) for d in differences]
        parts.append(figure(draw.outcomes(wins, "wins, ties, losses"), "Queries won, tied, lost."))
        most = queries_table(found, text)
        if most.rows:
            parts.append(most.html())
        sections.append((text, parts))
    note = paragraph(
        "p: chance of a difference this large between equal systems. The corrected p allows for "
        "the number of comparisons; Tukey's holds for all systems together. Effect: mean "
        "difference over its standard deviation."
    )
    sections.insert(1, ("Differences", [differences_table(found).html(), note]))
    title = "Comparison of " + (f"systems on {source}" if source else "systems")
    return page(title, _test_line(found), sections)


# --- per-query values


def per_query_text(found: list[Evaluation], format: str) -> str:
    """Values of every query: CSV or TSV with a row a query, or JSON."""
    several = len(found) > 1
    if format == "json":
        held: dict[str, Any] = {}
        for e in found:
            rows = {q: dict(zip(e.texts, column, strict=True)) for q, column in _columns(e)}
            held[e.name] = rows
        return json.dumps(held if several else next(iter(held.values())), indent=1) + "\n"
    out = io.StringIO()
    lines = writer(out, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    lines.writerow((["system"] if several else []) + ["query", *found[0].texts])
    for e in found:
        for query, column in _columns(e):
            lines.writerow(([e.name] if several else []) + [query, *(repr(v) for v in column)])
    return out.getvalue()


def _columns(e: Evaluation) -> list[tuple[str, list[float]]]:
    return list(zip(e.queries, e.values.T.tolist(), strict=True))
