"""Features of an index: names, selection, own functions, labels, threads and recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage import Index, Qrels, Run, TextFeatures
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search.families import FAMILIES
from tests.narrow import dense, instance

OWN = "tests.search.own_features"
WORDS = [f"w{i}" for i in range(45)]
NOT_LATENT = [*(name for name in FAMILIES if name not in ("latent", "vector")), "values"]


def documents(count: int = 50) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    return [
        {
            "id": f"d{i}",
            "title": " ".join(rng.choice(WORDS, 4)),
            "text": " ".join(rng.choice(WORDS, 25)),
            "price": float(i) if i % 5 else None,
            "stock": i - 20.0,
            "date": f"2024-01-{i % 28 + 1:02}",
        }
        for i in range(count)
    ]


QUERIES = [(f"q{i}", f"w{i} w{i + 3} w{2 * i}") for i in range(20)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.from_documents(documents(), tmp_path_factory.mktemp("features") / "i", latent=33)


@pytest.fixture(scope="module")
def run(index: Index) -> Run:
    return index.candidates(QUERIES, 10)


def qrels(run: Run) -> Qrels:
    return Qrels.from_dict(
        {q: {d: float(i % 3) for i, d in enumerate(row)} for q, row in run.to_dict().items()}
    )


def features_of(index: Index, *arguments: Any, **options: Any) -> TextFeatures:
    """Return features; the latent space is small here, which is told."""
    with pytest.warns(FirstpageWarning, match="no latent.similarity_128"):
        return TextFeatures(index, *arguments, **options)


# --- selection


def test_names_are_distinct_and_complete(index: Index) -> None:
    names = features_of(index).names
    assert len(set(names)) == len(names)
    letor = TextFeatures(index, "letor").names
    assert len(letor) == 3 * 17
    values = {f"{f}.{kind}" for f in ("price", "stock", "date") for kind in ("value", "log")}
    assert set(TextFeatures(index, "values").names) == {*values, "price.missing"}
    families = [*NOT_LATENT[:-1], "latent", "values"]
    parts = [
        (features_of if family == "latent" else TextFeatures)(index, family).names
        for family in families
    ]
    assert [name for part in parts for name in part] == list(names)


SELECTIONS = [
    ("title.bm25", {"title.bm25"}),
    ("title.bm25, text.bm25 ,title.bm25", {"title.bm25", "text.bm25"}),
    (["text.lm_*"], {f"text.lm_{m}" for m in ("absolute", "dirichlet", "jelinek_mercer")}),
    ("first_stage", {"first_stage.score", "first_stage.rank"}),
    ("*.tf_min", {f"{stream}.tf_min" for stream in ("title", "text", "document")}),
    ("first_stage,latent.feedback", {"first_stage.score", "first_stage.rank", "latent.feedback"}),
]


@pytest.mark.parametrize(("words", "names"), SELECTIONS)
def test_selection(index: Index, run: Run, words: str | list[str], names: set[str]) -> None:
    features = TextFeatures(index, words)
    assert set(features.names) == names
    every = TextFeatures(index, [*NOT_LATENT, "latent.feedback"])
    query = index.forward.query("w1 w2")
    rows = index.retrieve(query, 10).rows
    columns = [every.names.index(name) for name in features.names]
    some, all_ = features.compute(query, rows), every.compute(query, rows)
    np.testing.assert_array_equal(some, all_[:, columns])


def test_the_short_set(index: Index) -> None:
    names = features_of(index, "short").names
    assert 14 <= len(names) <= 20
    assert {"title.bm25", "document.coverage", "first_stage.score", "feedback.cosine"} <= set(names)


@pytest.mark.parametrize(
    "words", ["bm25", "title.bm26", "title.*,brand.*", "", "latent.similarity_128"]
)
def test_unknown_names(index: Index, words: str) -> None:
    with pytest.raises(
        DataError, match=r"no feature of this index is named .*; the sets are all, s"
    ):
        TextFeatures(index, words)


def test_fields_with_characters_of_patterns(tmp_path: Path) -> None:
    rows = [{"id": 1, "a[b]*": "red", "n": 3}, {"id": 2, "a[b]*": "shoe", "n": 4}]
    index = Index.from_documents(rows, tmp_path / "i", latent=0)
    names = TextFeatures(index, NOT_LATENT).names
    assert TextFeatures(index, names).names == names


# --- own features


def test_fields_with_blanks_around_their_names(tmp_path: Path) -> None:
    rows = [{"id": f"d{i}", " title": f"red {i}", " price ": i} for i in range(4)]
    index = Index.from_documents(rows, tmp_path / "i", latent=0)
    features = TextFeatures(index, "letor,values")
    assert {" title.bm25", " price .value"} <= set(features.names)
    again = TextFeatures.from_recipe(index, features.recipe(), "model.json")
    assert again.names == features.names
    assert len(TextFeatures(index, "document.bm25 , document.length").names) == 2


def test_own_features(index: Index, run: Run) -> None:
    own = [f"{OWN}:title_length", f"mine={OWN}:title_length"]
    features = TextFeatures(index, "title.bm25", own)
    assert features.names == ("title.bm25", "title_length", "mine")
    data = features.dataset(QUERIES, run)
    texts = dict(QUERIES)
    expected = [
        len(str(index.document(d)["title"])) + len(texts[q])
        for q, row in run.to_dict().items()
        for d in row
    ]
    np.testing.assert_array_equal(data.X[:, 1:], np.column_stack([expected, expected]))
    again = TextFeatures.from_recipe(index, features.recipe(), "model", own)
    assert again.names == features.names
    for named in ([], own[:1]):
        with pytest.raises(DataError, match=r"model: uses the function '.*' as a feature"):
            TextFeatures.from_recipe(index, features.recipe(), "model", named)


OWN_REFUSED = [
    ("nothing", "'nothing' names no function; write module:Name"),
    ("no_such_module:f", "the module 'no_such_module' cannot be imported"),
    (f"{OWN}:absent", "has no function 'absent'"),
    (f"{OWN}:NUMBER", "has no function 'NUMBER'"),
    (f"title.bm25={OWN}:title_length", "a feature is named 'title.bm25' already"),
    ("tests.search.bad_module:f", "the module 'tests.search.bad_module' cannot be imported"),
]


@pytest.mark.parametrize(("own", "message"), OWN_REFUSED)
def test_refused_own_features(index: Index, own: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TextFeatures(index, "letor", [own])


def test_own_features_have_distinct_names(index: Index) -> None:
    with pytest.raises(DataError, match="a feature is named 'title_length' already"):
        TextFeatures(index, "letor", [f"{OWN}:title_length"] * 2)


OWN_FAILURES = [
    (
        "wrong_shape",
        r"one finite number per document; .* returned an array of shape \(1,\) for 10 ",
    ),
    ("scalar", r"returned an array of shape \(\) for 10 documents"),
    ("not_finite", "it returned nan"),
    ("failing", "'failing' failed for query 'w0 w3 w0' \\(KeyError: 'absent'\\)"),
    ("dividing", "'dividing' failed .* \\(ZeroDivisionError: division by zero\\)"),
    ("texts", "'texts' failed .* \\(ValueError: could not convert"),
]


@pytest.mark.parametrize(("function", "message"), OWN_FAILURES)
def test_failures_of_own_features(index: Index, run: Run, function: str, message: str) -> None:
    features = TextFeatures(index, "title.bm25", [f"{OWN}:{function}"])
    with pytest.raises(DataError, match=message) as raised:
        features.dataset(QUERIES, run, threads=1)
    assert "\n" not in str(raised.value)


# --- values


def test_values(index: Index, run: Run) -> None:
    features = TextFeatures(index, "values")
    with pytest.warns(
        FirstpageWarning, match=r"price is missing in \d+ of 200 candidates; the med"
    ):
        data = features.dataset(QUERIES, run)
    prices = [row["price"] for row in documents() if row["price"] is not None]
    median = float(np.median(prices))
    for i, name in enumerate(run.docids):
        row = index.document(name)
        price = row.get("price", median)
        day = int(str(row["date"])[-2:])
        seconds = 1704067200 + 86400 * (day - 1)
        stock = float(row["stock"])
        expected = {
            "price.value": price, "price.log": np.log1p(price),
            "price.missing": float("price" not in row), "stock.value": stock,
            "stock.log": np.sign(stock) * np.log1p(abs(stock)), "date.value": seconds,
            "date.log": np.log1p(seconds),
        }  # fmt: skip
        values = dict(zip(features.names, dense(data.X[i]).tolist(), strict=True))
        assert values == pytest.approx(expected, rel=1e-6)


def test_a_recipe_with_missing_values_fits_an_index_without(tmp_path: Path) -> None:
    rows = [{"id": 1, "title": "red", "n": 1}, {"id": 2, "title": "red"}]
    index = Index.from_documents(rows, tmp_path / "i", fields={"n": "number"}, latent=0)
    recipe = TextFeatures(index, "values").recipe()
    assert recipe["features"] == ["n.value", "n.log", "n.missing"]
    index.delete(["2"])
    assert TextFeatures(index, "values").names == ("n.value", "n.log")
    features = TextFeatures.from_recipe(index, recipe, "model")
    X = features.compute(index.forward.query("red"), np.array([0]))
    np.testing.assert_allclose(X, [[1, np.log(2), 0]], rtol=1e-6)


# --- datasets


def test_labels(index: Index, run: Run) -> None:
    table = qrels(run).to_dict()
    del table["q3"]
    del table["q5"][next(iter(table["q5"]))]
    table["unknown"] = {"d1": 2.0}
    judged = Qrels.from_dict(table)
    with pytest.warns(
        FirstpageWarning,
        match="qrels: 189 of 200 candidates are judged; the others have the label 0; 1 of 20 quer",
    ):
        data = TextFeatures(index, "title.bm25").dataset(QUERIES, run, judged)
    expected = [table.get(q, {}).get(d, 0.0) for q, row in run.to_dict().items() for d in row]
    assert data.y.tolist() == expected
    assert list(data.queries) == list(run.queries)
    assert data.docids is not None
    assert list(data.docids) == list(run.docids)
    with pytest.raises(
        DataError, match="judges none of the candidates' queries; are the ids the s"
    ):
        TextFeatures(index, "title.bm25").dataset(QUERIES, run, Qrels.from_dict({"x": {"d": 1.0}}))
    unlabeled = TextFeatures(index, "title.bm25").dataset(QUERIES, run)
    assert np.isnan(unlabeled.y).all()


def test_refused_candidates(index: Index, run: Run) -> None:
    features = TextFeatures(index, "title.bm25")
    with pytest.raises(DataError, match="1 of 20 queries have no text, such as 'q19'; give the q"):
        features.dataset(QUERIES[:-1], run)
    with pytest.raises(DataError, match="2 documents are not in the index, such as 'x'; add what"):
        features.dataset([("q", "w1")], Run.from_dict({"q": {"x": 1.0, "y": 2.0, "d1": 0.0}}))
    with pytest.raises(DataError, match="threads must be at least 1; got 0"):
        features.dataset(QUERIES, run, threads=0)


def test_threads_do_not_matter(index: Index, tmp_path: Path) -> None:
    queries = [(f"q{i}", f"w{i % 45} w{i * 7 % 45} w{i * 11 % 45}") for i in range(70)]
    run = index.candidates(queries, 20)
    features = TextFeatures(index, [*NOT_LATENT[:-1], "latent.feedback"])
    done: list[tuple[int, int]] = []
    one = features.dataset(queries, run, threads=1, progress=lambda *step: done.append(step))
    four = features.dataset(queries, run, threads=4)
    np.testing.assert_array_equal(one.X, four.X)
    assert done[-1] == (70, 70)
    assert one.recipe == four.recipe


def test_the_order_of_candidates_does_not_matter(index: Index) -> None:
    features = TextFeatures(index, [*NOT_LATENT, "latent.feedback"])
    query = index.forward.query("w1 w2 w3")
    rows = index.retrieve(query, 12).rows
    X = features.compute(query, rows)
    shuffled = np.random.default_rng(0).permutation(12)
    np.testing.assert_array_equal(features.compute(query, rows[shuffled]), X[shuffled])


# --- recipes


@pytest.fixture(scope="module")
def labeled(index: Index, run: Run) -> fp.Dataset:
    with pytest.warns(FirstpageWarning, match="200 of 200 candidates are judged"):
        return TextFeatures(index, ["letor", "first_stage"]).dataset(QUERIES, run, qrels(run))


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_files_keep_the_recipe(labeled: fp.Dataset, suffix: str, tmp_path: Path) -> None:
    fp.write(labeled, tmp_path / f"data.{suffix}")
    again = instance(fp.Dataset, fp.read(tmp_path / f"data.{suffix}"))
    assert again.recipe == labeled.recipe
    np.testing.assert_array_equal(again.X, labeled.X)
    assert again.feature_names == labeled.feature_names
    assert again[:3].recipe == labeled.recipe
    ranker = fp.ListNet(normalize="standard").fit(again)
    ranker.save(tmp_path / "model.json")
    model = fp.load(tmp_path / "model.json")
    assert model.training_["data"]["recipe"] == labeled.recipe


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_other_formats_say_that_the_recipe_is_lost(
    labeled: fp.Dataset, suffix: str, tmp_path: Path
) -> None:
    with pytest.warns(FirstpageWarning, match="do not store how the features were computed"):
        fp.write(labeled, tmp_path / f"data.{suffix}")


def test_recipes_of_other_features(labeled: fp.Dataset) -> None:
    from firstpage.data.concat import concat_datasets

    assert concat_datasets([labeled[:3], labeled[3:]]).recipe == labeled.recipe
    names = labeled.feature_names
    other = fp.Dataset.from_arrays(labeled.X[:2], [0, 1], ["x", "x"], ["a", "b"], names)
    assert concat_datasets([labeled, other]).recipe is None
    assert labeled.with_features(labeled.X[:, :2]).recipe is None


def test_a_recipe_refuses_another_index(index: Index, tmp_path: Path) -> None:
    recipe = TextFeatures(index, ["letor", "latent.feedback"]).recipe()
    assert TextFeatures.from_recipe(index, recipe, "m").names == tuple(recipe["features"])
    german = Index.from_documents(documents(), tmp_path / "g", language="german", latent=0)
    with pytest.raises(DataError, match="m: was trained with text fields or analyzers other than"):
        TextFeatures.from_recipe(german, recipe, "m")
    for rows, latent in ((documents(), 0), (documents(40), 33)):
        other = Index.from_documents(rows, tmp_path / f"l{latent}", latent=latent)
        with pytest.raises(DataError, match="m: was trained with another latent space than"):
            TextFeatures.from_recipe(other, recipe, "m")
    rows = [{**row, "weight": 1.0} for row in documents()]
    heavy = Index.from_documents(rows, tmp_path / "heavy")
    for names in (["letor"], ["letor", "latent.feedback"]):
        recipe = TextFeatures(index, names).recipe()
        with pytest.raises(DataError, match="m: was trained with other numeric fields than"):
            TextFeatures.from_recipe(heavy, recipe, "m")


def test_only_latent_features_depend_on_the_latent_space(tmp_path: Path) -> None:
    index = Index.from_documents(documents(), tmp_path / "i", latent=8)
    query = index.forward.query("red shoes")
    rows = index.retrieve(query, 5).rows
    plain, latent = TextFeatures(index, "letor"), TextFeatures(index, ["letor", "latent.feedback"])
    recipes, values = [plain.recipe(), latent.recipe()], plain.compute(query, rows)
    index.fit_latent(4)
    assert np.array_equal(plain.compute(query, rows), values)
    served = TextFeatures.from_recipe(index, recipes[0], "m")
    assert np.array_equal(served.compute(query, rows), values)
    with pytest.raises(DataError, match="the latent space or the encoder of vectors has changed"):
        latent.compute(query, rows)
    with pytest.raises(DataError, match="m: was trained with another latent space than"):
        TextFeatures.from_recipe(index, recipes[1], "m")


def test_drift_is_told(tmp_path: Path) -> None:
    index = Index.from_documents(documents(), tmp_path / "i", latent=0)
    recipe = TextFeatures(index, "letor").recipe()
    index.add([{**row, "id": f"more{row['id']}"} for row in documents(10)])
    assert TextFeatures.from_recipe(index, recipe, "m").names
    index.add([{"id": f"x{i}", "title": "other words"} for i in range(300)])
    with pytest.warns(FirstpageWarning, match=r"have changed by a factor of \d+\.\d\d on average"):
        TextFeatures.from_recipe(index, recipe, "m")
