"""The same steps by hand: commands for the demo's files, and for one's own."""

from __future__ import annotations

from html import escape
from shlex import quote

from firstpage.demo.comparing import MEASURES
from firstpage.demo.folder import FILES, RUNS, slug
from firstpage.demo.labelling import K
from firstpage.demo.training import NORMALIZE, RANKERS
from firstpage.report.page import paragraph
from firstpage.report.table import Table

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
