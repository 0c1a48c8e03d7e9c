"""The report: a summary in plain sentences, then every step with its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from firstpage.core import Table, charts
from firstpage.demo import sentences
from firstpage.demo.labeling import DEPTH, K
from firstpage.demo.output import FILES, INDEX, RUNS, Folder, command_line
from firstpage.demo.project import ASSESSOR_ERROR_SD, EDITOR_ERROR_SD
from firstpage.demo.rankings import (
    ENCODER,
    FOLDS,
    HYBRID,
    MAIN_MEASURE,
    extremes,
    first_pages,
)
from firstpage.demo.sentences import DemoResults
from firstpage.interop.report import (
    differences_table,
    figure,
    means_table,
    page,
    paragraph,
    utility_figures,
)
from firstpage.learning.models import Explanation

MAX_GRADE = 3
STYLE = "\n" + Path(__file__).with_suffix(".css").read_text("utf-8")


def summary(results: DemoResults) -> list[str]:
    """Return the verdict, four key figures, the advice, and two example questions."""
    return [
        f'<p class="answer">{escape(sentences.verdict(results.compared))}</p>',
        *map(paragraph, sentences.steps(results.compared)),
        _tiles(results),
        '<p class="note">p is the probability of a difference at least this large if the rankings '
        "were equally good, corrected for the rankings compared.</p>",
        f"<h3>What to do</h3>{paragraph(sentences.advice(results.compared, results.labels))}",
        "<h3>What users would see</h3>",
        paragraph(
            f"The first {K} results of two questions: the one that improved most by learning, and "
            "the one that got worst. Stars show the grade of an answer; results without a star "
            "are not relevant."
        ),
        *_examples(results),
    ]


def _tiles(results: DemoResults) -> str:
    compared, labels = results.compared, results.labels
    first, n = compared.first_correct, results.questions
    tiles = [
        (
            f"{first[compared.best]} of {n}",
            f"questions have a correct first result with {compared.best}; "
            f"{first[compared.baseline]} of {n} with {compared.baseline}",
        ),
        (
            f"{labels.minutes / 60:.1f} hours",
            f"of assessors' time (simulated) for {labels.judgments:,} short answers",
        ),
        (
            f"{labels.per_question:.0f} answers",
            f"per question, where sorting all documents takes {labels.sorting_comparisons:.0f}; "
            f"they find {labels.recall:.0%} of the correct answers",
        ),
        (f"{labels.agreement:.0%}", "of the pairs shown to two assessors got the same answer"),
    ]
    html = "".join(
        f'<div class="tile"><b>{escape(figure)}</b><span>{escape(text)}</span></div>'
        for figure, text in tiles
    )
    return f'<div class="tiles">{html}</div>'


EXAMPLES = ("Improved most", "Got worst")


Shown = list[tuple[str, int]]  # documents with their grades


def shown_pages(results: DemoResults, query: str) -> dict[str, Shown]:
    """Return the first pages of the baseline and of the best ranking for a question."""
    answers = results.collection.qrels.to_dict()[query]
    pages = {}
    for name in (results.compared.baseline, results.compared.best):
        documents = first_pages(results.systems[name], K).get(query, [])
        pages[name] = [(key, int(answers.get(key, 0))) for key in documents]
    return pages


def _examples(results: DemoResults) -> list[str]:
    sections = []
    questions = dict(results.collection.queries)
    for query, title in zip(extremes(results.compared), EXAMPLES, strict=True):
        sections.append(f"<h3>{title}: <q>{escape(questions[query])}</q></h3>")
        pages = [_page(name, shown) for name, shown in shown_pages(results, query).items()]
        sections.append(f'<div class="pages">{"".join(pages)}</div>')
    return sections


def _page(name: str, documents: Sequence[tuple[str, int]]) -> str:
    items = "".join(
        f"<li><code>{escape(key)}</code>{_stars(grade)}</li>" for key, grade in documents
    )
    return f'<div class="shown"><h4>{escape(name)}</h4><ol>{items}</ol></div>'


def _stars(grade: int) -> str:
    if grade <= 0:
        return ""
    label = f"{grade} of {MAX_GRADE} stars"
    return f'<span class="stars" role="img" aria-label="{label}">{"★" * grade}</span>'


def examples_text(results: DemoResults) -> str:
    """Return the two example questions for a terminal."""
    questions, lines = dict(results.collection.queries), []
    for query, title in zip(extremes(results.compared), EXAMPLES, strict=True):
        lines.append(f"{title}: {questions[query]!r}")
        for name, shown in shown_pages(results, query).items():
            lines.append(f"  {name}")
            for rank, (key, grade) in enumerate(shown, 1):
                lines.append(f"    {rank}. {key:<40} {'★' * grade}".rstrip())
    return "\n".join(lines)


def _commands(commands_by_title: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each title with its block of commands."""
    blocks = []
    for title, commands in commands_by_title.items():
        if commands:
            pre = "".join(f"<pre>{escape(command)}</pre>" for command in commands)
            blocks.append(paragraph(title + ".") + pre)
    return blocks


def files_table() -> Table:
    """Return the table of the files in the folder."""
    rows = [[name, description] for name, description in FILES.items()]
    rows.append([f"{INDEX}/", "the index of the documents"])
    rows.append([f"{RUNS}/*.run", "the ranking of each system, best first (TREC)"])
    return Table(["file", "content"], rows, left_aligned=2)


TITLE = "Can a better ranking be learned?"
MAX_FEATURES = 8  # shown in the figure


def render(results: DemoResults, model: Explanation, folder: Folder) -> str:
    """Return the report as an HTML page."""
    lead = (
        f"{results.questions} questions about Python's own documentation, "
        f"{len(results.collection.documents):,} entries; all people are simulated"
        + (", except where you judged." if results.labels.reader_questions else ".")
    )
    sections = [
        ("Summary", summary(results)),
        ("1. Labels: what the assessors were asked", _labels(results, folder)),
        ("2. Four rankers", _rankers(results, model)),
        ("3. Which ranking is best, and is the difference significant?", _comparison(results)),
        ("4. A measure learned from editors", _measure(results)),
        ("5. All four rankers combined", _combination(results)),
        ("The commands of every step", [
            paragraph(
                "Run them where you ran the demo. They use the judgments of the simulated people, "
                "and write the same files again; dcglearn learn adds intervals and a test to "
                "measure.json."
            ),
            *_commands(results.commands),
        ]),
        ("Judge yourself", [
            paragraph(
                "These commands set up the same questions and pages for you, and learn from your "
                "judgments. Their files are in the folders mine and mine-pages."
            ),
            *_commands(results.own_commands),
        ]),
        ("Files in this folder", [files_table().html()]),
        ("Duration of each step", _durations(results)),
    ]  # fmt: skip
    return page(TITLE, lead, sections, STYLE)


def _labels(results: DemoResults, folder: Folder) -> list[str]:
    labels = results.labels
    tables = labels.study.tables()[:-1]  # the last one, consistency, is trivial for programs
    return [
        paragraph(sentences.labeling(labels)),
        paragraph(
            "A simulated assessor perceives the true grade of a document with an error of standard "
            f"deviation {ASSESSOR_ERROR_SD:g} (grades differ by 1), and takes about as long as "
            "people did in a published study. Questions, answers and times went through the "
            f"labeling application; {command_line('label', 'serve', folder.path, '--open')} shows "
            "them."
        ),
        *(table.html() for table in tables),
    ]


def _first_stage(results: DemoResults) -> str:
    """Return what retrieves the candidates."""
    if HYBRID not in results.systems:
        return "BM25"
    return f"A hybrid of BM25 and the vectors of {ENCODER}, fused with equal weights,"


def _rankers(results: DemoResults, model: Explanation) -> list[str]:
    rows = model.ordered()[:MAX_FEATURES]
    return [
        paragraph(
            f"{_first_stage(results)} retrieves {DEPTH} candidates per question; they contain "
            f"{results.candidates_recall:.0%} of the correct answers. The rankers order them by "
            "features of question and document. They are trained on the assessors' labels only; "
            f"every question is ranked by models that were trained without it ({FOLDS} folds). The "
            "baseline, BM25, has parameters and weights of fields that were tuned on the same "
            "labels and folds. All rankings are evaluated by the correct answers, which were used "
            "neither for training nor for tuning; answers that were not retrieved count as missed."
        ),
        figure(
            charts.bars(rows, model.kind),
            f"{results.compared.best}, trained on all questions: {model.kind} per feature.",
        ),
    ]


def _comparison(results: DemoResults) -> list[str]:
    comparison = results.compared.comparison
    means = [(e.name, e[MAIN_MEASURE], *e.intervals[MAIN_MEASURE]) for e in comparison.evaluations]
    differences = [d for d in comparison.differences if d.measure == MAIN_MEASURE]
    intervals = [(d.system, d.difference, d.low, d.high) for d in differences]
    return [
        paragraph(
            f"{results.compared.best}: {sentences.difference_text(results.compared.verdict)}."
        ),
        means_table(comparison).html(),
        figure(charts.intervals(means, MAIN_MEASURE), f"{MAIN_MEASURE}: means and 95 % intervals."),
        figure(
            charts.intervals(intervals, MAIN_MEASURE, True),
            f"Differences from {results.compared.baseline} with 95 % intervals, not corrected for "
            "multiple comparisons; blue where the interval excludes 0.",
        ),
        figure(
            charts.outcomes(
                [(d.system, d.wins, d.ties, d.losses) for d in differences], "outcomes"
            ),
            f"Questions won, tied and lost against {results.compared.baseline}.",
        ),
        differences_table(comparison).html(),
    ]


def _measure(results: DemoResults) -> list[str]:
    measured = results.measured
    rows = [
        [name, f"{standard[MAIN_MEASURE]:.4f}", f"{learned[measured.name]:.4f}"]
        for name, standard, learned in zip(
            measured.comparison.systems,
            results.compared.comparison.evaluations,
            measured.comparison.evaluations,
            strict=True,
        )
    ]
    return [
        paragraph(sentences.learned_measure(measured, results.compared)),
        utility_figures(measured.utility),
        Table(["system", MAIN_MEASURE, "NDCG(measure.json)@5"], rows).html(),
        paragraph(
            "Simulated editors have a utility of their own. Their error has a standard deviation "
            f"of {EDITOR_ERROR_SD:g}, where a page with one perfect first result has utility 1."
        ),
    ]


def _combination(results: DemoResults) -> list[str]:
    weights = list(results.combined.weights.items())
    return [
        paragraph(sentences.combination(results)),
        figure(
            charts.bars(weights, "weights"),
            f"Weight of each ranker's vote: its {MAIN_MEASURE} by the assessors' labels.",
        ),
        means_table(results.against_best).html(),
    ]


def _durations(results: DemoResults) -> list[str]:
    rows = [[name, f"{seconds:.1f}"] for name, seconds in results.seconds.items()]
    return [Table(["step", "seconds"], rows).html()]
