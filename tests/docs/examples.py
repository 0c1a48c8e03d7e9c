"""The files that the pages speak of, and a folder for the blocks of one page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from functools import cache
from itertools import combinations, product
from pathlib import Path
from unittest import mock

import numpy as np

import firstpage as fp
from firstpage.data.formats.trec import to_run
from firstpage.demo import loop
from firstpage.evaluation.dcglearn.simulation import zhou_simulator
from firstpage.evaluation.measures import registry as measures
from firstpage.learning.losses.registry import LOSSES
from firstpage.learning.rankers.methods import METHODS
from firstpage.learning.rankers.registry import RANKERS
from tests.demo.small import small_collection
from tests.narrow import dense, present

# Pages whose blocks begin in an empty folder; README.md and loop.md run the demo there.
FROM_NOTHING = ("README.md", "loop.md", "texts.md")
whole_collection = cache(fp.demo.stdlib_collection)


@contextmanager
def own_names_forgotten() -> Iterator[None]:
    """Forget measures, losses and rankers that are registered within."""
    with ExitStack() as stack:
        for names in (measures.REGISTERED, measures.BY_NAME, LOSSES, METHODS, RANKERS):
            stack.enter_context(mock.patch.dict(names))
        yield
    measures._parsed.cache_clear()


@contextmanager
def page_folder(folder: Path) -> Iterator[None]:
    """Work in a folder, where the demo takes a small collection."""
    with (
        chdir(folder),
        mock.patch.object(loop, "stdlib_collection", small_collection),
        mock.patch.object(fp.demo, "stdlib_collection", whole_collection),
        own_names_forgotten(),
    ):
        path = list(sys.path)
        try:
            yield
        finally:
            sys.path[:] = path
            for module in ("taste", "my_losses", "my_rankers"):  # files of this folder
                sys.modules.pop(module, None)


def write_examples(folder: Path) -> None:
    """Write data sets, scores, runs and judgments, and what the functions below add."""
    recipe = fp.Synthetic(queries=15, docs=12, features=4, grades=3)
    data = recipe.dataset()
    fp.write_letor(data, folder / "test.txt")
    fp.write_letor(data[:9], folder / "train.txt")
    fp.write_letor(data[9:], folder / "vali.txt")
    fp.write_folds(data, folder / "letor", 3)
    fp.write_qrels(data, folder / "test.qrels")
    noise = np.random.default_rng(1).integers(-1, 2, data.n_docs)
    fp.write_qrels(data.with_labels(np.clip(data.y + noise, 0, 2)), folder / "robot.qrels")
    fp.write_qrels(data.with_labels(np.clip(data.y - noise, 0, 2)), folder / "clicks.qrels")
    good = recipe.true_utility(dense(data.X))
    other = np.random.default_rng(0).random(data.n_docs)
    for name, scores in (("ours", good), ("theirs", other)):
        fp.write_scores(scores, folder / f"{name}.scores")
    fp.write_scores(good, folder / "scores.txt")
    fp.write_run(to_run(data, good, "ours"), folder / "ours.run")
    fp.write_run(to_run(data, other, "bm25"), folder / "bm25.run")
    (folder / "systems").mkdir()
    for name, scores in (("bm25", other), ("mixed", good + 2 * other), ("ours", good)):
        fp.write_run(to_run(data, scores, name), folder / "systems" / f"{name}.run")
    rows = [f"{q},{'en' if n % 2 else 'de'},{100 // (n + 1)}" for n, q in enumerate(data.queries)]
    (folder / "classes.csv").write_text("\n".join(["qid,language,traffic", *rows, ""]))
    fp.dcglearn.Utility.from_dcg("exp", range(3), 10).save(folder / "measure.json")
    better, worse = data[:9].truth.pairs()
    queries = [data.queries[int(q)] for q in np.searchsorted(data.offsets, better, "right") - 1]
    docids = present(fp.read(folder / "train.txt").docids)
    votes = fp.PreferencePairs.from_arrays(
        queries, [docids[int(i)] for i in better], [docids[int(i)] for i in worse]
    )
    fp.write_pairs(votes, folder / "pairs.csv")
    for_labeling(folder)
    for_search(folder)
    for_dcglearn(folder)
    for_import(folder)
    for_clicks(folder)


def for_labeling(folder: Path) -> None:
    """Queries, documents and votes."""
    texts = [f"document {i} " + "word " * i for i in range(5)]
    queries = [{"query": q, "text": f"words of {q}"} for q in ("q1", "q2", "q3")]
    documents = [
        {"query": row["query"], "document": f"d{i}", "text": text}
        for row in queries
        for i, text in enumerate(texts)
    ]
    for name, rows in (("queries", queries), ("documents", documents)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    graded_lists(folder)
    with (folder / "judged.jsonl").open("w") as file:
        for n, who in product(range(12), ("ada", "ben", "robot")):
            outcome = 1 if (n * len(who)) % 7 else -1
            row = {"query": f"q{n % 3}", "assessor": who, "tool": "pairs", "left": f"d{n}"}
            file.write(json.dumps({**row, "right": f"e{n}", "outcome": outcome}) + "\n")
    votes = [f"t,d{a},d{b},a1" for a, b in combinations(range(6), 2)]
    (folder / "votes.csv").write_text("\n".join(["topic,arg1,arg2,vote", *votes, ""]))


def for_clicks(folder: Path) -> None:
    """A log in the form of Yandex: random orders of products, clicked by attractiveness and rank."""
    rng = np.random.default_rng(0)
    pages = []
    for n in range(600):
        query = f"q{1 + n % 3}"
        shown = rng.permutation(12)[:10]
        clicks = rng.random(10) < (1 + shown % 3) / (4 * np.arange(1, 11) ** 0.7)
        results = ",".join(f"sku-{d}" for d in shown)
        pages.append(f"{query}\t{results}:{','.join(f'sku-{d}' for d in shown[clicks])};\n")
    (folder / "clicks.log").write_text("".join(pages))
    (folder / "shop.csv").write_text(
        "words,sku,place,click\nred shoes,a,1,0\nred shoes,b,2,1\nhats,c,1,1\n"
    )
    grades = {f"q{q}": {f"sku-{d}": d % 3 for d in range(12)} for q in (1, 2, 3)}
    fp.write_qrels(fp.Qrels.from_dict(grades), folder / "people.qrels")
    for_experiments(folder, rng)


def for_experiments(folder: Path, rng: np.random.Generator) -> None:
    """Two rankings of the queries of the clicks, and a log of both, interleaved."""
    skus = [f"sku-{d}" for d in range(12)]
    orders = {"current": skus, "next": sorted(skus, key=lambda sku: -(int(sku[4:]) % 3))}
    for name, order in orders.items():
        scores = {sku: float(-rank) for rank, sku in enumerate(order)}
        fp.write_run(fp.Run.from_dict({f"q{q}": scores for q in (1, 2, 3)}), folder / f"{name}.run")
    lines: list[dict[str, object]] = []
    for n in range(1200):
        shown = fp.clicks.interleave(list(orders.values()), length=10, key=f"user {n}")
        told = {"experiment": "next", "digest": "5f0c", "arms": list(orders), **shown.to_dict()}
        query = {"application": "shop", "query_id": f"s{n}", "client_id": f"user {n}"}
        time = 1_790_000_000_000 + n * 600_000
        hits = {"query_response_hit_ids": shown.documents, "query_attributes": told}
        lines.append({**query, "user_query": f"q{1 + n % 3}", "timestamp": time, **hits})
        for rank, sku in enumerate(shown.documents, 1):
            if rng.random() < (1 + int(sku[4:]) % 3) / (4 * rank**0.7):
                place = {"object": {"object_id": sku}, "position": {"ordinal": rank}}
                event = {"action_name": "click", "timestamp": time + rank}
                lines.append({**query, **event, "event_attributes": place})
    (folder / "events.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


def for_search(folder: Path) -> None:
    """Products of a shop, some of them new, and judgments of the queries of `for_labeling`."""
    rng = np.random.default_rng(0)
    words = ["red", "running", "shoes", "words", "of", "leather", "q1", "q2", "q3", "boots"]
    products = [
        {
            "id": f"sku-{i}",
            "title": " ".join(rng.choice(words, 3)),
            "text": " ".join(rng.choice(words, 20)),
            "price": float(i),
        }
        for i in range(30)
    ]
    for name, rows in (("products", products[:25]), ("new", products[25:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [f"q{q} 0 sku-{i} {i % 3}\n" for q in (1, 2, 3) for i in range(20)]
    (folder / "shop.qrels").write_text("".join(judged))


def graded_lists(folder: Path) -> None:
    """Two lists per query, the grades of their items, and a judge that counts the good ones."""
    rng = np.random.default_rng(0)
    lists, qrels = [], []
    for q, side in product(range(25), ("ours", "theirs")):
        grades = rng.integers(0, 3, 4).tolist()
        items = [{"id": f"{side}{i}", "title": "boot " * g} for i, g in enumerate(grades)]
        lists.append({"query": f"q{q}", "document": side, "items": items})
        qrels += [f"q{q} 0 {side}{i} {g}\n" for i, g in enumerate(grades)]
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists))
    (folder / "lists.qrels").write_text("".join(qrels))
    (folder / "taste.py").write_text(
        "def more_boots(query, left, right):\n"
        "    return 'left' if left.body.count('boot') > right.body.count('boot') else 'right'\n"
        "def longer(query, left, right):\n"
        "    return 'left' if len(left.body) > len(right.body) else 'right'\n"
        "def longest(query, documents):\n"
        "    return [d.key for d in sorted(documents, key=lambda d: -len(d.body))]\n"
    )


def for_import(folder: Path) -> None:
    """A model of RankLib, judgments of Quepid, a feature log and clicks."""
    (folder / "ranklib.txt").write_text("## Coordinate Ascent\n1:0.5 2:0.25 4:-1.0\n")
    ratings = ["query,docid,rating"]
    lines = []
    for query, best in (("red shoes", 2), ("straw hat", 1), ("blue scarf", 3)):
        ratings += [f"{query},d{n},{3 if n == best else 0}" for n in (1, 2, 3)]
        hits = [
            {
                "_id": f"d{n}",
                "_score": 4.0 - n,
                "fields": {
                    "_ltrlog": [
                        {
                            "log": [
                                {"name": "title", "value": float(n == best)},
                                {"name": "body", "value": 1.5 * n},
                            ]
                        }
                    ]
                },
            }
            for n in (1, 2, 3, 4)
        ]
        lines.append(json.dumps({"query": query, "response": {"hits": {"hits": hits}}}) + "\n")
    (folder / "quepid.csv").write_text("\n".join([*ratings, ""]))
    (folder / "log.jsonl").write_text("".join(lines))
    shown = ["query,docid,position,clicked", "q,d1,1,0", "q,d2,2,1", ""]
    (folder / "clicks.csv").write_text("\n".join(shown))


def for_dcglearn(folder: Path) -> None:
    """Preferences over rankings, a pool, and a measure."""
    rng = np.random.default_rng(0)
    fp.dcglearn.write_preferences(zhou_simulator(2).pairs(60, rng), folder / "prefs.jsonl")
    fp.dcglearn.write_preferences(zhou_simulator(2).pairs(10, rng), folder / "pool.jsonl")
    (folder / "many").mkdir()
    for part in range(2):
        fp.dcglearn.write_preferences(
            zhou_simulator(2).pairs(60, rng), folder / "many" / f"{part}.npz"
        )
    fp.dcglearn.Utility.from_dcg("exp", range(3), 10).save(folder / "measure.json")
    outcomes = [{"query": str(q), "outcome": int(rng.integers(-2, 3))} for q in range(1, 16)]
    (folder / "outcomes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outcomes))
