"""The report: a front page in plain words, then every step with its figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from shlex import quote

from firstpage.demo import words
from firstpage.demo.labeling import K
from firstpage.demo.output import FILES, RUNS, slug
from firstpage.demo.project import BLUR, SIGMA
from firstpage.demo.rankings import (
    FOLDS,
    MAIN,
    MEASURE,
    MEASURES,
    NORMALIZE,
    RANKERS,
    extremes,
    page_of,
)
from firstpage.demo.words import Results
from firstpage.rankers.explain import Explanation
from firstpage.report import draw
from firstpage.report.measure import drawn
from firstpage.report.page import figure, page, paragraph
from firstpage.report.results import differences_table, means_table
from firstpage.table import Table

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


Steps = list[tuple[str, list[str]]]


def again(baseline: str, best: str) -> Steps:
    """Every step on the demo's own files, in their folder."""
    runs = [f"{RUNS}/{slug(name)}.run" for name in RANKERS]
    asked = " ".join(f"-m {m}" for m in MEASURES)
    every = " ".join(f"--run {run}" for run in (f"{RUNS}/{slug(baseline)}.run", *runs))
    return [
        ("Look at the labeling projects; stop with Ctrl-C", ["firstpage label serve . --open"]),
        ("Effort and agreement", ["firstpage label stats . --name questions"]),
        ("The truth that people gave", [
            "firstpage label export . --name questions -o truth.qrels",
        ]),
        ("Train a ranker, look into it, rank", [
            f"firstpage train {quote(best)} judged.txt --normalize {NORMALIZE} -o mine.json",
            "firstpage explain mine.json",
            "firstpage rank mine.json collection.txt -o mine.scores",
        ]),
        ("Compare, with significance", [
            f"firstpage compare --qrels collection.qrels {every} {asked} "
            f"--baseline {slug(baseline)} -o compare.html",
        ]),
        ("Learn a measure, and measure by it", [
            f"firstpage dcglearn learn preferences.jsonl --K {K} -o mine-measure.json",
            f"firstpage evaluate --qrels collection.qrels --run {RUNS}/{slug(best)}.run "
            f"-m 'NDCG(mine-measure.json)@{K}'",
        ]),
        ("Make one ranking of four", [
            f"firstpage aggregate {' '.join(runs)} --qrels judged.qrels -m NDCG@{K} -o mine.run",
        ]),
    ]  # fmt: skip


def on_your_own() -> Steps:
    """The loop on one's own data: names of files are examples."""
    return [
        ("Label: queries and documents are texts, one JSON object a line", [
            f"firstpage label setup shop --queries queries.jsonl --documents documents.jsonl "
            f"--k {K} --assessor ada --assessor ben --lead you",
            "firstpage label serve shop",
            "firstpage label export shop -o truth.qrels",
        ]),
        ("Train, on a LETOR file with your features and these labels; choose by folds", [
            "firstpage convert train.txt letor --folds 5",
            f"firstpage crossval letor 'ListMLE(k={K})' 'FocusedNet(k={K})' RankSVM RankBoost "
            f"--normalize {NORMALIZE}",
            f"firstpage train 'FocusedNet(k={K})' train.txt --normalize {NORMALIZE} -o model.json",
        ]),
        ("Rank new data, and compare with what you have", [
            "firstpage rank model.json test.txt -o ours.scores",
            "firstpage compare test.txt --scores theirs.scores --scores ours.scores "
            f"-m NDCG@{K} -o report.html",
        ]),
        ("Learn what your editors value", [
            "firstpage label setup pages --tool lists --documents lists.jsonl --assessor ada",
            "firstpage label export pages --what preferences -o prefs.jsonl",
            f"firstpage dcglearn learn prefs.jsonl --K {K} -o measure.json",
        ]),
    ]  # fmt: skip


def html(steps: Steps) -> str:
    """A heading and a block of commands a step."""
    return "".join(
        paragraph(what + ".") + "".join(f"<pre>{escape(command)}</pre>" for command in commands)
        for what, commands in steps
    )


def files_table() -> Table:
    """What lies in the folder."""
    rows = [[name, what] for name, what in FILES.items()]
    rows.append([f"{RUNS}/*.run", "what each system shows, best first (TREC)"])
    return Table(["file", "what it is"], rows, left_aligned=2)


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
        ("In short", parts(results)),
        ("1. Labels: what people were asked", _labels(results)),
        ("2. Four rankers", _rankers(results, model)),
        ("3. Which is best, and is it chance?", _comparison(results)),
        ("4. What editors value: a learned measure", _measure(results)),
        ("5. All four together", _together(results)),
        ("Next: do it again with these files", [
            paragraph("In the folder of this report:"),
            html(again(baseline, best)),
        ]),
        ("Next: do it with your own", [html(on_your_own())]),
        ("Files in this folder", [files_table().html()]),
        ("How it was made", _made(results)),
    ]  # fmt: skip
    return page(TITLE, lead, sections, STYLE)


def _labels(results: Results) -> list[str]:
    labels = results.labels
    told = labels.study.tables()[:-1]  # the last is about sides and repeats: programs have none
    return [
        paragraph(words.labeling(labels)),
        paragraph(
            f"A simulated assessor sees the true grade of a document with an error of {SIGMA:g} "
            "(a step between grades is 1), and takes about as long as people did in a published "
            "study. Questions, answers and times went through the labeling application, which "
            "shows them: firstpage demo --serve."
        ),
        *(table.html() for table in told),
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
