"""Missing values and categories: in data, rankers, model files, exports and shards."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.data.categories import MAX_CATEGORIES
from firstpage.learning.models.model_files import read_model
from firstpage.learning.scorers.tree_scoring import TreesScoring
from tests.narrow import dense, instance

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

OPTIONS = '{"min_data_per_group": 5, "cat_smooth": 1.0}'
TREES = f"trees(count=12, leaves=8, rate=0.1, min_docs=5, options={OPTIONS})"
COLORS = ("blue", "green", "red", "violet")
NAMES = ("color", "price", "size", "age")


def data(seed: int = 0, queries: int = 20, missing: float = 0.2) -> fp.Dataset:
    """Documents with a category, and three numbers, all of which may be missing."""
    rng = np.random.default_rng(seed)
    rows = 20 * queries
    color = rng.integers(0, len(COLORS), rows).astype(float)
    numbers = np.round(rng.normal(0, 1, (rows, 3)), 2)
    y = np.clip(np.round(2 * (color % 2) + numbers[:, 0] + (numbers[:, 1] > 0)), 0, 4)
    X = np.column_stack([color, numbers])
    X[rng.random(X.shape) < missing] = np.nan
    made = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(queries), 20), feature_names=NAMES)
    return fp.Dataset(
        made.X, made.y, made.offsets, made.queries, None, NAMES, categories={0: COLORS}
    )


def numbers_only(dataset: fp.Dataset) -> fp.Dataset:
    return dataset.with_features(dataset.X[:, 1:], NAMES[1:])


def unnamed(dataset: fp.Dataset) -> fp.Dataset:
    return dataset.with_features(dataset.X[:, 1:])


RANKERS = [
    fp.ListNet(scorer=TREES),
    fp.LambdaMART(scorer=TREES),
    fp.ListNet(scorer="trees(count=12, leaves=8, library=xgboost)"),
    fp.LambdaMART(scorer="trees(count=12, leaves=8, library=xgboost)"),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: f"{type(r).__name__} {r.scorer[:40]}")
def test_trees_learn_from_missing_values_and_categories(ranker: fp.Ranker, tmp_path: Path) -> None:
    train = data()
    fitted = ranker.fit(train, valid=data(1))
    assert fitted.score(train) > 0.9
    assert fitted.categories_ == {0: COLORS}
    gains = fp.explain(fitted).values
    assert gains[0] > 0
    fitted.save(tmp_path / "model.json")
    again = fp.load(tmp_path / "model.json")
    assert again.predict(train).tolist() == fitted.predict(train).tolist()
    model = read_model(tmp_path / "model.json")
    assert model.categories == {0: COLORS}
    assert model.reads_missing
    assert model.training["data"]["missing"] == train.n_missing > 0


def test_lambdamart_grows_the_trees_of_lightgbm() -> None:
    train = data()
    ranker = fp.LambdaMART(scorer=TREES, threads=1).fit(train)
    params = {
        "objective": "lambdarank", "verbosity": -1, "seed": 0, "num_threads": 1,
        "deterministic": True, "force_row_wise": True, "num_leaves": 8, "learning_rate": 0.1,
        "min_data_in_leaf": 5, "lambdarank_truncation_level": 30, **json.loads(OPTIONS),
    }  # fmt: skip
    full = lightgbm.Dataset(
        train.X, train.y.astype(int), group=train.lengths, categorical_feature=[0], params=params
    )
    booster = lightgbm.train(params, full, 12)
    probe = data(3)
    assert ranker.predict(probe).tolist() == booster.predict(probe.X, raw_score=True).tolist()


def test_columns_and_categories_are_matched_by_name() -> None:
    """Another order of columns and of categories changes no score; unknown ones are missing."""
    train, probe = data(), data(5)
    ranker = fp.ListNet(scorer=TREES).fit(train)
    expected = ranker.predict(probe)
    codes = np.array([3, 1, 0, 2, 4])  # red, green, pink, blue, violet
    names = ("red", "green", "pink", "blue", "violet")
    moved = np.array([names.index(color) for color in COLORS], float)
    own = probe.X[:, 0]
    color = np.where(np.isnan(dense(own)), np.nan, moved[np.nan_to_num(dense(own)).astype(int)])
    X = np.column_stack([dense(probe.X[:, 3]), color, dense(probe.X[:, 1]), dense(probe.X[:, 2])])
    other = fp.Dataset(
        X,
        probe.y,
        probe.offsets,
        probe.queries,
        None,
        ("age", "color", "price", "size"),
        categories={1: names},
    )
    assert len(codes) == len(names)
    assert ranker.predict(other).tolist() == expected.tolist()
    X[:3, 1] = names.index("pink")
    pink = fp.Dataset(
        X,
        probe.y,
        probe.offsets,
        probe.queries,
        None,
        other.feature_names,
        "new.csv",
        categories={1: names},
    )
    missing = probe.X.copy()
    missing[:3, 0] = np.nan
    gone = fp.Dataset(
        missing, probe.y, probe.offsets, probe.queries, None, NAMES, categories={0: COLORS}
    )
    with pytest.warns(FirstpageWarning, match=r"new.csv: categories .* missing: 3 of 'color'"):
        assert ranker.predict(pink).tolist() == ranker.predict(gone).tolist()


def test_frames_of_pandas_and_polars() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    train = data()
    frame = train.to_pandas()
    y, qid = frame.pop("label"), frame.pop("qid")
    text = frame.copy()
    frame["color"] = pandas.Categorical(frame["color"], COLORS)
    expected = fp.ListNet(scorer=TREES).fit(train).predict(train)
    ranker = fp.ListNet(scorer=TREES).fit(frame, y, qid=qid)
    assert ranker.categories_ == {0: COLORS}
    assert ranker.predict(frame).tolist() == expected.tolist()
    assert ranker.predict(text).tolist() == expected.tolist()
    own = polars.from_pandas(text).with_columns(polars.col("color").cast(polars.Enum(COLORS)))
    assert ranker.predict(own).tolist() == expected.tolist()
    with pytest.warns(FirstpageWarning, match="column 'color' is text, and read as a categorical"):
        fp.ListNet(scorer=TREES).fit(text, y, qid=qid)


@pytest.mark.parametrize("impute", ["median", "mean", "zero", -2.5])
@pytest.mark.parametrize("normalize", [None, "minmax", "global standard"])
def test_impute_fills_before_anything_is_scaled(
    impute: str | float, normalize: str | None, tmp_path: Path
) -> None:
    train = numbers_only(data())
    X = np.asarray(train.X)
    statistic = {"median": np.nanmedian(X, axis=0), "mean": np.nanmean(X, axis=0), "zero": 0.0}
    fill = statistic.get(impute, impute)  # type: ignore[arg-type]
    filled = train.with_features(np.where(np.isnan(X), fill, X), train.feature_names)
    ranker = fp.ListNet(impute=impute, normalize=normalize).fit(train)
    expected = fp.ListNet(normalize=normalize).fit(filled)
    assert ranker.predict(train) == pytest.approx(expected.predict(filled), rel=1e-9)
    ranker.save(tmp_path / "model.json")
    assert (
        fp.load(tmp_path / "model.json").predict(train).tolist() == ranker.predict(train).tolist()
    )
    stumps = fp.RankBoost(impute=impute, normalize=normalize).fit(train)
    assert np.isfinite(stumps.predict(train)).all()


@pytest.mark.torch
@pytest.mark.parametrize("impute", ["median", -2.5])
@pytest.mark.parametrize("normalize", [None, "minmax", "global standard"])
def test_networks_take_imputed_values(impute: str | float, normalize: str | None) -> None:
    train = numbers_only(data())
    network = fp.ListNet(scorer="mlp(hidden=4)", impute=impute, normalize=normalize)
    assert np.isfinite(network.fit(train).predict(train)).all()


def test_impute_over_shards(tmp_path: Path) -> None:
    train = numbers_only(data(queries=30))
    shards = fp.write_shards(train, tmp_path / "shards", rows=150)
    assert len(shards) > 2
    for impute in ("median", "mean"):
        whole = fp.ListNet(impute=impute, normalize="global minmax").fit(train)
        split = fp.ListNet(impute=impute, normalize="global minmax").fit(shards)
        assert split.transform_.fill == pytest.approx(whole.transform_.fill, rel=1e-12)
        assert split.predict(shards) == pytest.approx(whole.predict(train), rel=1e-4)
    with pytest.raises(fp.DataError, match=r"is nan\. Trees accept missing values"):
        fp.ListNet().fit(shards)


def test_shards_keep_categories(tmp_path: Path) -> None:
    train = data(queries=30)
    first = fp.Dataset(  # which has three of the categories, in another order
        np.where(train.X == 3, np.nan, dense(train.X))[:200],
        train.y[:200],
        train.offsets[:11],
        train.queries[:10],
        None,
        NAMES,
        categories={0: COLORS[:3]},
    )
    shards = fp.write_shards([first, train[10:]], tmp_path / "shards", rows=100)
    assert dict(shards.categories) == {0: COLORS}
    ranker = fp.ListNet(scorer=TREES).fit(train)
    expected = np.concatenate([ranker.predict(first), ranker.predict(train[10:])])
    assert ranker.predict(shards).tolist() == expected.tolist()
    with pytest.raises(fp.DataError, match="'color' holds categories, and ListNet reads numbers"):
        fp.ListNet().fit(shards)


def bad(value: float) -> fp.Dataset:
    train = numbers_only(data(missing=0.0))
    X = np.array(train.X)
    X[3, 1] = value
    return train.with_features(X, train.feature_names)


def test_bad_features_are_refused_in_one_line() -> None:
    train = data()
    empty = np.array(numbers_only(train).X)
    empty[:, 1] = np.nan
    blank = numbers_only(train).with_features(empty, NAMES[1:])
    for ranker, dataset, message in (
        (
            fp.ListNet(),
            bad(np.nan),
            r"size of row 4 \(query '0'\) is nan\. Trees accept .*impute=",
        ),
        (fp.RankSVM(), bad(np.nan), "is nan. Trees accept"),
        (fp.AdaRank(), bad(np.nan), "is nan. Trees accept"),
        (fp.ListNet(scorer="mlp"), bad(np.nan), "is nan. Trees accept"),
        (fp.ListNet(scorer=TREES), bad(np.inf), "is inf. Fill or drop"),
        (fp.ListNet(impute="mean"), bad(-np.inf), "is -inf. Fill or drop"),
        (fp.LambdaMART(scorer=TREES), bad(np.inf), "is inf. Fill or drop"),
        (
            fp.ListNet(),
            train,
            "'color' holds categories, and ListNet reads numbers only; use trees",
        ),
        (fp.ListNet(impute="mean"), train, "holds categories, and ListNet reads numbers only"),
        (fp.RankBoost(), train, "holds categories, and RankBoost reads numbers only"),
        (fp.ListNet(scorer=TREES, normalize="minmax"), train, "which minmax cannot change"),
        (fp.ListNet(scorer=TREES, impute="mean"), train, "which impute cannot change"),
        (fp.ListNet(impute="median"), blank, "'size' has no values in the training data, so"),
        (fp.ListNet(impute="mode"), blank, "impute must be 'median', 'mean', 'zero' or a number"),
        (fp.ListNet(impute=float("nan")), blank, "impute must be"),
        (fp.ListNet(impute=True), blank, "impute must be"),
    ):
        with pytest.raises(fp.DataError, match=message) as error:
            ranker.fit(dataset)
        assert "\n" not in str(error.value)
    with pytest.warns(FirstpageWarning, match="'size' is missing in all documents"):
        ranker = fp.ListNet(scorer=TREES).fit(blank)
    assert np.isfinite(ranker.predict(blank)).all()
    with pytest.raises(fp.DataError, match="'price' holds categories, where numbers are expected"):
        ranker.predict(
            fp.Dataset(
                np.zeros((2, 3)),
                np.zeros(2),
                np.array([0, 2]),
                train.queries[:1],
                None,
                NAMES[1:],
                categories={0: ("a",)},
            )
        )


def test_bad_categories_are_refused() -> None:
    arrays = np.zeros((2, 2)), [0, 1], ["q", "q"]
    plain = fp.Dataset.from_arrays(*arrays)
    half = fp.Dataset.from_arrays([[0.5, 1.0], [1.0, 2.0]], [0, 1], ["q", "q"])
    rows = MAX_CATEGORIES + 1
    many = fp.Dataset.from_arrays(np.arange(rows)[:, None], np.zeros(rows), ["q"] * rows)
    for make, message in (
        (lambda: half.with_categories(1), "feature 1 is categorical, and has the value 0.5"),
        (lambda: half.with_categories(3), "has no feature 3; give a name, or a number from 1 to 2"),
        (lambda: half.with_categories("color"), "has no feature 'color'"),
        (lambda: many.with_categories(1), "has 10,001 categories, and at most 10,000 are read"),
    ):
        with pytest.raises(fp.DataError, match=message):
            make()
    for categories, message in (
        ({0: ()}, "has codes that are not the indices"),
        ({0: ("a", "a")}, "has two equal categories"),
        ({7: ("a",)}, "column 7, which does not exist"),
    ):
        with pytest.raises(fp.DataError, match=message):
            fp.Dataset(plain.X, plain.y, plain.offsets, plain.queries, categories=categories)


def test_normalization_ignores_missing_values_of_a_query() -> None:
    X = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 2.0], [5.0, np.nan]])
    dataset = fp.Dataset.from_arrays(X, [0, 1, 2, 3], ["a"] * 4)
    scaled = fp.MinMax().apply(dataset).X
    assert np.array_equal(
        dense(scaled), [[0, np.nan], [0.5, np.nan], [np.nan, 0], [1, np.nan]], True
    )
    empty = dataset.with_features(np.full((4, 2), np.nan))
    fitted = fp.MinMax(per="global").fit(empty)
    assert json.loads(json.dumps(fitted.to_dict(), allow_nan=False))["shift"] == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:.*missing in all documents")
def test_two_missing_values_are_equal() -> None:
    X = np.column_stack([np.full(40, np.nan), np.arange(40) // 20])
    with pytest.warns(FirstpageWarning, match="no feature distinguishes its documents"):
        fp.ListNet(scorer="trees(count=2)").fit(X, np.arange(40) % 3, qid=np.arange(40) // 20)
    train = data()
    with pytest.warns(FirstpageWarning, match="the validation data are the training data"):
        fp.ListNet(scorer="trees(count=2)").fit(train, valid=train)
    with pytest.warns(FirstpageWarning, match="3 of 3 validation queries are also in the training"):
        fp.ListNet(scorer="trees(count=2)").fit(train, valid=train[4:7])


# --- exports


def rows_with_missing(seed: int = 7) -> np.ndarray:
    return np.asarray(data(seed, queries=3).X, np.float32)


def module(export: fp.results.Export) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "exported"}
    exec(export.files["model.py"].decode(), names)
    return names


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: f"{type(r).__name__} {r.scorer[:40]}")
def test_exported_trees_score_missing_values_and_categories(
    ranker: fp.Ranker, tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    fitted = ranker.fit(data())
    X = rows_with_missing()
    frame = fp.Dataset(
        X, np.zeros(60), np.array([0, 60]), data().queries[:1], None, NAMES, categories={0: COLORS}
    )
    expected = fitted.predict(frame)
    assert module(fp.export(fitted, "numpy"))["score"](X).tolist() == expected.tolist()  # type: ignore[operator]
    exported = fp.export(fitted, "onnx")
    session = runtime.InferenceSession(exported.files["model.onnx"])
    assert session.run(["scores"], {"features": X})[0] == pytest.approx(expected, rel=1e-6)
    known = session.get_modelmeta().custom_metadata_map["categories"]
    assert json.loads(known) == {"color": list(COLORS)}
    assert "unknown ones as NaN" in exported.files["README.md"].decode()
    library = instance(TreesScoring, fitted.model_).library
    files = fp.export(fitted, library).files
    assert json.loads(files["categories.json"]) == {"color": list(COLORS)}
    for target in ("solr", "elasticsearch", "ranklib", "vespa", "vespa-onnx"):
        message = "reads categories, which .* export to onnx, numpy, lightgbm or xgboost"
        with pytest.raises(fp.DataError, match=message):
            fp.export(fitted, target)


@pytest.mark.parametrize("normalize", [None, "minmax", "standard", "global minmax"])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_exported_trees_score_missing_values(library: str, normalize: str | None) -> None:
    runtime = pytest.importorskip("onnxruntime")
    scorer = f"trees(count=12, leaves=8, library={library})"
    fitted = fp.ListNet(scorer=scorer, normalize=normalize).fit(unnamed(data()))
    X = rows_with_missing()[:, 1:].copy()
    X[:20, 1] = np.nan  # a query without values of this feature
    expected = fitted.predict(X, qid=np.repeat([0, 1, 2], 20))
    score = module(fp.export(fitted, "numpy"))["score"]
    assert score(X, np.repeat([0, 1, 2], 20)).tolist() == expected.tolist()  # type: ignore[operator]
    for target in ("onnx", "vespa-onnx"):
        if target == "vespa-onnx" and normalize in ("minmax", "standard"):
            continue
        files = fp.export(fitted, target).files
        graph = next(content for name, content in files.items() if name.endswith(".onnx"))
        session = runtime.InferenceSession(graph)
        step = 20 if target == "onnx" else 1
        parts = [
            session.run(["scores"], {"features": X[lo : lo + step]})[0] for lo in range(0, 60, step)
        ]
        assert np.concatenate(parts) == pytest.approx(expected, rel=1e-6)
    message = "trained on missing values, which .* export to vespa-onnx, onnx, numpy, lightgbm"
    for target in ("solr", "elasticsearch", "opensearch-ranklib", "ranklib", "vespa"):
        if normalize in (None, "global minmax"):
            with pytest.raises(fp.DataError, match=message):
                fp.export(fitted, target)
    complete = fp.ListNet(scorer=scorer).fit(numbers_only(data(missing=0.0)))
    assert "model.json" in fp.export(complete, "solr").files


@pytest.mark.parametrize(
    "scorer", ["linear", pytest.param("mlp(hidden=4)", marks=pytest.mark.torch)]
)
@pytest.mark.parametrize("normalize", [None, "minmax", "global standard"])
def test_exports_fill_missing_values(scorer: str, normalize: str | None) -> None:
    runtime = pytest.importorskip("onnxruntime")
    train = unnamed(data())
    fitted = fp.ListNet(scorer=scorer, impute="median", normalize=normalize).fit(train)
    X = rows_with_missing()[:20, 1:]
    expected = fitted.predict(X, qid=np.zeros(20))
    score = module(fp.export(fitted, "numpy"))["score"]
    assert score(X) == pytest.approx(expected, rel=1e-9)  # type: ignore[operator]
    session = runtime.InferenceSession(fp.export(fitted, "onnx").files["model.onnx"])
    assert session.run(["scores"], {"features": X})[0] == pytest.approx(expected, rel=1e-5)
    if scorer == "linear" and normalize != "minmax":
        with pytest.raises(fp.DataError, match=r"Solr reads as 0; .* train with impute='zero'"):
            fp.export(fitted, "solr")
        zero = fp.ListNet(impute="zero", normalize=normalize).fit(train)
        assert "model.json" in fp.export(zero, "solr").files


# --- positions


def clicks(seed: int = 0) -> tuple[fp.Dataset, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))[rng.integers(150, size=600)]  # documents change their positions
    position = np.tile(np.arange(1, 21), 30)
    for query in range(30):
        rng.shuffle(position[20 * query : 20 * query + 20])
    seen = rng.random(600) < 1 / np.sqrt(position)
    y = (seen & (X[:, 0] + rng.normal(0, 0.3, 600) > 0)).astype(float)
    return fp.Dataset.from_arrays(X, y, np.repeat(np.arange(30), 20)), position


def test_positions_of_lightgbm() -> None:
    train, position = clicks()
    scorer = "trees(count=10, leaves=7, rate=0.1)"
    ranker = fp.LambdaMART(scorer=scorer, threads=1).fit(train.with_positions(position))
    params = {
        "objective": "lambdarank", "verbosity": -1, "seed": 0, "num_threads": 1,
        "deterministic": True, "force_row_wise": True, "num_leaves": 7, "learning_rate": 0.1,
        "min_data_in_leaf": 20, "lambdarank_truncation_level": 30,
    }  # fmt: skip
    full = lightgbm.Dataset(
        train.X, train.y.astype(int), group=train.lengths, position=position, params=params
    )
    expected = lightgbm.train(params, full, 10).predict(train.X, raw_score=True)
    assert ranker.predict(train).tolist() == expected.tolist()
    plain = fp.LambdaMART(scorer=scorer, threads=1).fit(train)
    assert plain.predict(train).tolist() != expected.tolist()
    order = np.random.default_rng(1).permutation(600)  # rows of a query need not be contiguous
    qid = np.repeat(np.arange(30), 20)
    again = fp.LambdaMART(scorer=scorer, threads=1).fit(
        train.X, train.y, qid=qid, position=position
    )
    assert again.predict(train).tolist() == expected.tolist()
    shuffled = fp.LambdaMART(scorer=scorer, threads=1)
    shuffled.fit(train.X[order], train.y[order], qid=qid[order], position=position[order])
    assert shuffled.score(train) > 0.5


@pytest.mark.parametrize("sparse", [False, True])
def test_positions_that_no_document_connects_are_named(sparse: bool) -> None:
    """Each document is at one position, so that position and relevance are confounded."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y, qid, position = np.tile([1.0, 0.0, 0.0, 0.0], 10), np.repeat(range(10), 4), [1, 2, 3, 4] * 10
    X[6:8] = X[5]  # positions 2, 3 and 4 are connected
    ranker = fp.LambdaMART(scorer="trees(count=2, min_docs=5)", threads=1)
    with pytest.warns(FirstpageWarning, match=r"equal features .* \(2 components\), so LambdaMART"):
        ranker.fit(scipy.sparse.csr_matrix(X) if sparse else X, y, qid=qid, position=position)


def test_positions_of_xgboost() -> None:
    train, position = clicks()
    ranker = fp.LambdaMART(scorer="trees(count=10, leaves=7, rate=0.1, library=xgboost)", threads=1)
    ranker.fit(train.with_positions(position))
    params = {
        "objective": "rank:ndcg", "base_score": 0.0, "tree_method": "hist", "lambda": 0.0,
        "grow_policy": "lossguide", "max_leaves": 7, "max_depth": 0, "seed": 0, "eta": 0.1,
        "min_child_weight": 1e-3, "nthread": 1, "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": 32, "lambdarank_unbiased": True,
    }  # fmt: skip
    qid = np.repeat(np.arange(30), 20)
    order = np.lexsort([position, qid])
    full = xgboost.DMatrix(train.X[order], train.y[order], qid=qid)
    booster = xgboost.train(params, full, 10)
    expected = booster.predict(xgboost.DMatrix(train.X), output_margin=True)
    assert ranker.predict(train).tolist() == expected.astype(float).tolist()
    plain = fp.LambdaMART(scorer="trees(count=10, leaves=7, rate=0.1, library=xgboost)").fit(train)
    assert plain.predict(train).tolist() != ranker.predict(train).tolist()


def test_bad_positions_are_refused() -> None:
    train, position = clicks()
    for make, message in (
        (lambda: train.with_positions(position[:5]), "5 positions for 600 documents"),
        (lambda: train.with_positions(position - 0.5), "integers of at least 0"),
        (lambda: train.with_positions(["a"] * 600), "integers of at least 0"),
        (lambda: fp.LambdaMART().fit(train, position=position), "has positions of its own"),
        (lambda: fp.LambdaMART(scorer="trees(library=xgboost)", gain=[0, 1]).fit(train), "gain is"),
    ):
        with pytest.raises(fp.DataError, match=message):
            make()
    with pytest.warns(FirstpageWarning, match="ListNet does not use the positions"):
        fp.ListNet().fit(train.with_positions(position))
