"""From texts to labels to data: `label setup --index`, `settings`, `export --content data`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.serving.feedback import FeedbackFolder, document_row, query_id
from tests.narrow import instance, present

pytestmark = pytest.mark.usefixtures("shared_statements")

COLORS, THINGS = ("red", "blue", "green"), ("shoe", "coat", "sock")
KEYS = """
def first(query, left, right):
    if right is None:
        return grade(query, left, right)
    return 1 if left.key < right.key else -1

def grade(query, left, right):
    return {grades}[left.key]

def colors(query, left, right):
    return 1 if left.key == "sku 2" else -1 if right.key == "sku 2" else 0

def blue(query, left, right):
    relevant = ("sku 2", "sku 5", "sku 8")
    return (left.key in relevant) - (right.key in relevant)

def not_blue(query, left, right):
    return -blue(query, left, right)

def same(query, left, right):
    return 0

def page(query, left, right):
    return 1 if left.items[0]["id"] < right.items[0]["id"] else -1
"""
GRADES = dict(zip((f"d{i}" for i in range(8)), (0, 4, 2, 2, 3, 1, 0, 4), strict=True))


def jsonl(name: str, *rows: dict[str, Any]) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch) -> fp.Index:
    """Return an index in the current folder, beside queries and programs that judge."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("loop_keys.py").write_text(KEYS.replace("{grades}", repr(GRADES)))
    pairs = [(color, thing) for thing in THINGS for color in COLORS]
    documents = [
        {"id": f"sku {i}", "title": f"{color} {thing}", "text": f"A {color} {thing} to buy."}
        for i, (color, thing) in enumerate(pairs)
    ]
    jsonl("products.jsonl", *documents)
    queries = [{"id": f"q{i}", "text": thing} for i, thing in enumerate(THINGS)]
    jsonl("queries.jsonl", *queries, {"id": "none", "text": "zebra"})
    return fp.Index.from_documents(documents, "shop.index", latent=0)


def done(result: Any) -> Any:
    assert result.returncode == 0, result.stderr
    return result


def refused(result: Any, message: str, code: int = 1) -> None:
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert message in result.stderr


def judge(run, name: str, function: str) -> None:
    done(run("label", "judge", name, "--assessor", "ada", "--function", f"loop_keys:{function}"))


def test_from_an_index_to_a_model(run, shop: fp.Index) -> None:
    result = done(
        run(
            "label",
            "setup",
            "p",
            "--index",
            "shop.index",
            "--queries",
            "queries.jsonl",
            "--depth",
            3,
            "--k",
            2,
            "--assessor",
            "ada",
        )
    )
    assert "3 queries, 9 documents" in result.stdout
    assert "1 query ('none') left out: shop.index has no documents of them." in result.stderr
    refused(
        run("label", "export", "p", "--content", "data", "-o", "d.parquet"), "no finished query"
    )
    assert not Path("d.parquet").exists()
    judge(run, "p", "first")
    refused(run("label", "export", "p", "-o", "t.letor"), "'sku 0' cannot be written to a LETOR")
    words = ("label", "export", "p", "--content", "data")
    result = done(run(*words, "--features", "short", "-o", "data.parquet"))
    assert "3 queries, 9 documents" in result.stderr
    data = instance(fp.Dataset, fp.read("data.parquet"))
    assert list(present(data.docids))[:3] == ["sku 0", "sku 1", "sku 2"]
    assert data.y.tolist() == [2, 1, 0] * 3
    features = fp.TextFeatures(shop, "short")
    run_of_labels = fp.Run.from_dict(
        {q: {d: -i for i, d in enumerate(ids)} for q, ids in by_query(data).items()}
    )
    expected = features.dataset(fp.read_queries("queries.jsonl"), run_of_labels)
    assert data.feature_names == expected.feature_names
    np.testing.assert_array_equal(data.X, expected.X)
    done(run("train", "ListNet", "data.parquet", "-o", "model.json"))
    assert fp.Searcher(shop, fp.load("model.json")).search("coat", depth=1).ids
    result = done(run(*words, "--index", "shop.index", "--features", "all", "-o", "all.npz"))
    assert instance(fp.Dataset, fp.read("all.npz")).n_features > data.n_features
    result = done(run(*words, "-o", "chosen.npz"))
    assert f"shop.index: chose {data.n_features} features (short, values) of " in result.stderr
    assert instance(fp.Dataset, fp.read("chosen.npz")).feature_names == data.feature_names


def by_query(data: fp.Dataset) -> dict[str, list[str]]:
    ids, ends = list(present(data.docids)), data.offsets.tolist()
    return {q: ids[lo:hi] for q, lo, hi in zip(data.queries, ends, ends[1:], strict=False)}


def test_documents_that_were_judged_equal_have_equal_labels_in_the_data(
    run, shop: fp.Index
) -> None:
    done(
        run(
            "label",
            "setup",
            "p",
            "--index",
            "shop.index",
            "--queries",
            "queries.jsonl",
            "--first",
            1,
            "--depth",
            3,
            "--k",
            3,
            "--ties",
            "--assessor",
            "ada",
        )
    )
    judge(run, "p", "colors")
    done(run("label", "export", "p", "--content", "data", "--features", "short", "-o", "d.npz"))
    data = instance(fp.Dataset, fp.read("d.npz"))
    assert dict(zip(present(data.docids), data.y, strict=True)) == {
        "sku 2": 3,
        "sku 0": 2,
        "sku 1": 2,
    }


BLUE = {"sku 2", "sku 5", "sku 8"}
NO_DECISION = "In 3 of 3 queries, the last tie is above no other document"


@pytest.mark.parametrize(
    ("function", "k", "expected", "noted"),
    [
        ("blue", 2, {1: 0, 0: 2}, [NO_DECISION]),
        ("not_blue", 1, {1: 1, 0: 0}, ["share its label; 3 of them are outside of the top k."]),
        ("same", 2, {1: 0, 0: 0}, [NO_DECISION, "label 0, as do all documents of 3 of these"]),
    ],
)
def test_every_export_gives_equal_labels_to_equal_documents(
    run, shop: fp.Index, function: str, k: int, expected: dict[int, int], noted: list[str]
) -> None:
    """`expected` has the labels of documents that are not blue (1) and that are (0)."""
    done(
        run(
            "label",
            "setup",
            "p",
            "--index",
            "shop.index",
            "--queries",
            "queries.jsonl",
            "--depth",
            3,
            "--k",
            k,
            "--ties",
            "--assessor",
            "ada",
        )
    )
    judge(run, "p", function)
    labels = {f"sku {i}": expected[f"sku {i}" not in BLUE] for i in range(9)}
    for name in ("t.qrels", "t.jsonl", "t.npz"):
        content = "data" if name == "t.npz" else "truth"
        result = done(run("label", "export", "p", "--content", content, "-o", name))
        for line in noted:
            assert line in result.stderr
        read = fp.read_truth if name == "t.jsonl" else fp.read_qrels
        if name == "t.npz":
            data = instance(fp.Dataset, fp.read(name))
            exported = dict(zip(present(data.docids), data.y.tolist(), strict=True))
        else:
            exported = {d: v for by_doc in read(name).to_dict().values() for d, v in by_doc.items()}
        assert exported == labels


def test_documents_and_indexes_that_are_gone_are_reported(run, shop: fp.Index) -> None:
    done(
        run(
            "label",
            "setup",
            "p",
            "--index",
            "shop.index",
            "--queries",
            "queries.jsonl",
            "--depth",
            3,
            "--k",
            2,
            "--assessor",
            "ada",
        )
    )
    judge(run, "p", "first")
    shop.delete(["sku 4"])
    words = ("label", "export", "p", "--content", "data", "--features", "short")
    result = done(run(*words, "-o", "data.parquet"))
    assert "1 documents are left out, since" in result.stderr
    assert "such as 'sku 4'" in result.stderr
    assert instance(fp.Dataset, fp.read("data.parquet")).n_docs == 8
    shop.fit_latent(2)
    assert "have changed since the project was set up" in done(run(*words, "-o", "b.npz")).stderr
    Path("shop.index").rename("moved.index")
    refused(run(*words, "-o", "c.npz"), "the index of the project is gone; name it (--index).")
    done(run(*words, "--index", "moved.index", "-o", "c.npz"))
    jsonl("other.jsonl", {"query": "q", "document": "d", "text": "x"})
    done(run("label", "setup", "o", "--documents", "other.jsonl", "--assessor", "ada"))
    refused(run("label", "export", "o", "--content", "data", "-o", "c.npz"), "knows no features")


def test_grades_leave_as_grades(run, shop: fp.Index) -> None:
    rows = [{"query": "q", "document": key, "text": "x"} for key in GRADES]
    jsonl("graded.jsonl", *rows)
    done(
        run(
            "label",
            "setup",
            "g",
            "--documents",
            "graded.jsonl",
            "--tool",
            "grades",
            "--k",
            3,
            "--assessor",
            "ada",
        )
    )
    judge(run, "g", "grade")
    done(run("label", "export", "g", "-o", "truth.jsonl"))
    (truth,) = map(json.loads, Path("truth.jsonl").read_text().splitlines())
    assert truth["labels"] == GRADES
    assert truth["tool"] == "grades"
    assert truth["tied"] == [["d1", "d7"]] or truth["tied"] == [["d7", "d1"]]
    result = done(run("label", "export", "g", "-o", "truth.qrels"))
    assert fp.read_qrels("truth.qrels").to_dict() == {"q": GRADES}
    assert "judged equal" not in result.stderr


def test_a_study_with_two_tools_exports_each(run, shop: fp.Index) -> None:
    rows = [{"query": q, "document": key, "text": "x"} for q in "ab" for key in GRADES]
    jsonl("graded.jsonl", *rows)
    done(
        run(
            "label",
            "setup",
            "g",
            "--documents",
            "graded.jsonl",
            "--tool",
            "pairs",
            "--tool",
            "grades",
            "--k",
            3,
            "--assessor",
            "ada",
            "--assessor",
            "ben",
        )
    )
    for login in ("ada", "ben"):
        done(run("label", "judge", "g", "--assessor", login, "--function", "loop_keys:first"))
    graded = done(run("label", "export", "g", "--tool", "grades", "-o", "grades.qrels"))
    done(run("label", "export", "g", "--tool", "pairs", "-o", "pairs.qrels"))
    expected = {key: float(grade) for key, grade in GRADES.items()}
    assert fp.read_qrels("grades.qrels").to_dict() == {"a": expected, "b": expected}
    pairs = fp.read_qrels("pairs.qrels").to_dict()
    assert sorted(pairs["a"].values()) == [0, 0, 0, 0, 0, 1, 2, 3]
    assert "Judgments with the tool pairs are left out" in graded.stderr
    refused(
        run("label", "export", "g", "--tool", "lists", "-o", "x.qrels"), "no judgments with the"
    )
    refused(
        run("label", "export", "g", "--content", "log", "--tool", "pairs", "-o", "x.csv"),
        "--tool requires --content truth, data or quepid",
        2,
    )


def test_pages_of_runs_give_preferences_for_dcglearn(run, shop: fp.Index) -> None:
    ids = [f"sku {i}" for i in range(9)]
    for name, order in (("before", ids[::-1]), ("after", ids)):
        table = {q: {d: -i for i, d in enumerate(order)} for q in ("q0", "q1", "q2")}
        fp.write_run(fp.Run.from_dict(plain(table), name), f"{name}.run")
    jsonl("plain.jsonl", *({"id": d.replace(" ", "-"), "title": d, "text": "x"} for d in ids))
    words = ("label", "setup", "pages", "--tool", "lists", "--queries", "queries.jsonl",
             "--collection", "plain.jsonl", "--depth", 5, "--assessor", "ada")  # fmt: skip
    refused(run(*words, "--run", "before.run"), "pages of one run cannot be compared")
    assert not Path("pages").exists()
    result = done(run(*words, "--run", "before.run", "--run", "after.run"))
    assert "3 queries, 6 documents" in result.stdout
    judge(run, "pages", "page")
    export = ("label", "export", "pages", "--content", "preferences")
    result = done(run(*export, "-o", "preferences.jsonl"))
    assert "the lists name documents" in result.stderr
    rows = [json.loads(line) for line in Path("preferences.jsonl").read_text().splitlines()]
    assert {row["lists"] for row in rows} == {"documents"}
    assert all(
        (row["left"][0] == "sku-0") == (row["outcome"] == 1) and len(row["left"]) == 5
        for row in rows
    )
    grades = {
        q: {d.replace(" ", "-"): float(i < 4) for i, d in enumerate(ids)}
        for q in ("q0", "q1", "q2")
    }
    fp.write_qrels(fp.Qrels.from_dict(grades), "shop.qrels")
    refused(
        run("dcglearn", "learn", "preferences.jsonl"),
        "needs their judgments. Give them with --qrels.",
    )
    learn = ("--C", 1, "--rounds", 0, "--test-rounds", 0, "--json")
    given = done(run("dcglearn", "learn", "preferences.jsonl", "--qrels", "shop.qrels", *learn))
    done(
        run(
            *words[:2],
            "graded",
            *words[3:],
            "--run",
            "before.run",
            "--run",
            "after.run",
            "--qrels",
            "shop.qrels",
        )
    )
    judge(run, "graded", "page")
    done(run("label", "export", "graded", "--content", "preferences", "-o", "graded.jsonl"))
    stored = done(run("dcglearn", "learn", "graded.jsonl", *learn))
    assert json.loads(given.stdout)["gains"] == json.loads(stored.stdout)["gains"]


def plain(table: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    return {
        q: {d.replace(" ", "-"): float(v) for d, v in docs.items()} for q, docs in table.items()
    }


@pytest.mark.parametrize(("words", "message"), [
    (("--pool", "rrf"), "--pool requires --run"),
    (("--ordinal",), "--ordinal requires --queries"),
    (("--first", 2), "--first requires queries or documents"),
    (("--tool", "lists", "--index", "shop.index", "--queries", "queries.jsonl"), "give two runs"),
    (("--tool", "lists", "--tool", "pairs", "--run", "a.run"), "which no other tool can judge"),
    (("--tool", "lists", "--run", "a.run", "--run", "b.run", "--pool", "rrf"), "--pool requires"),
])  # fmt: skip
def test_options_without_effect_are_refused(run, shop: fp.Index, words: Any, message: str) -> None:
    refused(run("label", "setup", "p", *words), message, 2)
    assert not Path("p").exists()


def test_settings_change_until_the_first_answer(run, shop: fp.Index) -> None:
    done(
        run(
            "label",
            "setup",
            "p",
            "--index",
            "shop.index",
            "--queries",
            "queries.jsonl",
            "--assessor",
            "ada",
            "--strategy",
            "heap",
            "--first",
            1,
        )
    )
    shown = done(run("label", "settings", "p")).stdout
    for words in ("k            10", "strategy     heap", "ties         no", "shop.index"):
        assert " ".join(words.split()) in " ".join(shown.split())
    changed = done(run("label", "settings", "p", "--k", 2, "--ties", "--title", "Shop"))
    assert "ties yes" in " ".join(changed.stdout.split())
    assert "Invalid value for '--k': 0" in run("label", "settings", "p", "--k", 0).stderr
    refused(run("label", "settings", "p", "--list-selection", "diverse"), "has no effect", 2)
    refused(run("label", "settings", "p", "--strategy", "heep"), "Did you mean")
    judge(run, "p", "first")
    done(run("label", "export", "p", "-o", "truth.jsonl"))
    (truth,) = map(json.loads, Path("truth.jsonl").read_text().splitlines())
    assert (truth["k"], len(truth["order"])) == (2, 2), "tasks have the new setting too"
    refused(
        run("label", "settings", "p", "--k", 3, "--strategy", "tournament"),
        "k, strategy of the project 'labels' cannot change any more: there are",
    )
    same = done(run("label", "settings", "p", "--k", 2, "--no-ties"))
    assert "ties no" in " ".join(same.stdout.split())
    refused(run("label", "settings", "p", "--name", "other"), "there is no project 'other'")


def test_queries_to_judge_of_a_server_are_set_up_with_their_index(run, shop: fp.Index) -> None:
    """The files are those that "Judge these" of `firstpage serve --feedback` writes."""
    folder = FeedbackFolder(Path("feedback"))
    rows = [
        document_row(f"sku {i}", shop.document(f"sku {i}"), shop.schema.analyzers, "title")
        for i in (1, 0, 2)
    ]
    folder.add_query("Red  Shoe", rows)
    folder.close()
    result = done(
        run(
            "label",
            "setup",
            "p",
            "--queries",
            "feedback/queries.jsonl",
            "--documents",
            "feedback/documents.jsonl",
            "--index",
            "shop.index",
            "--assessor",
            "ada",
        )
    )
    assert "1 query, 3 documents" in result.stdout
    assert "note" not in result.stderr
    judge(run, "p", "first")
    done(run("label", "export", "p", "--content", "data", "--features", "short", "-o", "d.npz"))
    data = fp.read("d.npz")
    assert list(data.queries) == [query_id("red shoe")]
    assert list(present(data.docids)) == ["sku 1", "sku 0", "sku 2"]
    done(run("label", "setup", "q", "--queries", "feedback/queries.jsonl", "--index", "shop.index"))


def test_data_of_a_letor_file(run, shop: fp.Index) -> None:
    lines = [f"0 qid:{q} 1:0.5 2:{i} # docid = d{i}\n" for q in (1, 2) for i in range(4)]
    Path("x.txt").write_text("".join(lines))
    jsonl("c.jsonl", *({"id": f"d{i}", "text": "x"} for i in range(4)))
    words = ("label", "setup", "l", "--letor", "x.txt", "--collection", "c.jsonl", "--k", 2)
    done(run(*words, "--assessor", "ada"))
    judge(run, "l", "first")
    export = ("label", "export", "l", "--content", "data")
    done(run(*export, "-o", "data.letor"))
    data = instance(fp.Dataset, fp.read("data.letor"))
    assert data.y.tolist() == [2, 1, 0, 0] * 2
    assert np.asarray(data.X)[:, 1].tolist() == [0, 1, 2, 3] * 2
    refused(run(*export, "--features", "short", "-o", "b.letor"), "--features requires", 2)
    Path("x.txt").write_text("".join(lines[:-1]))
    refused(run(*export, "-o", "b.letor"), "is not the file that the project was set up with")
