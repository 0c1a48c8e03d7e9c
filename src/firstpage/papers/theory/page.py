"""Outcomes of checks, and what was found of a loss, as text and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap

from firstpage.papers.theory.checks import PAPERS, Check, Outcome
from firstpage.papers.theory.consistency import Consistency
from firstpage.report.page import page, paragraph
from firstpage.table import Table

WIDTH = 100
FALSE = "false as printed"


def verdict(found: Outcome) -> str:
    """One or two words for an outcome."""
    if found.result.holds:
        return "mended: holds" if found.check.kind == "mended" else "holds"
    return FALSE if found.check.kind == "printed" else "does not hold"


def numbers(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {number(value)}" for name, value in found.items())


def number(value: float) -> str:
    if value == int(value) if abs(value) < 1e15 else False:
        return f"{int(value):,}"
    return f"{value:.4g}"


def short(check: Check) -> str:
    return check.name.partition("/")[2]


def grouped(found: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for each in found:
        groups.setdefault(PAPERS[each.check.paper], []).append(each)
    return groups


def summary(found: Sequence[Outcome]) -> list[str]:
    """How many came out as recorded; what is false as printed, and what stands in its place."""
    off = [each for each in found if not each.as_recorded]
    lines = [f"{len(found)} checks, {len(found) - len(off)} as recorded."]
    lines += [f"NOT as recorded: {each.check.name}: {each.verdict}." for each in off]
    false = [e for e in found if e.check.kind == "printed" and not e.result.holds]
    for each in false:
        mends = [short(e.check) for e in found if e.check.mends == each.check.name]
        after = each.check.note or (f"mended by {', '.join(mends)}" if mends else "")
        lines.append(f"False as printed: {each.check.name}; {after}".rstrip("; ") + ".")
    return lines


def theory_text(found: Sequence[Outcome]) -> str:
    parts = []
    for paper, group in grouped(found).items():
        parts.append("\n".join([paper, "─" * len(paper), *(_entry(each) for each in group)]))
    return "\n\n".join([*parts, "\n".join(summary(found))])


def _entry(found: Outcome) -> str:
    """A check: verdict, name and claim; below it the numbers, and where it fell."""
    kind = " (ours)" if found.check.kind == "ours" else ""
    mark = "" if found.as_recorded else "  NOT AS RECORDED"
    head = f"{verdict(found):<16}  {short(found.check)}{kind}: {found.check.claim}{mark}"
    lines = _wrapped(head, 18)
    lines += _wrapped(" " * 18 + numbers(found.result.numbers), 18)
    if found.result.example:
        lines += _wrapped(" " * 18 + f"such as: {found.result.example}", 18)
    if found.check.note and not found.result.holds:
        lines += _wrapped(" " * 18 + found.check.note, 18)
    return "\n".join(lines)


def _wrapped(text: str, indent: int) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def listing(checks: Sequence[Check]) -> Table:
    rows = [[c.name, c.kind, "holds" if c.holds else "false", c.claim] for c in checks]
    return Table(["check", "form", "recorded", "claim"], rows, left=4)


def theory_page(found: Sequence[Outcome]) -> str:
    """One page: the summary, then a table of every paper with its counter-examples below."""
    sections: list[tuple[str, list[str]]] = [("Summary", [paragraph(x) for x in summary(found)])]
    for paper, group in grouped(found).items():
        rows = [[verdict(e), short(e.check), e.check.claim] for e in group]
        strong = frozenset((r, 0) for r, e in enumerate(group) if not e.result.holds)
        parts = [Table(["verdict", "check", "claim"], rows, left=3, bold=strong).html()]
        items = [
            f"<li>{escape(short(e.check))}: {escape(numbers(e.result.numbers))}"
            + (
                f'<p class="note">such as: {escape(e.result.example)}</p>'
                if e.result.example
                else ""
            )
            + "</li>"
            for e in group
        ]
        sections.append((paper, [*parts, f"<ul>{''.join(items)}</ul>"]))
    lead = "Each claim was run on random and on adversarial cases."
    return page("Theorems of the papers, run", lead, sections)


def clauses(found: Consistency) -> Table:
    rows = [
        [c.name, "holds" if c.holds else "fails", f"{c.failed:,} of {c.tested:,}", c.text]
        for c in found.sensitivity.clauses
    ]
    return Table(["clause", "", "failed", "what it says"], rows, left=4)


def agreed(found: Consistency) -> str:
    each = found.agreement
    text = (
        f"On {each.agree} of {each.spaces} order-preserving spaces the risk is least where the "
        f"likeliest top {each.k} is on top"
    )
    if each.unsure:
        text += f"; in {each.unsure} no least risk could be certified"
    return text + (
        f" (least lead {each.lead:.3g}, certificate {each.slope:.1e})." if each.agree else "."
    )


def examples(found: Consistency) -> list[str]:
    held = [f"{c.name} fails: {c.example}." for c in found.sensitivity.clauses if c.example]
    if found.agreement.example:
        held.append(f"counter-example: {found.agreement.example}.")
    return held


def loss_text(found: Mapping[str, Consistency]) -> str:
    parts = []
    for name, each in found.items():
        head = f"{name}: {each.verdict} ({each.sensitivity.n} objects)"
        lines = [*_wrapped(head, 2), "", clauses(each).text(), "", *_wrapped(agreed(each), 0)]
        parts.append("\n".join([*lines, *(x for e in examples(each) for x in _wrapped(e, 2))]))
    return "\n\n".join(parts)


def loss_page(found: Mapping[str, Consistency]) -> str:
    sections = [
        (name, [paragraph(f"{each.verdict}.".capitalize()), clauses(each).html(),
                paragraph(agreed(each)), *(paragraph(e) for e in examples(each))])
        for name, each in found.items()
    ]  # fmt: skip
    lead = "Top-k order sensitivity clause by clause, and a test of what follows from it."
    return page("Is it consistent with the top-k true loss?", lead, sections)
