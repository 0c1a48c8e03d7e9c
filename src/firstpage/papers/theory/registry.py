"""All checks, functions that run them, and reports of their results as text and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import wrap
from time import perf_counter
from zlib import crc32

import numpy as np

from firstpage.core import DataError, ParameterError, Progress, Table
from firstpage.interop.report import page, paragraph
from firstpage.papers.cheng2014.theorems import CHECKS as CHENG2014
from firstpage.papers.lan2013.theorems import CHECKS as LAN2013
from firstpage.papers.theory.checks import PAPERS, CheckResult, TheoremCheck
from firstpage.papers.theory.consistency import Consistency
from firstpage.papers.xia2009.theorems import CHECKS as XIA2009
from firstpage.papers.zhou2013.theorems import CHECKS as ZHOU2013

WIDTH = 100  # characters per line of text
FALSE_AS_PRINTED = "false as printed"


def short_verdict(result: CheckResult) -> str:
    """Return the verdict in one to three words, with the kind of statement."""
    if result.evidence.holds:
        return "corrected: holds" if result.check.kind == "corrected" else "holds"
    return FALSE_AS_PRINTED if result.check.kind == "printed" else "does not hold"


def format_numbers(numbers: Mapping[str, float]) -> str:
    """Return names and values in a line."""
    return ", ".join(f"{name}: {format_number(value)}" for name, value in numbers.items())


def format_number(value: float) -> str:
    """Return an integer with separators, or four significant digits."""
    if value == int(value) if abs(value) < 1e15 else False:
        return f"{int(value):,}"
    return f"{value:.4g}"


def short_name(check: TheoremCheck) -> str:
    """Return the name of a check without its paper."""
    return check.name.partition("/")[2]


def group_by_paper(results: Sequence[CheckResult]) -> dict[str, list[CheckResult]]:
    """Return the results by title of their paper."""
    groups: dict[str, list[CheckResult]] = {}
    for result in results:
        groups.setdefault(PAPERS[result.check.paper], []).append(result)
    return groups


def summary(results: Sequence[CheckResult]) -> list[str]:
    """Return how many results are as recorded, and false statements with their corrections."""
    unexpected = [result for result in results if not result.as_recorded]
    lines = [f"{len(results)} checks, {len(results) - len(unexpected)} as recorded."]
    lines += [f"NOT as recorded: {r.check.name}: {r.verdict}." for r in unexpected]
    false = [r for r in results if r.check.kind == "printed" and not r.evidence.holds]
    for result in false:
        name = result.check.name
        corrections = [short_name(r.check) for r in results if r.check.corrects == name]
        remark = result.check.note
        if corrections and not remark:
            remark = f"corrected by {', '.join(corrections)}"
        lines.append(f"False as printed: {name}; {remark}".rstrip("; ") + ".")
    return lines


def theory_text(results: Sequence[CheckResult]) -> str:
    """Return the report for a terminal."""
    blocks = []
    for paper, group in group_by_paper(results).items():
        blocks.append("\n".join([paper, "─" * len(paper), *(_check_text(r) for r in group)]))
    return "\n\n".join([*blocks, "\n".join(summary(results))])


def _check_text(result: CheckResult) -> str:
    """Return verdict, name and statement; below them the numbers and a counterexample."""
    check, evidence = result.check, result.evidence
    kind = " (ours)" if check.kind == "ours" else ""
    mark = "" if result.as_recorded else "  NOT AS RECORDED"
    head = f"{short_verdict(result):<16}  {short_name(check)}{kind}: {check.claim}{mark}"
    lines = _wrapped(head, 18)
    lines += _wrapped(" " * 18 + format_numbers(evidence.numbers), 18)
    if evidence.example:
        lines += _wrapped(" " * 18 + f"counterexample: {evidence.example}", 18)
    if check.note and not evidence.holds:
        lines += _wrapped(" " * 18 + check.note, 18)
    return "\n".join(lines)


def _wrapped(text: str, indent: int) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def checks_table(checks: Sequence[TheoremCheck]) -> Table:
    """Return a row per check: name, kind, recorded result and statement."""
    rows = [[c.name, c.kind, "holds" if c.holds else "false", c.claim] for c in checks]
    return Table(["check", "kind", "recorded", "claim"], rows, left_aligned=4)


def theory_page(results: Sequence[CheckResult]) -> str:
    """Return a page: the summary, then a table per paper with numbers and counterexamples."""
    sections: list[tuple[str, list[str]]] = [("Summary", [paragraph(x) for x in summary(results)])]
    for paper, group in group_by_paper(results).items():
        rows = [[short_verdict(r), short_name(r.check), r.check.claim] for r in group]
        bold = frozenset((row, 0) for row, r in enumerate(group) if not r.evidence.holds)
        table = Table(["verdict", "check", "claim"], rows, left_aligned=3, bold=bold).html()
        items = "".join(_evidence_item(r) for r in group)
        sections.append((paper, [table, f"<ul>{items}</ul>"]))
    lead = "Each claim was tested on random and on adversarial cases."
    return page("Theorems of the papers, tested", lead, sections)


def _evidence_item(result: CheckResult) -> str:
    evidence = result.evidence
    example = ""
    if evidence.example:
        example = f'<p class="note">counterexample: {escape(evidence.example)}</p>'
    name, numbers = escape(short_name(result.check)), escape(format_numbers(evidence.numbers))
    return f"<li>{name}: {numbers}{example}</li>"


def clause_table(result: Consistency) -> Table:
    """Return a row per clause of the definition, with how often it failed."""
    rows = [
        [c.name, "holds" if c.holds else "fails", f"{c.failed:,} of {c.tested:,}", c.text]
        for c in result.sensitivity.clauses
    ]
    return Table(["clause", "", "failed", "definition"], rows, left_aligned=4)


def agreement_text(result: Consistency) -> str:
    """Return in a sentence how often minimum risk and the Bayes ranker have the same top k."""
    agreement = result.agreement
    text = (
        f"On {agreement.agree} of {agreement.spaces} order-preserving spaces the minimum risk has "
        f"the most probable top {agreement.k} on top"
    )
    if agreement.uncertified:
        text += f"; in {agreement.uncertified} no minimum could be certified"
    if not agreement.agree:
        return text + "."
    return (
        text
        + f" (smallest margin {agreement.margin:.3g}, certificate {agreement.certificate:.1e})."
    )


def counterexamples(result: Consistency) -> list[str]:
    """Return a sentence per failed clause, and one for a space with a wrong top k."""
    sentences = [f"{c.name} fails: {c.example}." for c in result.sensitivity.clauses if c.example]
    if result.agreement.example:
        sentences.append(f"counterexample: {result.agreement.example}.")
    return sentences


def loss_text(results: Mapping[str, Consistency]) -> str:
    """Return the report on losses, by name, for a terminal."""
    blocks = []
    for name, result in results.items():
        head = f"{name}: {result.verdict} ({result.sensitivity.n} objects)"
        lines = [*_wrapped(head, 2), "", clause_table(result).text(), ""]
        lines += _wrapped(agreement_text(result), 0)
        lines += [line for text in counterexamples(result) for line in _wrapped(text, 2)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def loss_page(results: Mapping[str, Consistency]) -> str:
    """Return the report on losses, by name, as a page."""
    sections = [
        (
            name,
            [
                paragraph(f"{result.verdict}.".capitalize()),
                clause_table(result).html(),
                paragraph(agreement_text(result)),
                *map(paragraph, counterexamples(result)),
            ],
        )
        for name, result in results.items()
    ]
    lead = "Top-k order sensitivity clause by clause, and a test of what follows from it."
    return page("Is it consistent with the top-k true loss?", lead, sections)


CHECKS: tuple[TheoremCheck, ...] = (*XIA2009, *LAN2013, *CHENG2014, *ZHOU2013)
DEFAULT_SAMPLES = 2000


def select_checks(names: Sequence[str]) -> list[TheoremCheck]:
    """Return the checks with these names or prefixes of names; all checks without names."""
    if not names:
        return list(CHECKS)
    for name in names:
        if not any(check.name.startswith(name) for check in CHECKS):
            raise DataError(f"no check begins with {name!r}; --list shows all.")
    # A full name selects one check, although longer names may begin with it.
    exact = {check.name for check in CHECKS} & set(names)
    prefixes = tuple(name for name in names if name not in exact)
    return [c for c in CHECKS if c.name in exact or (prefixes and c.name.startswith(prefixes))]


def check_theorems(
    *names: str, samples: int = DEFAULT_SAMPLES, seed: int = 0, progress: Progress | None = None
) -> list[CheckResult]:
    """Test theorems of the papers on random and on adversarial cases.

    A statement that holds was not refuted in any trial; a false one comes with a counterexample.
    Some statements are false as printed, and recorded as such.

    Parameters
    ----------
    *names : str
        Names of checks, such as "lan2013/theorem-1", or what names begin with, such as
        "zhou2013"; by default all checks.
    samples : int, default 2000
        Amount of testing: roughly the number of score vectors of a bound.
    seed : int, default 0
        Seed of the random numbers.  Each check has its own random stream, so that its result
        does not depend on which other checks run.
    progress : callable, optional
        Called with the number of finished checks and the number of all checks.

    Returns
    -------
    list of CheckResult
        One per check, in the order of the papers.

    Raises
    ------
    DataError
        If no check has a name, or if `samples` is less than 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> (result,) = fp.papers.check_theorems("zhou2013/example-1")
    >>> result.verdict, result.as_recorded
    ('holds', True)
    >>> int(result.evidence.numbers["flips at power"])
    3
    """
    if samples < 1:
        raise ParameterError(f"samples must be an integer of at least 1; got {samples}.")
    return run_checks(select_checks(names), samples, seed, progress)


def run_checks(
    checks: Iterable[TheoremCheck] = CHECKS,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[CheckResult]:
    """Return the results of checks, each run with a random stream of its name."""
    selected = list(checks)
    results = []
    for done, check in enumerate(selected):
        if progress is not None:
            progress(done, len(selected))
        start = perf_counter()
        rng = np.random.default_rng([seed, crc32(check.name.encode())])
        evidence = check.run(rng, samples)
        results.append(CheckResult(check, evidence, perf_counter() - start))
    return results
