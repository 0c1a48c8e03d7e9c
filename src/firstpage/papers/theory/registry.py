"""All checks in one list, the running of them, and what came of them as text and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import wrap
from time import perf_counter
from zlib import crc32

import numpy as np

from firstpage.errors import DataError
from firstpage.papers.cheng2014.theorems import CHECKS as CHENG2014
from firstpage.papers.lan2013.theorems import CHECKS as LAN2013
from firstpage.papers.theory.checks import PAPERS, Check, Outcome
from firstpage.papers.theory.consistency import Consistency
from firstpage.papers.xia2009.theorems import CHECKS as XIA2009
from firstpage.papers.zhou2013.theorems import CHECKS as ZHOU2013
from firstpage.report.page import page, paragraph
from firstpage.table import Table
from firstpage.types import Progress

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
    return Table(["check", "form", "recorded", "claim"], rows, left_aligned=4)


def theory_page(found: Sequence[Outcome]) -> str:
    """One page: the summary, then a table of every paper with its counter-examples below."""
    sections: list[tuple[str, list[str]]] = [("Summary", [paragraph(x) for x in summary(found)])]
    for paper, group in grouped(found).items():
        rows = [[verdict(e), short(e.check), e.check.claim] for e in group]
        strong = frozenset((r, 0) for r, e in enumerate(group) if not e.result.holds)
        parts = [Table(["verdict", "check", "claim"], rows, left_aligned=3, bold=strong).html()]
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
    return Table(["clause", "", "failed", "what it says"], rows, left_aligned=4)


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


CHECKS: tuple[Check, ...] = (*XIA2009, *LAN2013, *CHENG2014, *ZHOU2013)
SAMPLES = 2000


def chosen(names: Sequence[str]) -> list[Check]:
    """Checks of these names, or whose names begin so; all if none is given."""
    if not names:
        return list(CHECKS)
    for name in names:
        if not any(check.name.startswith(name) for check in CHECKS):
            raise DataError(f"no check begins with {name!r}; --list shows all.")
    # One that is named in full is meant alone, though longer names begin so too.
    exact = {check.name for check in CHECKS} & set(names)
    begins = tuple(name for name in names if name not in exact)
    return [c for c in CHECKS if c.name in exact or (begins and c.name.startswith(begins))]


def run(
    checks: Iterable[Check] = CHECKS, samples: int = SAMPLES, seed: int = 0,
    progress: Progress | None = None,
) -> list[Outcome]:  # fmt: skip
    """Each check with random numbers of its own: which others run changes nothing."""
    every = list(checks)
    found = []
    for done, check in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        begun = perf_counter()
        rng = np.random.default_rng([seed, crc32(check.name.encode())])
        result = check.run(rng, samples)
        found.append(Outcome(check, result, perf_counter() - begun))
    return found
