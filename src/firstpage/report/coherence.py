"""Agreement of two measures and certificates of verdicts, as text and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.certificates.verdicts import Outcome, Verdict, Witness
from firstpage.dcglearn.coherence import Coherence
from firstpage.report.draw import curves
from firstpage.report.page import figure, page, paragraph
from firstpage.table import Table

VARIED = {
    "both": "gains and discounts",
    "gains": "gains (the discounts as they are)",
    "discounts": "discounts (the gains as they are)",
    "weights": "weights of places and grades",
}
MOST = 12  # gains or discounts that are written out


def coherence_text(found: Coherence, verdicts: Sequence[Verdict]) -> str:
    tables = [systems_table(found), bins_table(found), worst_table(found)]
    parts = [_counted(found), tables[0].text(), agreement_line(found)]
    parts += [t.text() for t in tables[1:] if t.rows]
    parts += ["\n".join(sentences(v)) for v in verdicts]
    return "\n\n".join(parts)


def _counted(found: Coherence) -> str:
    n = len(found.systems)
    return f"{found.queries:,} queries, {n} systems: {found.texts[0]} and {found.texts[1]}"


def agreement_line(found: Coherence) -> str:
    a = found.agreement
    return (
        f"Of {a.pairs:,} pairs of lists the two measures agree on {a.rate:.1%} ({a.both_tie:,} "
        f"are ties by both), say the opposite of {a.oppose:,}, and one alone sees a tie in "
        f"{a.one_ties:,}."
    )


def systems_table(found: Coherence) -> Table:
    """Means and places of the systems under both measures."""
    rows = []
    for name in found.orders[0]:
        both = zip(found.means, found.orders, strict=True)
        rows.append([name, *(f"{mean[name]:.4f} ({o.index(name) + 1})" for mean, o in both)])
    note = "; ".join(
        f"{d.a} and {d.b}: {d.first:+.3g} by the first, {d.second:+.3g} by the second"
        for d in found.differing
    )
    note = f"Verdicts that differ: {note}." if note else "Both measures order the systems alike."
    return Table(["system", *found.texts], rows, note=note)


def bins_table(found: Coherence) -> Table:
    head = [f"difference in {found.texts[0]}", "pairs", "agree", "opposite", "one ties"]
    rows = [
        [f"{b.low:.3g} to {b.high:.3g}", f"{b.pairs:,}", f"{b.rate:.1%}", str(b.oppose),
         str(b.one_ties)]
        for b in found.agreement.bins
        if b.pairs
    ]  # fmt: skip
    return Table(head, rows)


def worst_table(found: Coherence) -> Table:
    head = ["query", "system", "grades", "against", "their grades", *found.texts]
    rows = [
        [d.query, d.a, _grades(d.grades_a), d.b, _grades(d.grades_b), f"{d.first:+.4f}",
         f"{d.second:+.4f}"]
        for d in found.worst
    ]  # fmt: skip
    return Table(head, rows, left_aligned=5, note="Worst disagreements; - is an unjudged document.")


def _grades(grades: Sequence[int | None]) -> str:
    return " ".join("-" if g is None else str(g) for g in grades)


def sentences(v: Verdict) -> list[str]:
    """A verdict and how far it goes, a line each."""
    if v.tie:
        return [f"{v.better} and {v.worse} tie in {v.measure}: there is no verdict to turn."]
    lines = [f"{v.better} beats {v.worse} by {v.difference:+.4f} in {v.measure}."]
    free = "" if v.falling else ", discounts falling or not"
    lines.append(f"  Any compatible {VARIED[v.vary]}{free}: {_outcome(v.anyhow, v.nearest)}")
    lines.append(f"  {_radius(v)}")
    if v.within is not None and v.factor is not None:
        lines.append(f"  Within a factor {v.factor:g}: {_outcome(v.within, v.nearest)}")
    if not v.normalized and v.vary in ("both", "weights"):
        lines.append(f"  {_dominance(v)}")
    return lines


def _outcome(found: Outcome, nearest: Witness | None) -> str:
    if found.witness is not None:
        if nearest is not None and same(found.witness.utility, nearest.utility):
            return "flips, with what flips at the least factor."
        return f"flips ({found.witness.difference:+.2g}) with {_shown(found.witness)}."
    return {
        "proven": "stands, proven.",
        "undecided": "undecided: none was found that flips it, and no proof that there is none.",
        "flips": "flips.",
    }[found.state]


def same(a: Utility, b: Utility) -> bool:
    return np.array_equal(a.weights, b.weights)


def _radius(v: Verdict) -> str:
    if not isfinite(v.proven):
        return "Stands for every factor by which its steps may change (proven)."
    stands = f"Stands for all steps within a factor {floor(v.proven * 1000) / 1000:g} (proven)"
    if v.nearest is None:
        return f"{stands}; no flip was found beyond."
    return f"{stands}, flips at {ceil(v.flips * 1000) / 1000:g} with {_shown(v.nearest)}."


def _dominance(v: Verdict) -> str:
    """The entry that speaks most against the verdict, in words."""
    at = divmod(int(v.more.argmin()), v.more.shape[1])
    least = float(v.more[at])
    where = f"the first {at[0] + 1} place{'s' * (at[0] > 0)}" if v.falling else f"place {at[0] + 1}"
    grade = v.scale.utility.grades[at[1] + 1]
    if least >= 0:
        depth = "depth" if v.falling else "place"
        return f"It has no fewer documents of at least any grade, at every {depth}: it dominates."
    return (
        f"Against it speaks most: {-least:.3f} fewer documents of grade {grade} or more in "
        f"{where}, on average."
    )


def _shown(witness: Witness) -> str:
    u = witness.utility
    if u.form == "weights":
        return "other weights (see --json), near to " + _parts(u)
    return _parts(u)


def _parts(u: Utility) -> str:
    return f"gains {_numbers(u.gains)}; discounts {_numbers(u.discounts)}"


def _numbers(values: Iterable[float]) -> str:
    shown = [f"{v:.3g}" for v in values]
    return ", ".join(shown[:MOST]) + (", .." if len(shown) > MOST else "")


# --- a page


def coherence_page(found: Coherence, verdicts: Sequence[Verdict]) -> str:
    drawn = [
        (0.5 * (b.low + b.high), b.rate) for b in found.agreement.bins if b.pairs
    ]  # fmt: skip
    picture = curves({"agree": drawn}, "agreement", f"difference in {found.texts[0]}", "share")
    caption = "The share of pairs on which both say the same, by the first measure's difference."
    agreed = [paragraph(agreement_line(found)), figure(picture, caption), bins_table(found).html()]
    worst = worst_table(found)
    if worst.rows:
        agreed.append(worst.html())
    sections = [("Systems", [systems_table(found).html()]), ("Agreement", agreed)]
    sections += [(f"{v.better} and {v.worse}", _verdict_parts(v)) for v in verdicts]
    title = f"{found.texts[0]} and {found.texts[1]}"
    return page(title, _counted(found) + ".", sections)


def _verdict_parts(v: Verdict) -> list[str]:
    parts = [paragraph(line.strip()) for line in sentences(v)]
    shown = {v.measure: v.scale.utility}
    if v.nearest is not None:
        shown["nearest that flips"] = v.nearest.utility
    other = v.anyhow.witness
    if other is not None and not (v.nearest and same(other.utility, v.nearest.utility)):
        shown["another that flips"] = other.utility
    if len(shown) > 1:
        parts.append(_drawn(shown, "gains"))
        parts.append(_drawn(shown, "discounts"))
    parts.append(_counts_table(v).html())
    return parts


def _drawn(shown: dict[str, Utility], what: str) -> str:
    """Gains over grades, or discounts over places, of the measure and of what turns it."""
    series = {}
    for name, u in shown.items():
        values = (u.gains if what == "gains" else u.discounts).tolist()
        across = u.grades if what == "gains" else range(1, len(values) + 1)
        series[name] = list(zip(map(float, across), values, strict=True))
    axis = "grade" if what == "gains" else "place"
    return figure(curves(series, what, axis, what[:-1]), f"The measure's {what}, and others.")


def _counts_table(v: Verdict) -> Table:
    grades = v.scale.utility.grades[1:]
    head = ["first places" if v.falling else "place", *(f"grade {g} or more" for g in grades)]
    rows = [[str(j + 1), *(f"{x:+.3f}" for x in row)] for j, row in enumerate(v.more.tolist())]
    note = f"How many more documents {v.better} shows than {v.worse}, on average."
    return Table(head, rows, note=note)
