"""The report: a front page in plain words, then every step with its figures."""

from __future__ import annotations

from firstpage.demo import front, steps, words
from firstpage.demo.aggregating import MEASURE
from firstpage.demo.comparing import MAIN
from firstpage.demo.people import BLUR, SIGMA
from firstpage.demo.results import Results
from firstpage.demo.training import FOLDS
from firstpage.rankers.explain import Explanation
from firstpage.report import draw
from firstpage.report.gains import drawn
from firstpage.report.page import figure, page, paragraph
from firstpage.report.results import differences_table, means_table
from firstpage.report.table import Table

TITLE = "Can a better ranking be learned?"
LOOKED_AT = 8  # features shown


def rendered(results: Results, model: Explanation) -> str:
    """The whole page."""
    lead = (
        f"{results.questions} questions to Python's own documentation, "
        f"{len(results.collection.documents):,} entries; people are simulated"
        + (", except where you judged." if results.labels.yours else ".")
    )
    baseline, best = results.compared.baseline, results.compared.best
    sections = [
        ("In short", front.parts(results)),
        ("1. Labels: what people were asked", _labels(results)),
        ("2. Four rankers", _rankers(results, model)),
        ("3. Which is best, and is it chance?", _comparison(results)),
        ("4. What editors value: a learned measure", _measure(results)),
        ("5. All four together", _together(results)),
        ("Next: do it again with these files", [
            paragraph("In the folder of this report:"),
            steps.html(steps.again(baseline, best)),
        ]),
        ("Next: do it with your own", [steps.html(steps.on_your_own())]),
        ("Files in this folder", [steps.files_table().html()]),
        ("How it was made", _made(results)),
    ]  # fmt: skip
    return page(TITLE, lead, sections, front.STYLE)


def _labels(results: Results) -> list[str]:
    labels = results.labels
    told = labels.study.tables()[:-1]  # the last is about sides and repeats: programs have none
    tables = [Table(t.head, t.rows, t.title, t.note).html() for t in told]
    return [
        paragraph(words.labelling(labels)),
        paragraph(
            f"A simulated assessor sees the true grade of a document with an error of {SIGMA:g} "
            "(a step between grades is 1), and takes about as long as people did in a published "
            "study. Questions, answers and times went through the labelling application, which "
            "shows them: firstpage demo --serve."
        ),
        *tables,
    ]


def _rankers(results: Results, model: Explanation) -> list[str]:
    rows = model.ordered()[:LOOKED_AT]
    return [
        paragraph(
            "Trained on the assessors' labels alone. Every question is ranked by models that "
            f"were trained without it ({FOLDS} folds), and measured by the right answers, which "
            "no training has seen."
        ),
        figure(
            draw.bars(rows, model.kind),
            f"What {results.compared.best}, trained on all questions, looks at: {model.kind}.",
        ),
    ]


def _comparison(results: Results) -> list[str]:
    found = results.compared.found
    means = [(e.name, e[MAIN], *e.intervals[MAIN]) for e in found.evaluations]
    gaps = [d for d in found.differences if d.measure == MAIN]
    return [
        paragraph(f"{results.compared.best}: {words.spread(results.compared.verdict)}."),
        means_table(found).html(),
        figure(draw.intervals(means, MAIN), f"{MAIN}: means, 95 % intervals."),
        figure(
            draw.intervals([(d.system, d.difference, d.low, d.high) for d in gaps], MAIN, True),
            f"Differences to {results.compared.baseline} with 95 % intervals, before any "
            "correction for several comparisons; blue where the interval excludes 0.",
        ),
        figure(
            draw.outcomes([(d.system, d.wins, d.ties, d.losses) for d in gaps], "outcomes"),
            "Questions won, tied and lost against it.",
        ),
        differences_table(found).html(),
    ]


def _measure(results: Results) -> list[str]:
    measured = results.measured
    rows = [
        [name, f"{one[MAIN]:.4f}", f"{two[measured.text]:.4f}"]
        for name, one, two in zip(
            measured.found.systems, results.compared.found.evaluations,
            measured.found.evaluations, strict=True,
        )
    ]  # fmt: skip
    return [
        paragraph(words.measure(measured, results.compared)),
        drawn(measured.utility),
        Table(["system", MAIN, "NDCG(measure.json)@5"], rows).html(),
        paragraph(
            f"Simulated editors have a taste of their own, and err by {BLUR:g} where a page with "
            "one perfect first result is worth 1."
        ),
    ]


def _together(results: Results) -> list[str]:
    weights = list(results.together.weights.items())
    return [
        paragraph(words.together(results)),
        figure(
            draw.bars(weights, "weights"),
            f"Weight of each vote: its {MEASURE} by the assessors' labels, on other questions.",
        ),
        means_table(results.against_best).html(),
    ]


def _made(results: Results) -> list[str]:
    rows = [[name, f"{seconds:.1f}"] for name, seconds in results.seconds.items()]
    return [Table(["step", "seconds"], rows).html()]
