"""How evaluations and a comparison are shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from firstpage.errors import FirstpageError
from firstpage.measures.compare import TIE, Comparison, Difference
from firstpage.measures.evaluate import Evaluation
from firstpage.report import draw
from firstpage.report.page import figure, page, paragraph
from firstpage.table import NOTATIONS, Table

FORMATS = ("text", "json", "csv", "markdown", "latex", "html")
MOST_PAIRS = 6  # comparisons whose most different queries a report lists
BEST = "best mean; says nothing about significance"
SIGNIFICANT = "corrected p below .05"
BLANK = ("", "")  # of a mean without an interval


def render(
    found: Evaluation | Sequence[Evaluation] | Comparison, format: str, source: str = ""
) -> str:
    """The result in one of FORMATS; several evaluations get a row each."""
    checked_format(format)
    if isinstance(found, Comparison):
        if format == "json":
            return _json(found.to_dict())
        return _comparison_page(found, source) if format == "html" else _comparison(found, format)
    several = [found] if isinstance(found, Evaluation) else list(found)
    if format == "json":
        rows = [{"system": e.name, **e.to_dict()} for e in several]
        return _json(rows if len(rows) > 1 else several[0].to_dict())
    return _evaluations_page(several, source) if format == "html" else _evaluations(several, format)


def _json(held: Any) -> str:
    return json.dumps(_plain(held), indent=2, ensure_ascii=False, allow_nan=False)


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


# --- one system, or several side by side


def evaluations_table(found: Sequence[Evaluation]) -> Table:
    """A row per measure of one system; a row per system of several."""
    if len(found) == 1:
        head = ["measure", "mean"] + (["95 % interval"] if found[0].intervals else [])
        rows = [[text, *_shown(found[0], text)] for text in found[0].texts]
        return Table(head, rows)
    counts = [len(e.queries) for e in found]
    differ = len(set(counts)) > 1
    head = ["system", *(["queries"] if differ else []), *found[0].texts]
    rows = []
    for e, count in zip(found, counts, strict=True):
        cells = [" ".join(_shown(e, text)) for text in e.texts]
        rows.append([e.name, *([f"{count:,}"] if differ else []), *cells])
    note = "[..]: 95 % bootstrap interval of the mean" if found[0].intervals else ""
    return Table(head, rows, note=note)


def _shown(e: Evaluation, text: str) -> list[str]:
    """The mean, and its interval where there is one."""
    interval = ["[{:.4f}, {:.4f}]".format(*e.intervals[text])] if e.intervals else []
    return [f"{e[text]:.4f}", *interval]


def _evaluations_csv(found: Sequence[Evaluation]) -> str:
    """For programs: a row per system and measure, all digits, one number per cell."""
    head = ["system", "measure", "mean", "low", "high"]
    rows = [
        [e.name, text, repr(e[text]), *map(str, e.intervals.get(text, BLANK))]
        for e in found
        for text in e.texts
    ]
    return _rows_by_system(head, rows, found).csv()


def _rows_by_system(
    head: Sequence[str], rows: Sequence[Sequence[str]], found: Sequence[Evaluation]
) -> Table:
    """A table whose first column names the system, without it where there is one alone."""
    first = 0 if len(found) > 1 else 1
    return Table(head[first:], [row[first:] for row in rows])


def _evaluations(found: Sequence[Evaluation], format: str) -> str:
    if format == "csv":
        return _evaluations_csv(found)
    table = NOTATIONS[format](evaluations_table(found))
    if format == "latex":
        return table
    return f"{_counted(found)}\n\n{table}"


def _counted(found: Sequence[Evaluation]) -> str:
    counts = sorted({len(e.queries) for e in found})
    shown = " to ".join(f"{n:,}" for n in (counts if len(counts) < 2 else (counts[0], counts[-1])))
    return f"{shown} quer{'y' if counts == [1] else 'ies'}, convention {found[0].convention.name}"


def _evaluations_page(found: Sequence[Evaluation], source: str) -> str:
    single = found[0] if len(found) == 1 else None
    means = [evaluations_table(found).html()]
    if single is not None and single.intervals:
        rows = [(text, single[text], *single.intervals[text]) for text in single.texts]
        means.append(figure(draw.intervals(rows, "means"), "Means with 95 % bootstrap intervals."))
    for text in found[0].texts if single is None else ():
        means += _means_figure(found, text)
    values = [
        figure(
            draw.histogram(e.per_query(text), text),
            f"{text}{'' if single else f' of {e.name}'}: queries by value.",
        )
        for e in found
        for text in e.texts
    ]
    what = found[0].name or source or "a ranking" if single else f"{len(found)} rankings"
    sections = [("Means", means), ("Spread over queries", values)]
    return page(f"Evaluation of {what}", _counted(found), sections)


def _means_figure(found: Sequence[Evaluation], text: str) -> list[str]:
    """A drawing of the systems' means, where all have intervals."""
    if not all(text in e.intervals for e in found):
        return []
    rows = [(e.name, e[text], *e.intervals[text]) for e in found]
    return [figure(draw.intervals(rows, text), f"{text}: means, 95 % intervals.")]


# --- several systems compared


def means_table(found: Comparison) -> Table:
    """A row per system; the best mean of each measure is bold, all of them where several tie."""
    rows = [[e.name, *(f"{e[text]:.4f}" for text in found.texts)] for e in found.evaluations]
    bold = set()
    for column, text in enumerate(found.texts, 1):
        means = [e[text] for e in found.evaluations]
        best = means[found.systems.index(found.best(text))]
        bold |= {(row, column) for row, mean in enumerate(means) if abs(mean - best) <= TIE}
    return Table(
        ["system", *found.texts], rows, bold=frozenset(bold), bold_legend=BEST, bold_mark="◂"
    )


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
    return Table(head, rows, left_aligned=3, bold=bold, bold_legend=SIGNIFICANT, bold_mark="†")


def _p(value: float) -> str:
    return "<.0001" if value < 0.0001 else f"{value:.4f}"


def queries_table(found: Comparison, text: str) -> Table:
    """The queries that differ most on one measure."""
    rows = []
    every = _of(found, text)
    for d in every[:MOST_PAIRS]:
        for query, gap in found.most_different(text, d.system, d.against, 5):
            rows.append([d.system, d.against, query, f"{gap:+.4f}"])
    shown = f"of the first {MOST_PAIRS} of {len(every)} comparisons"
    note = f"the queries that differ most, {shown}" if len(every) > MOST_PAIRS else ""
    return Table(
        ["system", "against", "query", f"difference in {text}"], rows, note=note, left_aligned=3
    )


def _of(found: Comparison, text: str) -> list[Difference]:
    return [d for d in found.differences if d.measure == text]


def _test_line(found: Comparison) -> str:
    base = f"against {found.baseline}" if found.baseline else "every pair"
    return (
        f"{_counted(found.evaluations[:1])}; {found.test} test, {found.correction} correction "
        f"within each measure, {base}."
    )


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


def _comparison(found: Comparison, format: str) -> str:
    if format == "csv":
        return _comparison_csv(found)
    notation: Callable[[Table], str] = NOTATIONS[format]
    tables = [means_table(found), differences_table(found)]
    if format == "latex":
        tables[-1] = replace(tables[-1], note=_test_line(found))
        return "\n\n".join(notation(t) for t in tables)
    tables.append(queries_table(found, found.texts[0]))
    return "\n\n".join([_test_line(found), *(notation(t) for t in tables if t.rows)])


def _comparison_page(found: Comparison, source: str) -> str:
    sections: list[tuple[str, list[str]]] = [("Means", [means_table(found).html()])]
    for text in found.texts:
        parts = _means_figure(found.evaluations, text)
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
    if format == "json":
        held = {
            e.name: {q: dict(zip(e.texts, column, strict=True)) for q, column in _columns(e)}
            for e in found
        }
        return json.dumps(held if len(found) > 1 else held[found[0].name], indent=1)
    rows = [[e.name, query, *map(repr, column)] for e in found for query, column in _columns(e)]
    separator = "\t" if format == "tsv" else ","
    return _rows_by_system(["system", "query", *found[0].texts], rows, found).csv(separator)


def _columns(e: Evaluation) -> list[tuple[str, list[float]]]:
    return list(zip(e.queries, e.values.T.tolist(), strict=True))
