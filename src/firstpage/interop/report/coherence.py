"""Reports on the agreement of two measures and on certificates of verdicts, as text and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite

import numpy as np

from firstpage.core import Table, curves
from firstpage.data.preferences import Utility
from firstpage.evaluation.dcglearn import Certificate, Coherence, Verdict, Witness
from firstpage.interop.report.html_page import figure, page, paragraph

VARIED = {
    "both": "gains and discounts",
    "gains": "gains (with the discounts of the measure)",
    "discounts": "discounts (with the gains of the measure)",
    "weights": "weights of positions and grades",
}
MAX_NUMBERS = 12  # gains or discounts that are written out


def coherence_text(coherence: Coherence, verdicts: Sequence[Verdict]) -> str:
    """Return a report on two measures as plain text."""
    bins, worst = bins_table(coherence), worst_table(coherence)
    blocks = [_summary(coherence), systems_table(coherence).text(), agreement_line(coherence)]
    blocks += [table.text() for table in (bins, worst) if table.rows]
    blocks += ["\n".join(verdict_lines(verdict)) for verdict in verdicts]
    return "\n\n".join(blocks)


def _summary(coherence: Coherence) -> str:
    first, second = coherence.measures
    return f"{coherence.queries:,} queries, {len(coherence.systems)} systems: {first} and {second}"


def agreement_line(coherence: Coherence) -> str:
    """Return a sentence on how often the two measures agree."""
    a = coherence.agreement
    return (
        f"The two measures agree on {a.rate:.1%} of {a.pairs:,} pairs of lists (both see a tie in "
        f"{a.both_tie:,}); they contradict each other on {a.oppose:,}, and on {a.one_ties:,} only "
        "one of them sees a tie."
    )


def systems_table(coherence: Coherence) -> Table:
    """Return the means and ranks of the systems under both measures."""
    rows = []
    for name in coherence.orders[0]:
        columns = zip(coherence.means, coherence.orders, strict=True)
        rows.append(
            [name, *(f"{mean[name]:.4f} ({order.index(name) + 1})" for mean, order in columns)]
        )
    pairs = "; ".join(
        f"{pair.a} and {pair.b} ({pair.first:+.3g} by the first, {pair.second:+.3g} by the second)"
        for pair in coherence.differing_pairs
    )
    note = (
        f"The measures order these systems differently: {pairs}."
        if pairs
        else "Both measures order the systems identically."
    )
    return Table(["system", *coherence.measures], rows, note=note)


def bins_table(coherence: Coherence) -> Table:
    """Return the agreement by the absolute difference of the first measure."""
    head = [f"difference in {coherence.measures[0]}", "pairs", "agree", "opposite", "one tie"]
    rows = [
        [
            f"{b.low:.3g} to {b.high:.3g}",
            f"{b.pairs:,}",
            f"{b.rate:.1%}",
            str(b.oppose),
            str(b.one_ties),
        ]
        for b in coherence.agreement.bins
        if b.pairs
    ]
    return Table(head, rows)


def worst_table(coherence: Coherence) -> Table:
    """Return the worst disagreements with the grades of both lists."""
    head = ["query", "system", "grades", "against", "other grades", *coherence.measures]
    rows = [
        [
            d.query,
            d.a,
            _grades(d.grades_a),
            d.b,
            _grades(d.grades_b),
            f"{d.first:+.4f}",
            f"{d.second:+.4f}",
        ]
        for d in coherence.worst_disagreements
    ]
    return Table(
        head, rows, left_aligned=5, note="Worst disagreements; - marks an unjudged document."
    )


def _grades(grades: Sequence[int | None]) -> str:
    return " ".join("-" if g is None else str(g) for g in grades)


def verdict_lines(verdict: Verdict) -> list[str]:
    """Return a verdict and its certificates in sentences."""
    v = verdict
    if v.tie:
        return [f"{v.better} and {v.worse} tie in {v.measure}: there is no verdict to certify."]
    lines = [f"{v.better} beats {v.worse} by {v.difference:+.4f} in {v.measure}."]
    any_discounts = "" if v.decreasing else ", with discounts that need not decrease"
    outcome = _certificate(v.unrestricted, v.nearest_witness)
    lines.append(f"  For any compatible {VARIED[v.vary]}{any_discounts}: {outcome}")
    lines.append(f"  {_radius(v)}")
    if v.within is not None and v.factor is not None:
        outcome = _certificate(v.within, v.nearest_witness)
        lines.append(f"  For all steps within a factor of {v.factor:g}: {outcome}")
    if not v.normalized and v.vary in ("both", "weights"):
        lines.append(f"  {_dominance(v)}")
    return lines


def _certificate(certificate: Certificate, nearest: Witness | None) -> str:
    witness = certificate.witness
    if witness is not None:
        if nearest is not None and _same_weights(witness.utility, nearest.utility):
            return "the verdict flips, with the same values as at the smallest factor."
        return f"the verdict flips ({witness.difference:+.2g}) with {_values(witness)}."
    return {
        "proven": "the verdict stands (proven).",
        "undecided": "undecided; neither a flip nor a proof was found.",
        "flips": "the verdict flips.",
    }[certificate.state]


def _same_weights(a: Utility, b: Utility) -> bool:
    return np.array_equal(a.weights, b.weights)


def _radius(v: Verdict) -> str:
    if not isfinite(v.proven_factor):
        return "For steps changed by any factor: the verdict stands (proven)."
    proven = floor(v.proven_factor * 1000) / 1000
    stands = f"For all steps within a factor of {proven:g}: the verdict stands (proven)"
    if v.nearest_witness is None:
        return f"{stands}; no flip was found beyond it."
    flips = ceil(v.flip_factor * 1000) / 1000
    return f"{stands}; it flips at {flips:g} with {_values(v.nearest_witness)}."


def _dominance(v: Verdict) -> str:
    """Return a sentence on the count that contradicts the verdict most."""
    row, column = divmod(int(v.count_differences.argmin()), v.count_differences.shape[1])
    smallest = float(v.count_differences[row, column])
    if smallest >= 0:
        depth = "depth" if v.decreasing else "position"
        return (
            f"{v.better} dominates: at every {depth} it has at least as many documents of every "
            "minimum grade."
        )
    if not v.decreasing:
        where = f"at position {row + 1}"
    else:
        where = f"in the first {f'{row + 1} positions' if row else 'position'}"
    grade = v.dcg.utility.grades[column + 1]
    return (
        f"Strongest evidence against it: {-smallest:.3f} fewer documents of grade {grade} or more "
        f"{where}, on average."
    )


def _values(witness: Witness) -> str:
    u = witness.utility
    if u.form == "weights":
        return "other weights (see --json), near " + _gains_and_discounts(u)
    return _gains_and_discounts(u)


def _gains_and_discounts(u: Utility) -> str:
    return f"gains {_numbers(u.gains)}; discounts {_numbers(u.discounts)}"


def _numbers(values: Iterable[float]) -> str:
    texts = [f"{v:.3g}" for v in values]
    return ", ".join(texts[:MAX_NUMBERS]) + (", .." if len(texts) > MAX_NUMBERS else "")


# --- HTML


def coherence_page(coherence: Coherence, verdicts: Sequence[Verdict]) -> str:
    """Return a report on two measures as an HTML page."""
    first, second = coherence.measures
    points = [(0.5 * (b.low + b.high), b.rate) for b in coherence.agreement.bins if b.pairs]
    drawing = curves({"agree": points}, "agreement", f"difference in {first}", "fraction")
    caption = "Fraction of pairs on which both measures agree, by the difference in the first."
    agreement = [
        paragraph(agreement_line(coherence)),
        figure(drawing, caption),
        bins_table(coherence).html(),
    ]
    worst = worst_table(coherence)
    if worst.rows:
        agreement.append(worst.html())
    sections = [("Systems", [systems_table(coherence).html()]), ("Agreement", agreement)]
    sections += [(f"{v.better} and {v.worse}", _verdict_blocks(v)) for v in verdicts]
    return page(f"{first} and {second}", _summary(coherence) + ".", sections)


def _verdict_blocks(v: Verdict) -> list[str]:
    """Return the HTML blocks of one verdict."""
    blocks = [paragraph(line.strip()) for line in verdict_lines(v)]
    utilities = {v.measure: v.dcg.utility}
    nearest, other = v.nearest_witness, v.unrestricted.witness
    if nearest is not None:
        utilities["nearest that flips"] = nearest.utility
    if other is not None and not (nearest and _same_weights(other.utility, nearest.utility)):
        utilities["another that flips"] = other.utility
    if len(utilities) > 1:
        blocks.append(_utilities_figure(utilities, "gains"))
        blocks.append(_utilities_figure(utilities, "discounts"))
    blocks.append(_counts_table(v).html())
    return blocks


def _utilities_figure(utilities: dict[str, Utility], quantity: str) -> str:
    """Return a figure of the gains or discounts of the measure and of its witnesses."""
    series = {}
    for name, u in utilities.items():
        values = (u.gains if quantity == "gains" else u.discounts).tolist()
        xs = u.grades if quantity == "gains" else range(1, len(values) + 1)
        series[name] = list(zip(map(float, xs), values, strict=True))
    axis = "grade" if quantity == "gains" else "position"
    drawing = curves(series, quantity, axis, quantity[:-1])
    return figure(drawing, f"The {quantity} of the measure, and those that flip the verdict.")


def _counts_table(v: Verdict) -> Table:
    grades = v.dcg.utility.grades[1:]
    first = "first positions" if v.decreasing else "position"
    head = [first, *(f"grade {g} or more" for g in grades)]
    rows = [
        [str(j + 1), *(f"{x:+.3f}" for x in row)]
        for j, row in enumerate(v.count_differences.tolist())
    ]
    note = f"How many more documents {v.better} shows than {v.worse}, on average."
    return Table(head, rows, note=note)
