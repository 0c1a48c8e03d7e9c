"""The front page of the report: for a reader with two minutes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from firstpage.demo import words
from firstpage.demo.comparing import extremes, page_of
from firstpage.demo.labeling import K
from firstpage.demo.results import Results
from firstpage.demo.training import RANKERS
from firstpage.report.page import paragraph

BEST_GRADE = 3
STYLE = """
.answer { font-size: 1.25rem; line-height: 1.4; border-left: 4px solid var(--strong);
  padding: .2rem 0 .2rem 1rem; margin: 1.2rem 0; text-wrap: pretty; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(12.5rem, 1fr)); gap: .8rem; }
.tile { border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.tile b { display: block; font-size: 1.7rem; line-height: 1.2; }
.tile span { color: var(--soft); font-size: .9rem; }
.pages { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: .8rem; }
.shown { border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.shown h4 { margin: 0 0 .4rem; font-size: .95rem; color: var(--soft); font-weight: 600; }
.shown ol { margin: 0; padding-left: 1.4rem; } .shown li { padding: .12rem 0; }
.shown code { overflow-wrap: anywhere; font-size: .9rem; }
.stars { color: #bf8700; white-space: nowrap; margin-left: .4rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; } q { font-style: italic; }
pre { background: color-mix(in srgb, var(--line) 35%, transparent); border-radius: .5rem;
  padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem;
  padding-left: 2.2rem; text-indent: -1.4rem; }
@media (max-width: 42rem) { figure { overflow-x: auto; } figure svg { min-width: 38rem; }
  td:not(.n) { white-space: normal; }
  body { margin: 1rem auto; } }
"""


def parts(results: Results) -> list[str]:
    """The answer, four figures, what to do, what people would see."""
    return [
        f'<p class="answer">{escape(words.verdict(results.compared))}</p>',
        _tiles(results),
        f'<p class="note">p: how often luck alone would make equally good rankings differ this '
        f"much, with allowance for {len(RANKERS)} of them having been tried.</p>",
        f"<h3>What to do</h3>{paragraph(words.advice(results.compared, results.labels))}",
        "<h3>What people would see</h3>",
        paragraph(
            f"The first {K} results of two questions: the one that learning helped most, and the "
            "one that it hurt most. Stars are how right an answer is; no star is no answer."
        ),
        *_examples(results),
    ]


def _tiles(results: Results) -> str:
    compared, labels = results.compared, results.labels
    first, n = compared.first_right, results.questions
    shown = [
        (
            f"{first[compared.best]} of {n}",
            f"first results are right with {compared.best}; without learning "
            f"{first[compared.baseline]} of {n}",
        ),
        (
            f"{labels.minutes / 60:.1f} hours",
            f"of people's time (simulated) for {labels.judgments:,} short answers",
        ),
        (
            f"{labels.per_question:.0f} answers",
            f"a question instead of {labels.sorting:.0f} for sorting everything; they find "
            f"{labels.recall:.0%} of what is right",
        ),
        (f"{labels.agreement:.0%}", "of the pairs that two people were asked got the same answer"),
    ]
    tiles = "".join(
        f'<div class="tile"><b>{escape(big)}</b><span>{escape(small)}</span></div>'
        for big, small in shown
    )
    return f'<div class="tiles">{tiles}</div>'


def _examples(results: Results) -> list[str]:
    found = []
    for number, word in zip(extremes(results.compared), ("helped most", "hurt most"), strict=True):
        question = results.collection.questions[results.collection.data.queries[number]]
        found.append(f"<h3>Learning {word}: <q>{escape(question)}</q></h3>")
        pages = [
            _page(name, page_of(results.systems[name], results.collection.data, number, K))
            for name in (results.compared.baseline, results.compared.best)
        ]
        found.append(f'<div class="pages">{"".join(pages)}</div>')
    return found


def _page(name: str, shown: Sequence[tuple[str, int]]) -> str:
    items = "".join(f"<li><code>{escape(key)}</code>{_stars(grade)}</li>" for key, grade in shown)
    return f'<div class="shown"><h4>{escape(name)}</h4><ol>{items}</ol></div>'


def _stars(grade: int) -> str:
    if grade <= 0:
        return ""
    word = f"{grade} of {BEST_GRADE} stars"
    return f'<span class="stars" role="img" aria-label="{word}">{"★" * grade}</span>'


def as_text(results: Results) -> str:
    """The two questions for a terminal."""
    data, lines = results.collection.data, []
    for number, word in zip(extremes(results.compared), ("helped most", "hurt most"), strict=True):
        lines.append(f"Learning {word}: {results.collection.questions[data.queries[number]]!r}")
        for name in (results.compared.baseline, results.compared.best):
            lines.append(f"  {name}")
            for place, (key, grade) in enumerate(
                page_of(results.systems[name], data, number, K), 1
            ):
                lines.append(f"    {place}. {key:<40} {'★' * grade}".rstrip())
    return "\n".join(lines)
