"""Missing values and categories on the command line, from tables to rankings."""

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from tests.narrow import dense, instance

pytest.importorskip("lightgbm")
pytest.importorskip("polars")
TREES = 'trees(count=8, leaves=6, min_docs=5, options={"min_data_per_group": 5})'


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables with text, empty cells and the position of each document."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, queries in (("train", range(20)), ("test", range(20, 30))):
        lines = ["qid,label,brand,shop,price,rank"]
        for query in queries:
            for rank in range(1, 13):
                brand = rng.choice(["acme", "bolt", "core", ""])
                shop, price = rng.integers(1, 4), rng.normal()
                label = int(np.clip(round(2 * (brand == "bolt") + price), 0, 3))
                cell = "" if rng.random() < 0.2 else f"{price:.3f}"
                lines.append(f"q{query},{label},{brand},{shop},{cell},{rank}")
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


CATEGORICAL = ("--categorical", "brand", "--categorical", "shop")


def test_train_rank_evaluate_and_describe(tables: Path, run) -> None:
    result = run("describe", "train.csv", *CATEGORICAL)
    assert "features with missing values (NaN), and in how many documents: brand (" in result.stdout
    assert "2 features of categories: brand (3), shop (3)" in result.stdout
    described = json.loads(run("describe", "train.csv", *CATEGORICAL, "--json").stdout)
    assert described["categories"] == {"brand": 3, "shop": 3}
    assert set(described["missing_values"]) == {"brand", "price"}

    train = ("train", "ListNet", "train.csv", "--set", f"scorer={TREES}", *CATEGORICAL)
    assert (
        "ListNet does not use the positions"
        in run(*train, "--position", "rank", "-o", "model.json").stderr
    )
    ranker = fp.load("model.json")
    assert ranker.categories_ == {0: ("acme", "bolt", "core"), 1: ("1", "2", "3")}
    test = fp.read("test.csv", categorical=["brand", "shop"], position="rank")
    ranked = run("rank", "model.json", "test.csv", "-o", "scores.txt")
    assert fp.read_scores("scores.txt").tolist() == ranker.predict(test).tolist()
    measured = run("evaluate", "test.csv", "--model", "model.json", "-m", "NDCG@10")
    values = fp.evaluate(ranker.predict(test), test, measures="NDCG@10").per_query("NDCG@10")
    assert f"{values.mean():.4f}".lstrip("0") in measured.stdout
    assert "is text" not in ranked.stderr + measured.stderr  # the model knows its categories
    for target in ("test.parquet", "test.arrow", "test.npz"):
        run("convert", "test.csv", target, *CATEGORICAL)
        run("rank", "model.json", target, "-o", "again.txt")
        assert Path("again.txt").read_text() == Path("scores.txt").read_text()
    run("shard", "test.parquet", "shards", "--rows", "50")
    run("rank", "model.json", "shards", "-o", "again.txt")
    assert Path("again.txt").read_text() == Path("scores.txt").read_text()


def test_a_model_reads_categories_that_look_like_numbers(tables: Path, run) -> None:
    for name in ("train", "test"):
        text = Path(f"{name}.csv").read_text()
        Path(f"{name}.csv").write_text(text.replace("core", "7"))
    train = ("train", "ListNet", "train.csv", "--set", f"scorer={TREES}", *CATEGORICAL)
    run(*train, "-o", "model.json")
    assert run("rank", "model.json", "test.csv", "-o", "scores.txt").returncode == 0
    Path("test.csv").write_text(Path("test.csv").read_text().replace("brand", "maker"))
    result = run("rank", "model.json", "test.csv", "-o", "scores.txt")
    assert result.returncode == 1
    assert "there is no feature 'brand'" in result.stderr


def test_categories_in_cross_validation(tables: Path, run) -> None:
    """Of a table, by name; and of a folder of LETOR files, by number."""
    command = ("crossval", "train.csv", "ListNet", "--set", f"scorer={TREES}", "--folds", "3")
    result = run(*command, *CATEGORICAL, "-t", "NDCG@10", "--json")
    assert "is text" not in result.stderr
    data = instance(fp.Dataset, fp.read("train.csv", categorical=["brand", "shop"]))
    ranker = fp.ListNet(scorer=TREES)
    folds = fp.split_folds(data, 3, seed=0)
    expected = fp.cross_validate(ranker, folds, measures="NDCG@10").to_dict()
    found = json.loads(result.stdout)
    assert found["results"][0]["mean"] == expected["results"][0]["mean"]

    text = data.with_features(np.nan_to_num(dense(data.X)), None)
    fp.write_folds(text, "letor", 3)
    folder = ("crossval", "letor", "ListNet", "--set", f"scorer={TREES}", "-t", "NDCG@10", "--json")
    plain, coded = (run(*folder, *more).stdout for more in ((), ("--categorical", "1")))
    assert plain != coded


def test_positions_come_from_a_column(tables: Path, run) -> None:
    train = ("train", "LambdaMART", "train.csv", "--set", f"scorer={TREES}", *CATEGORICAL)
    result = run(*train, "--position", "rank", "-o", "model.json")
    assert result.returncode == 0, result.stderr
    assert fp.load("model.json").feature_names_in_.tolist() == ["brand", "shop", "price"]
    data = fp.read("train.csv", categorical=["brand", "shop"], position="rank")
    expected = fp.LambdaMART(scorer=TREES).fit(data).predict(data)
    assert fp.load("model.json").predict(data).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "ListNet", "train.csv", "-o", "m.json", *CATEGORICAL], "'brand', 'shop' holds"),
        (["train", "ListNet", "numbers.csv", "-o", "m.json"], "price of row 1 (query 'a') is nan"),
        (["train", "ListNet", "mixed.csv", "-o", "m.json"], "it has 'n/a' among numbers"),
        (["train", "ListNet", "train.csv", "--categorical", "color", "-o", "m.json"], "no feature"),
        (
            ["train", "ListNet", "train.csv", "--categorical", "price", "-o", "m.json"],
            "give integers",
        ),
        (["train", "LambdaMART", "train.csv", "--position", "x", "-o", "m.json"], "no column 'x'"),
        (
            ["train", "LambdaMART", "letor.txt", "--position", "1", "-o", "m.json"],
            "positions are read from a table",
        ),
        (
            ["convert", "train.csv", "train.txt", *CATEGORICAL],
            "LETOR text holds numbers, and 'brand'",
        ),
        (["describe", "letor.txt", "--categorical", "9"], "has no feature '9'"),
    ],
)
def test_mistakes(tables: Path, run, arguments: list[str], message: str) -> None:
    Path("numbers.csv").write_text("qid,label,price\na,1,\na,0,2\n")
    Path("mixed.csv").write_text("qid,label,price\na,1,n/a\na,0,2\n")
    Path("letor.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.1 2:nan\n")
    result = run(*arguments)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_impute_on_the_command_line(tables: Path, run) -> None:
    Path("letor.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.1 2:nan\n2 qid:1 1:0.9 2:3\n")
    run("train", "ListNet", "letor.txt", "--set", "impute=median", "-o", "m.json")
    run("rank", "m.json", "letor.txt", "-o", "s.txt")
    ranker = fp.load("m.json")
    assert ranker.transform_.fill.tolist() == [0.5, 2.0]
    assert fp.read_scores("s.txt").tolist() == ranker.predict(fp.read("letor.txt")).tolist()


def test_letor_text_keeps_missing_values_and_integers(tables: Path, run) -> None:
    """A feature that a line does not name is 0, not missing; nan is missing."""
    Path("a.txt").write_text("1 qid:1 1:7 3:nan\n0 qid:1 1:3 2:2 3:1\n")
    data = instance(fp.Dataset, fp.read("a.txt", categorical=[1]))
    assert data.X[0, 1] == 0
    assert data.n_missing == 1
    result = run("convert", "a.txt", "b.txt", "--categorical", "1")
    assert "does not store that feature 1 holds categories" in result.stderr
    again = instance(fp.Dataset, fp.read("b.txt", categorical=[1]))
    assert dict(again.categories) == {0: ("3", "7")}
    assert np.array_equal(dense(again.X), dense(data.X), equal_nan=True)
