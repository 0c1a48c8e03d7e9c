"""Whole paths, each from raw files in an empty folder to a verdict, by the commands that users type.

Each walk is on the page of the person who would do it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from tests.narrow import instance, present
from tests.walks.conftest import Command
from tests.walks.shop import QUERIES, write_clicks, write_search_log

pytest.importorskip("tantivy")
pytest.importorskip("starlette")


def test_texts_only(firstpage: Command, folder: Path) -> None:
    """docs/texts.md: no judgment exists; a lead lets assessors order the first five documents."""
    firstpage("index products.jsonl -o shop.index")
    firstpage("candidates shop.index queries.jsonl --depth 12 -o bm25.run")
    firstpage(
        "label setup labels --index shop.index --queries queries.jsonl --depth 12 --k 5 "
        "--assessor ada"
    )
    firstpage("label judge labels --assessor ada --function taste:assess")
    firstpage("label export labels -o truth.qrels")
    firstpage("features shop.index queries.jsonl bm25.run --qrels truth.qrels -o data.parquet")
    verdict = firstpage("crossval data.parquet RankSVM --folds 3 --run bm25.run -t NDCG@5")
    assert "RankSVM" in verdict
    assert "bm25" in verdict
    firstpage("train RankSVM data.parquet --normalize minmax -o model.json")
    results = firstpage("search shop.index --model model.json", "red leather shoe")
    assert "sku-" in results


def test_comparisons_of_two_documents(firstpage: Command, folder: Path) -> None:
    """docs/pairs.md: assessors compare documents, and a ranker is trained on their answers."""
    firstpage("index products.jsonl -o shop.index")
    firstpage("candidates shop.index queries.jsonl --depth 12 -o bm25.run")
    firstpage(
        "label setup labels --index shop.index --queries queries.jsonl --depth 12 --k 5 "
        "--assessor ada --assessor ben"
    )
    for login in ("ada", "ben"):
        firstpage(f"label judge labels --assessor {login} --function taste:assess")
    firstpage("label export labels --content pairs -o votes.csv")
    votes = fp.read_pairs("votes.csv")
    assert votes.n_voters > 0
    assert len(votes.queries) == QUERIES
    firstpage("features shop.index queries.jsonl bm25.run --set letor -o features.parquet")
    trained = firstpage("train RankNet features.parquet --pairs votes.csv -o model.json")
    assert "votes are trained on" in trained
    assert f"{len(votes)} votes on" in trained.replace(",", "")
    firstpage("rank model.json features.parquet -o learned.run")
    agreement = firstpage("evaluate --run bm25.run --run learned.run --pairs votes.csv")
    assert "PairAccuracy" in agreement
    firstpage("export model.json --to solr -o solr")
    assert json.loads(Path("solr/model.json").read_text())["class"].endswith("LinearModel")
    firstpage("label export labels -o truth.qrels")
    assert "NDCG@5" in firstpage("evaluate --qrels truth.qrels --run learned.run -m NDCG@5")
    truth = fp.read_qrels("truth.qrels")
    bm25, learned = (
        fp.evaluate(fp.read_run(f"{name}.run"), truth, measures="NDCG@5").values.mean()
        for name in ("bm25", "learned")
    )
    assert learned > bm25
    folds = firstpage("crossval features.parquet RankNet RankSVM --pairs votes.csv --folds 3")
    assert "PairAccuracy" in folds
    assert "RankSVM" in folds


def test_texts_and_graded_judgments(firstpage: Command, folder: Path) -> None:
    """docs/search.md: judgments exist; tuned BM25 is the baseline."""
    firstpage("index products.jsonl -o shop.index")
    firstpage(
        "candidates shop.index queries.jsonl --depth 30 --tune --qrels graded.qrels --folds 3 "
        "-o bm25.run"
    )
    firstpage("features shop.index queries.jsonl bm25.run -o features.parquet")
    verdict = firstpage(
        "crossval features.parquet RankSVM --qrels graded.qrels --folds 3 --run bm25.run -t NDCG@10"
    )
    assert "RankSVM" in verdict
    joined = firstpage("describe features.parquet --qrels graded.qrels")
    assert f"{QUERIES} queries" in joined
    firstpage("train RankSVM features.parquet --qrels graded.qrels -o model.json")
    firstpage("rank model.json features.parquet -o learned.run")
    assert "NDCG@10" in firstpage(
        "compare --qrels graded.qrels --run bm25.run --run learned.run -m NDCG@10"
    )


def test_a_study_with_two_tools(firstpage: Command, folder: Path) -> None:
    """docs/label.md: the same queries are judged by pairs and by grades, and both leave."""
    firstpage("index products.jsonl -o shop.index")
    firstpage(
        "label setup study --index shop.index --queries queries.jsonl --first 6 --depth 12 --k 5 "
        "--tool pairs --tool grades --assessor ada --assessor ben"
    )
    for login in ("ada", "ben"):
        firstpage(f"label judge study --assessor {login} --function taste:assess")
    firstpage("label export study --tool grades -o grades.qrels")
    firstpage("label export study --tool pairs -o pairs.qrels")
    known = json.loads(Path("known.json").read_text())
    grades = fp.read_qrels("grades.qrels").to_dict()
    assert grades
    for query, documents in grades.items():
        for document, given in documents.items():
            assert given == known[query].get(document, 0)
    pairs = fp.read_qrels("pairs.qrels").to_dict()
    for query, documents in pairs.items():
        assert sorted(documents.values(), reverse=True)[:5] == [5, 4, 3, 2, 1], query


def test_a_search_log_with_judgments_of_quepid(firstpage: Command, folder: Path) -> None:
    """docs/export.md: features logged by Elasticsearch, judgments of Quepid, before and after."""
    write_search_log(folder)
    firstpage("import quepid quepid.csv -o quepid.qrels")
    firstpage("import feature-log log.jsonl --qrels quepid.qrels --run before.run -o data.parquet")
    data = instance(fp.Dataset, fp.read("data.parquet"))
    assert set(present(data.feature_names)) == {"title bm25", "clicks", "text bm25"}
    assert "leather" in " ".join(map(str, data.queries))
    firstpage("train RankSVM data.parquet -o model.json")
    assert "title bm25" in firstpage("explain model.json")
    firstpage("rank model.json data.parquet -o after.run")
    verdict = firstpage(
        "compare --qrels quepid.qrels --run before.run --run after.run -m NDCG@10 --baseline before"
    )
    assert f"{QUERIES} queries" in verdict
    exported = firstpage("export model.json --to elasticsearch -o plugin")
    assert exported is not None
    assert "title bm25" in "".join(p.read_text() for p in Path("plugin").rglob("*.json"))


def test_a_letor_file_labeled_anew(firstpage: Command, folder: Path) -> None:
    """docs/label.md: features exist; assessors compare documents, and training reads their order."""
    firstpage("index products.jsonl -o shop.index")
    firstpage("candidates shop.index queries.jsonl --depth 10 -o bm25.run")
    firstpage(
        "features shop.index queries.jsonl bm25.run --set short --qrels graded.qrels -o data.txt"
    )
    firstpage(
        "label setup labels --letor data.txt --queries queries.jsonl --collection products.jsonl "
        "--k 3 --assessor ada"
    )
    firstpage("label judge labels --assessor ada --function taste:assess")
    firstpage("label export labels -o truth.jsonl")
    truth = fp.read_truth("truth.jsonl")
    assert len(truth.queries) == QUERIES
    told = firstpage("train ListMLE data.txt --qrels truth.jsonl -o model.json")
    assert "confidence" in told
    firstpage("label export labels --content data -o judged.txt")
    assert (
        instance(fp.Dataset, fp.read("judged.txt")).feature_names
        == instance(fp.Dataset, fp.read("data.txt")).feature_names
    )
    verdict = firstpage("crossval judged.txt ListMLE RankSVM --folds 3 -t NDCG@3")
    assert "ListMLE" in verdict


def test_runs_pooled_from_three_systems(firstpage: Command, folder: Path) -> None:
    """docs/label.md: three systems are compared on judgments of their pooled documents."""
    firstpage("index products.jsonl -o shop.index")
    for name, options in {
        "plain": "",
        "title": "--weight title=5",
        "short": "--k1 0.5 --b 0.2",
    }.items():
        firstpage(f"candidates shop.index queries.jsonl --depth 20 {options} -o {name}.run")
    firstpage(
        "label setup pool --index shop.index --queries queries.jsonl --run plain.run "
        "--run title.run --run short.run --pool depth --depth 10 --tool grades --assessor ada"
    )
    firstpage("label judge pool --assessor ada --function taste:assess")
    firstpage("label export pool -o pool.qrels")
    verdict = firstpage(
        "compare --qrels pool.qrels --run plain.run --run title.run --run short.run -m NDCG@10"
    )
    assert f"{QUERIES} queries" in verdict


def test_pages_of_two_runs_to_a_measure(firstpage: Command, folder: Path) -> None:
    """docs/label.md: editors compare first pages; rankers are trained for what they prefer."""
    firstpage("index products.jsonl -o shop.index")
    firstpage("candidates shop.index queries.jsonl --depth 20 -o plain.run")
    firstpage("candidates shop.index queries.jsonl --depth 20 --k1 0.2 --b 0.9 -o other.run")
    firstpage(
        "label setup pages --tool lists --index shop.index --queries queries.jsonl "
        "--run plain.run --run other.run --k 5 --qrels graded.qrels --assessor ada"
    )
    firstpage("label judge pages --assessor ada --function taste:page")
    firstpage("label export pages --content preferences -o preferences.jsonl")
    firstpage("dcglearn learn preferences.jsonl --K 5 --rounds 0 -o measure.json")
    firstpage("features shop.index queries.jsonl plain.run --qrels graded.qrels -o data.parquet")
    firstpage(
        "train", 'AdaRank(measure="NDCG(measure.json)@5")', "data.parquet", "-o", "model.json"
    )
    firstpage("rank model.json data.parquet -o learned.run")
    verdict = firstpage(
        "compare --qrels graded.qrels --run plain.run --run learned.run -m NDCG(measure.json)@5"
    )
    assert "NDCG(measure.json)@5" in verdict


def test_clicks_of_a_shop(firstpage: Command, folder: Path) -> None:
    """docs/clicks.md: from the events of an application to a model that is served."""
    from tests.serving.conftest import clients

    firstpage("index products.jsonl -o shop.index")
    firstpage("candidates shop.index queries.jsonl --depth 12 -o bm25.run")
    firstpage("features shop.index queries.jsonl bm25.run --set letor -o features.parquet")
    write_clicks(folder, fp.read_run("bm25.run").to_dict())
    firstpage("clicks describe ubi.ndjson --save log.parquet")
    firstpage("clicks propensities log.parquet --max-rank 8 -o propensities.json")
    unknown = firstpage("train RankNet features.parquet --clicks log.parquet -o m.json", code=1)
    assert "features.parquet has none of the 15 queries of log.parquet" in unknown
    trained = firstpage(
        "train RankNet features.parquet --clicks log.parquet --queries queries.jsonl "
        "--propensities propensities.json --normalize minmax -o model.json"
    )
    assert "of equal weight" in trained
    results = firstpage("search shop.index --model model.json", "red leather shoe")
    assert "sku-" in results
    firstpage("rank model.json features.parquet -o learned.run")
    assert fp.read_run("learned.run").to_dict().keys() == fp.read_run("bm25.run").to_dict().keys()
    data = fp.read("features.parquet", labeled=False)[0]
    expected = fp.load("model.json").predict(data)
    candidates = [{"features": row} for row in data.X.tolist()]
    for client in clients(Path("model.json")):
        answer = client.post("/rank", json={"candidates": candidates})
        assert answer.status_code == 200, answer.text
        assert sorted(answer.json()["scores"]) == pytest.approx(sorted(expected))
