"""A table for papers: means with superscripts of significance, in LaTeX with booktabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstpage.core import latex_note, latex_tabular, latex_text
from firstpage.evaluation.comparison.letters import system_letter

if TYPE_CHECKING:
    from firstpage.evaluation.comparison.comparison import Comparison

TIE_TOLERANCE = 1e-9
TEST_NAMES = {
    "randomization": "Fisher's randomization test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
CORRECTION_NAMES = {"holm": "Holm correction", "bh": "Benjamini-Hochberg", "none": "no correction"}


def better_than(comparison: Comparison, text: str, alpha: float) -> dict[str, list[str]]:
    """Return the systems that each system is significantly better than, in one measure."""
    sign = -1 if comparison.lower_is_better(text) else 1
    beaten: dict[str, list[str]] = {name: [] for name in comparison.systems}
    for d in comparison.differences:
        if d.measure == text and d.p_corrected < alpha:
            winner, loser = (
                (d.system, d.against) if sign * d.difference > 0 else (d.against, d.system)
            )
            beaten[winner].append(loser)
    return beaten


def signed(comparison: Comparison, text: str) -> list[float]:
    """Return the means of the systems, negated where lower is better."""
    sign = -1 if comparison.lower_is_better(text) else 1
    return [sign * evaluation[text] for evaluation in comparison.evaluations]


def paper_table(
    comparison: Comparison, caption: str | None, label: str | None, digits: int, alpha: float
) -> str:
    """Return a LaTeX table of means; superscripts name the systems that are beaten."""
    names = comparison.systems
    letters = {name: system_letter(n) for n, name in enumerate(names)}
    beaten = {text: better_than(comparison, text, alpha) for text in comparison.texts}
    best = {text: max(signed(comparison, text)) for text in comparison.texts}
    rows = []
    for row, evaluation in enumerate(comparison.evaluations):
        name = evaluation.name
        cells = []
        for text in comparison.texts:
            mean = evaluation.mean_text(text, digits)
            is_best = signed(comparison, text)[row] >= best[text] - TIE_TOLERANCE
            shown = rf"\textbf{{{mean}}}" if is_best else mean
            marks = "".join(sorted(letters[loser] for loser in beaten[text][name]))
            cells.append(shown + (rf"$^{{\mathrm{{{marks}}}}}$" if marks else ""))
        rows.append([letters[name], latex_text(name), *cells])
    head = ["", "System", *map(latex_text, comparison.texts)]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption if caption is not None else _caption(comparison))}}}",
        *([rf"\label{{{label}}}"] if label else []),
        *latex_tabular("ll" + "l" * len(comparison.texts), head, rows),
        latex_note(_legend(comparison, alpha)),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _caption(comparison: Comparison) -> str:
    return f"Means over {len(comparison.queries):,} queries."


def _legend(comparison: Comparison, alpha: float) -> str:
    against = f", against {comparison.baseline}" if comparison.baseline else ""
    return (
        "Superscripts: significantly better than the systems of these letters "
        f"({TEST_NAMES[comparison.test]}, {CORRECTION_NAMES[comparison.correction]}{against}, "
        f"p < {alpha:g}). bold: best mean; says nothing about significance."
    )
