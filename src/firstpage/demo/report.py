"""The report: a front page in plain words, then every step with its figures."""

from __future__ import annotations

from html import escape
from shlex import quote

from firstpage.demo import front, words
from firstpage.demo.comparing import MAIN, MEASURES
from firstpage.demo.folder import FILES, RUNS, slug
from firstpage.demo.labeling import K
from firstpage.demo.project import BLUR, SIGMA
from firstpage.demo.results import Results
from firstpage.demo.training import FOLDS, MEASURE, NORMALIZE, RANKERS
from firstpage.rankers.explain import Explanation
from firstpage.report import draw
from firstpage.report.measure import drawn
from firstpage.report.page import figure, page, paragraph
from firstpage.report.results import differences_table, means_table
from firstpage.table import Table

Steps = list[tuple[str, list[str]]]


def again(baseline: str, best: str) -> Steps:
    """Every step on the demo's own files, in their folder."""
    runs = [f"{RUNS}/{slug(name)}.run" for name in RANKERS]
    asked = " ".join(f"-m {m}" for m in MEASURES)
    every = " ".join(f"--run {run}" for run in (f"{RUNS}/{slug(baseline)}.run", *runs))
    return [
        ("Look at the labelling projects; stop with Ctrl-C", ["firstpage label serve . --open"]),
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
    return Table(["file", "what it is"], rows, left=2)


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
            html(again(baseline, best)),
        ]),
        ("Next: do it with your own", [html(on_your_own())]),
        ("Files in this folder", [files_table().html()]),
        ("How it was made", _made(results)),
    ]  # fmt: skip
    return page(TITLE, lead, sections, front.STYLE)


def _labels(results: Results) -> list[str]:
    labels = results.labels
    told = labels.study.tables()[:-1]  # the last is about sides and repeats: programs have none
    return [
        paragraph(words.labelling(labels)),
        paragraph(
            f"A simulated assessor sees the true grade of a document with an error of {SIGMA:g} "
            "(a step between grades is 1), and takes about as long as people did in a published "
            "study. Questions, answers and times went through the labelling application, which "
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
