"""Reports on evaluations and comparisons, in all output formats."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from firstpage.core import NOTATIONS, FirstpageError, Table
from firstpage.evaluation import (
    comparison as comparing,  # the face: only a comparison loads what is behind it
)
from firstpage.evaluation.measures import (
    Bounds,
    Evaluation,
    bounds_table,
    distributions,
    effective_queries,
    format_p,
    means_of_measures,
    means_of_systems,
    segment_means_table,
)
from firstpage.interop.report.html_page import figure, page, paragraph

if TYPE_CHECKING:
    from firstpage.evaluation.comparison import Comparison, Difference, Segments, WinsAndLosses

FORMATS = ("text", "json", "csv", "markdown", "latex", "html")
MAX_PAIRS = 6  # comparisons whose most different queries are listed
BEST = "best mean; says nothing about significance"
SIGNIFICANT = "corrected p below .05"
NO_INTERVAL = ("", "")


def render(
    result: Evaluation | Sequence[Evaluation] | Comparison,
    format: str,
    source: str = "",
    wins: WinsAndLosses | None = None,
) -> str:
    """Return a result in one of the output formats."""
    checked_format(format)
    if isinstance(result, Evaluation):
        result = [result]
    if isinstance(result, Sequence):
        if format == "json":
            rows = [{"system": e.name, **e.to_dict()} for e in result]
            return _json(rows if len(rows) > 1 else result[0].to_dict())
        if format == "html":
            return _evaluations_page(result, source)
        return _evaluations(result, format)
    if format == "json":
        more = {} if wins is None else {"wins": wins.to_dict()}
        return _json(result.to_dict() | more)
    if format == "html":
        return _comparison_page(result, source, wins)
    return _comparison(result, format, wins)


def _json(value: Any) -> str:
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def checked_format(format: str) -> str:
    """Return the format if it is known; raise FirstpageError otherwise."""
    if format not in FORMATS:
        raise FirstpageError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    return format


def _finite(value: Any) -> Any:
    """Return a value that JSON can represent: infinite numbers and NaN become null."""
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- evaluations


def evaluations_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return a row per measure for one system, or a row per system for several."""
    first = evaluations[0]
    if len(evaluations) == 1:
        head = ["measure", "mean"] + (["95 % interval"] if first.intervals else [])
        rows = [[text, *_mean_cells(first, text)] for text in first.texts]
        return Table(head, rows)
    counts = [len(e.queries) for e in evaluations]
    differ = len(set(counts)) > 1
    head = ["system", *(["queries"] if differ else []), *first.texts]
    rows = []
    for e, count in zip(evaluations, counts, strict=True):
        cells = [" ".join(_mean_cells(e, text)) for text in e.texts]
        rows.append([e.name, *([f"{count:,}"] if differ else []), *cells])
    kind = first.interval_kind
    note = f"[..]: 95 % {kind} interval of the mean" if first.intervals else ""
    return Table(head, rows, note=note)


def evaluation_tables(evaluations: Sequence[Evaluation]) -> list[Table]:
    """Return the means, the bounds for unjudged documents, and the means by segment."""
    tables = [evaluations_table(evaluations)]
    if all(e.bounds for e in evaluations):
        tables.append(bounds_table(evaluations))
    if every := dict.fromkeys(segment for e in evaluations for segment in e.segments):
        by_segment = {
            segment: [e.segments[segment] for e in evaluations if segment in e.segments]
            for segment in every
        }
        tables.append(segment_means_table(evaluations[0].by, by_segment))
    return tables


def _mean_cells(e: Evaluation, text: str) -> list[str]:
    """Return the mean, and its interval where there is one."""
    return [e.mean_text(text), *([e.interval_text(text)] if e.intervals else [])]


def _evaluations_csv(evaluations: Sequence[Evaluation]) -> str:
    """Return a row per system and measure with all digits, and one number per cell.

    With segments, their name heads a column; its cells are "all" in the rows of all queries.
    """
    bounded = all(e.bounds for e in evaluations)
    head = ["system", "measure", "mean", "low", "high"]
    head += ["condensed", "relevant"] if bounded else []
    parts = [("all", e) for e in evaluations]
    parts += [(segment, part) for e in evaluations for segment, part in e.segments.items()]
    rows = []
    for segment, e in parts:
        for text in e.texts:
            numbers = [e[text], *e.intervals.get(text, NO_INTERVAL)]
            numbers += e.bounds.get(text, NO_INTERVAL) if bounded else ()
            rows.append([e.name, text, *map(str, numbers), segment])
    if evaluations[0].by:
        return _system_table([*head, evaluations[0].by], rows, evaluations).csv()
    return _system_table(head, [row[:-1] for row in rows], evaluations).csv()


def _system_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], evaluations: Sequence[Evaluation]
) -> Table:
    """Return a table whose first column is the system; with one system, without that column."""
    first = 0 if len(evaluations) > 1 else 1
    return Table(head[first:], [row[first:] for row in rows])


def _evaluations(evaluations: Sequence[Evaluation], format: str) -> str:
    if format == "csv":
        return _evaluations_csv(evaluations)
    tables = [NOTATIONS[format](table) for table in evaluation_tables(evaluations)]
    return "\n\n".join(tables if format == "latex" else [_summary(evaluations), *tables])


def _summary(evaluations: Sequence[Evaluation]) -> str:
    """Return the number of queries and the convention."""
    counts = sorted({len(e.queries) for e in evaluations})
    ends = counts if len(counts) < 2 else (counts[0], counts[-1])
    noun = "query" if counts == [1] else "queries"
    queries = " to ".join(f"{n:,}" for n in ends)
    weights = evaluations[0].weights
    weighted = "" if weights is None else f" (weighted; as {effective_queries(weights):,.1f} equal)"
    return f"{queries} {noun}{weighted}, convention {evaluations[0].convention}"


def _evaluations_page(evaluations: Sequence[Evaluation], source: str) -> str:
    single = evaluations[0] if len(evaluations) == 1 else None
    means = [table.html() for table in evaluation_tables(evaluations)]
    drawings = [] if single is None else means_of_measures(single)
    for text in evaluations[0].texts if single is None else ():
        drawings += means_of_systems(evaluations, text)
    means += [figure(*drawing) for drawing in drawings]
    texts = evaluations[0].texts
    histograms = [figure(*d) for d in distributions(evaluations, texts, named=single is None)]
    subject = single.name or source or "a ranking" if single else f"{len(evaluations)} rankings"
    sections = [("Means", means), ("Distribution over queries", histograms)]
    return page(f"Evaluation of {subject}", _summary(evaluations), sections)


# --- comparisons


def means_table(comparison: Comparison) -> Table:
    """Return a row per system with its means."""
    evaluations = comparison.evaluations
    rows = [[e.name, *map(e.mean_text, comparison.texts)] for e in evaluations]
    bold = set()
    for column, text in enumerate(comparison.texts, 1):
        means = [e[text] for e in evaluations]
        best = means[comparison.systems.index(comparison.best(text))]
        bold |= {
            (row, column)
            for row, mean in enumerate(means)
            if abs(mean - best) <= comparing.TIE_TOLERANCE
        }
    head = ["system", *comparison.texts]
    return Table(head, rows, bold=frozenset(bold), bold_legend=BEST, bold_mark="◂")


def differences_table(comparison: Comparison) -> Table:
    """Return a row per difference of two systems in a measure."""
    head = [
        "measure", "system", "against", "difference", "95 % interval", "p",
        f"p {comparison.correction}", "p Tukey", "effect", "wins/ties/losses",
    ]  # fmt: skip
    rows = [
        [
            d.measure,
            d.system,
            d.against,
            f"{d.difference:+.4f}",
            f"[{d.low:+.4f}, {d.high:+.4f}]",
            format_p(d.p),
            format_p(d.p_corrected),
            format_p(d.p_tukey),
            f"{d.effect:+.2f}",
            f"{d.wins}/{d.ties}/{d.losses}",
        ]
        for d in comparison.differences
    ]
    bold = frozenset((r, 6) for r, d in enumerate(comparison.differences) if d.p_corrected < 0.05)
    return Table(head, rows, left_aligned=3, bold=bold, bold_legend=SIGNIFICANT, bold_mark="†")


def queries_table(comparison: Comparison, text: str) -> Table:
    """Return the queries that differ most in one measure."""
    rows = []
    differences = _differences_in(comparison, text)
    for d in differences[:MAX_PAIRS]:
        for query, gap in comparison.most_different(text, d.system, d.against, 5):
            rows.append([d.system, d.against, query, f"{gap:+.4f}"])
    note = (
        f"the most different queries of the first {MAX_PAIRS} of {len(differences)} comparisons"
        if len(differences) > MAX_PAIRS
        else ""
    )
    return Table(
        ["system", "against", "query", f"difference in {text}"], rows, note=note, left_aligned=3
    )


def _differences_in(comparison: Comparison, text: str) -> list[Difference]:
    return [d for d in comparison.differences if d.measure == text]


def _test_line(comparison: Comparison) -> str:
    """Return a line on the queries, the test and the correction."""
    base = f"against {comparison.baseline}" if comparison.baseline else "every pair"
    return (
        f"{_summary(comparison.evaluations[:1])}; {comparison.test} test, {comparison.correction} "
        f"correction within each measure, {base}."
    )


def _comparison_csv(comparison: Comparison) -> str:
    """Return a row per difference with all digits, and the means and bounds of both systems.

    With segments the rows of all queries are followed by those of each segment, without bounds.
    """
    names = [f.name for f in fields(comparing.Difference)]
    head = [*names, "mean", "mean_against"]
    if all(e.bounds for e in comparison.evaluations):
        head += [name + side for name in Bounds._fields for side in ("", "_against")]
    rows = _difference_rows(comparison, comparison.differences)
    segments = comparison.segments
    if segments is not None:
        head, rows = [segments.name, *head], [["all", *row] for row in rows]
        for segment, part in segments.parts.items():
            for row in _difference_rows(part, segments.differences[segment]):
                rows.append([segment, *row, *[""] * (len(head) - 1 - len(row))])
    return Table(head, rows).csv()


def _difference_rows(comparison: Comparison, differences: Iterable[Difference]) -> list[list[str]]:
    evaluations = {e.name: e for e in comparison.evaluations}
    rows = []
    for d in differences:
        pair = evaluations[d.system], evaluations[d.against]
        row = [str(getattr(d, f.name)) for f in fields(d)]
        row += [repr(e[d.measure]) for e in pair]
        for bound in Bounds._fields:
            row += [repr(getattr(e.bounds[d.measure], bound)) for e in pair if e.bounds]
        rows.append(row)
    return rows


def segment_tables(segments: Segments) -> list[Table]:
    """Return the means, differences and interactions of segments, as far as there are any."""
    tables = [segments.means_table(), segments.differences_table(), segments.interactions_table()]
    return [table for table in tables if table.rows]


def _comparison(comparison: Comparison, format: str, wins: WinsAndLosses | None) -> str:
    segments = comparison.segments
    if format == "csv":
        return _comparison_csv(comparison)
    notation: Callable[[Table], str] = NOTATIONS[format]
    tables = [means_table(comparison), differences_table(comparison), *_bounds(comparison)]
    if len(comparison.systems) > 2:
        tables.append(comparing.rank_systems(comparison).summary_table())
    tables += [] if segments is None else segment_tables(segments)
    if format == "latex":
        tables[1] = replace(tables[1], note=_test_line(comparison))
        return "\n\n".join([comparison.to_latex(), *(notation(t) for t in tables[1:])])
    tables += [queries_table(comparison, comparison.texts[0])]
    tables += [] if wins is None else wins.tables()
    notes = [f"{wins.note}."] if wins is not None and wins.note else []
    return "\n\n".join([_test_line(comparison), *(notation(t) for t in tables if t.rows), *notes])


def _bounds(comparison: Comparison) -> list[Table]:
    """Return the means by what unjudged documents are, if they were computed."""
    evaluations = comparison.evaluations
    return [bounds_table(evaluations)] if all(e.bounds for e in evaluations) else []


def _comparison_page(comparison: Comparison, source: str, wins: WinsAndLosses | None) -> str:
    means = [table.html() for table in (means_table(comparison), *_bounds(comparison))]
    sections: list[tuple[str, list[str]]] = [("Means", means)]
    for text in comparison.texts:
        drawings = means_of_systems(comparison.evaluations, text)
        drawings += comparing.differences_of_systems(comparison, text)
        blocks = [figure(*drawing) for drawing in drawings]
        most_different = queries_table(comparison, text)
        if most_different.rows:
            blocks.append(most_different.html())
        sections.append((text, blocks))
    note = paragraph(
        "p: probability of a difference at least this large if the systems do not differ. The "
        "corrected p accounts for the number of comparisons; Tukey's p accounts for all systems "
        "together. Effect: mean difference divided by its standard deviation."
    )
    sections.insert(1, ("Differences", [differences_table(comparison).html(), note]))
    if len(comparison.systems) > 2:
        sections.insert(1, ("Ranking", _ranking_blocks(comparison)))
    segments = comparison.segments
    if segments is not None:
        blocks = [table.html() for table in segment_tables(segments)]
        sections.insert(2, (f"By {segments.name}", blocks))
    if wins is not None:
        notes = [paragraph(wins.note)] if wins.note else []
        sections.append(("Wins and losses", [*(t.html() for t in wins.tables()), *notes]))
    title = "Comparison of " + (f"systems on {source}" if source else "systems")
    return page(title, _test_line(comparison), sections)


def _ranking_blocks(comparison: Comparison) -> list[str]:
    """Return the order of the systems, and a matrix of their differences, per measure."""
    blocks = []
    for text in comparison.texts:
        ranks = comparing.rank_systems(comparison, text)
        blocks += [ranks.summary_table().html(), ranks.matrix_table().html()]
    return [*blocks, hardest_table(comparison, comparison.texts[0]).html()]


def hardest_table(comparison: Comparison, text: str, count: int = 10) -> Table:
    """Return the queries with the lowest mean over all systems in one measure."""
    values = comparison.values(text)
    means = values.mean(axis=0)
    order = (means if not comparison.lower_is_better(text) else -means).argsort(kind="stable")
    rows = [
        [comparison.queries[int(q)], f"{means[q]:.4f}", *(f"{v:.4f}" for v in values[:, q])]
        for q in order[:count]
    ]
    head = ["query", "mean", *comparison.systems]
    return Table(head, rows, f"Hardest queries in {text}")


# --- values per query


def per_query_text(evaluations: list[Evaluation], format: str) -> str:
    """Return the values of every query."""
    if format == "json":
        by_system = {
            e.name: {q: dict(zip(e.texts, values, strict=True)) for q, values in _per_query(e)}
            for e in evaluations
        }
        single = by_system[evaluations[0].name]
        return json.dumps(by_system if len(evaluations) > 1 else single, indent=1)
    rows = [
        [e.name, query, *map(repr, values)] for e in evaluations for query, values in _per_query(e)
    ]
    separator = "\t" if format == "tsv" else ","
    head = ["system", "query", *evaluations[0].texts]
    return _system_table(head, rows, evaluations).csv(separator)


def _per_query(e: Evaluation) -> list[tuple[str, list[float]]]:
    """Return the values of all measures per query."""
    return list(zip(e.queries, e.values.T.tolist(), strict=True))
