"""Search engines score as `predict` does, on usual, extreme and threshold inputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.interop.export.float32 import floor32, unscaled
from firstpage.interop.export.solr import SOLR_EPSILON, lowered
from firstpage.interop.export.targets import TARGETS
from firstpage.learning.models.model_files import model_of
from firstpage.learning.models.scorings import VoterCascade
from firstpage.learning.scorers.tree_scoring import TreesScoring
from tests.interop.export.conftest import (
    NAMES,
    RANKERS,
    TOLERANCE,
    Probe,
    dataset,
    predict,
    probe,
    ranker,
    sizes_of,
    without_tiny,
)
from tests.interop.export.engines import ENGINES
from tests.narrow import dense, instance

NORMALIZERS = [None, "global minmax", "global standard"]


@pytest.mark.parametrize("normalize", NORMALIZERS)
@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("target", ENGINES)
def test_engines_score_as_predict_does(target: str, kind: str, normalize: str | None) -> None:
    fitted = ranker(kind, normalize)
    probes = probe(fitted)
    if target == "solr" and kind not in ("linear", "features"):
        probes = without_tiny(probes)
    exported = fp.export(fitted, target)
    actual = ENGINES[target](exported.files, NAMES, probes.X)
    assert probes.error(actual, predict(fitted, probes.X), 1e-37) <= TOLERANCE


@pytest.mark.parametrize("kind", ["lightgbm", "stumps"])
def test_vespa_agrees_on_float64_features(kind: str) -> None:
    fitted = ranker(kind)
    probes = probe(fitted)
    X = np.nextafter(probes.X.astype(np.float64), np.inf)
    assert (
        probes.error(
            ENGINES["vespa"](fp.export(fitted, "vespa").files, NAMES, X), predict(fitted, X)
        )
        <= TOLERANCE
    )


def test_probes_distinguish_strict_from_inclusive_splits() -> None:
    """The probes contain every threshold, so < instead of <= changes scores."""
    fitted = ranker("lightgbm")
    probes, exported = probe(fitted), fp.export(fitted, "ranklib")
    text = exported.files["model.txt"].decode()
    from tests.interop.export import engines

    def strict(node, X):
        if node[0].tag == "output":
            return np.full(len(X), np.float32(node[0].text))
        goes = X[:, int(node[0].text) - 1] < np.float32(node[1].text)
        return np.where(goes, strict(node[2], X), strict(node[3], X))

    right, engines._ranklib_node = engines._ranklib_node, strict
    try:
        assert (
            probes.error(engines.ranklib(text, probes.X), predict(fitted, probes.X))
            > 1000 * TOLERANCE
        )
    finally:
        engines._ranklib_node = right


def test_lowered_thresholds_compensate_the_addition_of_solr() -> None:
    rng = np.random.default_rng(0)
    positive = (10.0 ** rng.uniform(-5, 9, 20_000)).astype(np.float32).astype(np.float64)
    assert (lowered(positive) + SOLR_EPSILON == positive).all()
    assert lowered(np.zeros(1)) + SOLR_EPSILON == 0
    tiny = np.array([1e-20, -1e-20])
    assert np.isnan(lowered(tiny)).all()
    near = np.array([1e-35, -1e-35])  # LightGBM's bounds of zero
    assert (lowered(near, 60) + SOLR_EPSILON >= 0).tolist() == [True, False]
    assert (np.abs(lowered(near, 60) + SOLR_EPSILON) < 1e-30 * 2.0**60).all()


def test_solr_scales_features_with_tiny_thresholds() -> None:
    model = json.loads(fp.export(ranker("lightgbm"), "solr").files["model.json"])
    norms = {f["name"]: f["norm"]["params"] for f in model["features"] if "norm" in f}
    assert NAMES[3] in norms  # 1e-30
    for params in norms.values():
        assert float(params["min"]) == 0
        assert np.log2(float(params["max"])).is_integer()


def test_solr_rejects_thresholds_it_cannot_represent() -> None:
    from firstpage.learning.models.model_files import Model
    from firstpage.learning.scorers.stumps import StumpsScoring

    scoring = StumpsScoring.from_stumps(1, [0, 0], [-2e-30, 1e38], [1.0, 1.0])
    model = Model("RankBoost", {}, scoring, None, None, {})
    with pytest.raises(fp.DataError, match="cannot represent both"):
        fp.export(model, "solr")
    assert fp.export(model, "elasticsearch").files


def test_floor32_and_unscaled_preserve_splits_of_float32_numbers() -> None:
    rng = np.random.default_rng(1)
    t = np.concatenate([rng.normal(0, 1, 500) * 10.0 ** rng.integers(-44, 38, 500), [0, 1e300]])
    low = floor32(t)
    for x in (low[:-1], np.nextafter(low[:-1], np.float32(np.inf))):
        assert ((x <= low[:-1]) == (x.astype(np.float64) <= t[:-1])).all()
    shift, scale = rng.normal(0, 50, len(t)), 10.0 ** rng.uniform(-6, 6, len(t))
    actual = unscaled(t, shift, scale)
    with np.errstate(over="ignore"):
        after = np.nextafter(actual, np.float32(np.inf))
    for x in (actual, after):
        inside = np.isfinite(x)
        with np.errstate(over="ignore"):
            scaled = ((x - shift) / scale).astype(np.float32)
        assert ((x <= actual) == (scaled <= t))[inside].all()


@pytest.mark.parametrize("target", ["solr", "elasticsearch", "ranklib", "vespa"])
def test_scaling_per_query_is_rejected(target: str) -> None:
    for normalize in ("minmax", "standard"):
        with pytest.raises(fp.DataError, match="one document at a time; export to onnx"):
            fp.export(ranker("linear", normalize), target)


def test_an_intercept_is_a_constant_feature() -> None:
    exported = fp.export(ranker("linear", "global standard"), "solr")
    store = json.loads(exported.files["features.json"])
    assert store[-1] == {
        "store": "listmle",
        "name": "constant",
        "params": {"value": 1},
        "class": "org.apache.solr.ltr.feature.ValueFeature",
    }
    stored = json.loads(
        fp.export(ranker("linear", "global standard"), "opensearch").files["features.json"]
    )
    last = stored["featureset"]["features"][-1]
    assert last["template"] == {"match_all": {"boost": 1.0}}
    plain = json.loads(fp.export(ranker("linear"), "solr").files["features.json"])
    assert len(plain) == len(NAMES)


def test_special_characters_in_names_are_preserved() -> None:
    exported = fp.export(ranker("lightgbm"), "solr")
    names = {f["name"] for f in json.loads(exported.files["features.json"])}
    assert names == set(NAMES)
    profile = fp.export(ranker("lightgbm"), "vespa").files["lambdamart.profile"].decode()
    assert profile.count("{") == profile.count("}")
    lines = [line for line in profile.splitlines() if line.strip().startswith("# feature")]
    assert len(lines) == len(NAMES)
    assert [
        json.loads(line.split(": ", 1)[1].removesuffix(" (FILL IN)")) for line in lines
    ] == NAMES


def test_empty_models_score_zero() -> None:
    from firstpage.learning.models.model_files import Model
    from firstpage.learning.scorers.stumps import StumpsScoring

    model = Model("RankBoost", {}, StumpsScoring.from_stumps(6, [], [], []), None, None, {})
    X = dataset().X
    names = [f"feature_{i}" for i in range(1, 7)]
    for target, engine in ENGINES.items():
        assert (engine(fp.export(model, target).files, names, dense(X)) == 0).all()


def test_errors_for_cascades_name_their_stages() -> None:
    data = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()
    top = fp.TopRank(voters=["Regression", "ListNet"], depth=5).fit(data)
    for target in TARGETS:
        with pytest.raises(fp.DataError, match=r"'first', 'voter 1' .. 'voter 2'.*stage='first'"):
            fp.export(top, target)
    exported = fp.export(top, "solr", stage="first")
    first = instance(VoterCascade, top.model_).first
    names = [f"feature_{i}" for i in range(1, 7)]
    actual = ENGINES["solr"](exported.files, names, dense(data.X))
    np.testing.assert_allclose(actual, first.scoring.predict(data.X), rtol=1e-5, atol=1e-6)
    with pytest.raises(fp.DataError, match="has no stage 'second'"):
        fp.export(top, "solr", stage="second")
    with pytest.raises(fp.DataError, match="has no stages"):
        fp.export(ranker("linear"), "solr", stage="first")


def test_unsupported_tree_options_are_rejected(data: fp.Dataset) -> None:
    """Options such as linear_tree change how trees score, and are not exported wrongly."""
    dart = fp.ListMLE(scorer=_trees("xgboost", booster="dart", rate_drop=0.5)).fit(data)
    with pytest.raises(fp.DataError, match="is not a sum of trees"):
        fp.export(dart, "vespa")
    linear = fp.ListMLE(scorer=_trees(linear_tree=True)).fit(data)
    with pytest.raises(fp.DataError, match="linear leaves"):
        fp.export(linear, "numpy")
    based = fp.ListMLE(scorer=_trees("xgboost", base_score=0.75)).fit(data)
    probes = probe(based)
    assert (
        probes.error(
            ENGINES["elasticsearch"](fp.export(based, "elasticsearch").files, NAMES, probes.X),
            predict(based, probes.X),
        )
        <= TOLERANCE
    )
    assert instance(TreesScoring, model_of(based).scoring).library == "xgboost"


@pytest.mark.parametrize("target", ["solr", "elasticsearch", "ranklib", "vespa"])
def test_zeros_read_as_missing_are_exported(data: fp.Dataset, target: str) -> None:
    X = np.where(np.random.default_rng(0).random(data.X.shape) < 0.3, 0, dense(data.X))
    sparse = data.with_features(X.astype(np.float32), data.feature_names)
    zero = fp.LambdaMART(scorer=_trees(zero_as_missing=True)).fit(sparse)
    files = fp.export(zero, target).files
    assert np.allclose(
        ENGINES[target](files, NAMES, dense(sparse.X)), zero.predict(sparse), rtol=1e-5
    )


def _trees(library: str = "lightgbm", **options: object):
    from firstpage.learning.scorers.trees import Trees

    return Trees(count=8, leaves=7, min_docs=5, library=library, options=options)


def test_many_trees_cause_a_warning_about_rounding() -> None:
    from firstpage.learning.models.model_files import Model
    from firstpage.learning.scorers.stumps import StumpsScoring

    count = 201
    scoring = StumpsScoring.from_stumps(count, range(count), np.zeros(count), np.ones(count))
    model = Model("RankBoost", {}, scoring, None, None, {})
    with pytest.warns(fp.FirstpageWarning, match="the target sums 201 trees in float32"):
        exported = fp.export(model, "ranklib")
    X = np.ones((1, count), np.float32)
    assert ENGINES["ranklib"](exported.files, [], X).tolist() == [201.0]


def test_sums_in_the_same_type_cause_no_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """XGBoost sums in float32, like the engines and ONNX in the same order, unlike Vespa."""
    onnxruntime = pytest.importorskip("onnxruntime")
    data = fp.Synthetic(queries=20, docs=8, features=3, grades=3).dataset()
    fitted = fp.ListMLE(scorer="trees(count=205, leaves=3, library=xgboost)").fit(data)
    recwarn.clear()
    names = [f"feature_{i}" for i in (1, 2, 3)]
    for target in ("solr", "elasticsearch", "ranklib"):
        actual = ENGINES[target](fp.export(fitted, target).files, names, dense(data.X))
        assert actual.tolist() == fitted.predict(data).tolist()
    session = onnxruntime.InferenceSession(fp.export(fitted, "onnx").files["model.onnx"])
    (actual,) = session.run(["scores"], {"features": data.X})
    assert actual.tolist() == fitted.predict(data).tolist()
    fp.export(fitted, "vespa-onnx")
    assert not [w for w in recwarn if issubclass(w.category, fp.FirstpageWarning)]
    with pytest.warns(fp.FirstpageWarning, match="trees in float64, and predict in float32"):
        fp.export(fitted, "vespa")


EXTREME = np.array(
    [0, 1, 1e-45, 1e-40, 1.1754944e-38, 1e-35, 1.0000001e-35, 1e-30, 1e30, 1e38, 3.4028235e38],
    np.float32,
)


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("target", ENGINES)
def test_extreme_float32_numbers(target: str, kind: str) -> None:
    """The largest, smallest and subnormal numbers and -0.0, except where sums overflow."""
    fitted, rng = ranker(kind), np.random.default_rng(8)
    X = dataset().X[rng.integers(0, dataset().n_docs, 900)].copy()
    odd = rng.random(X.shape) < 0.4
    X[odd] = rng.choice(np.concatenate([EXTREME, -EXTREME]), int(odd.sum()))
    if target == "solr":
        X[(np.abs(dense(X)) < 1e-30) & (X != 0)] = -0.0
    sizes = sizes_of(fitted, dense(X))
    kept = sizes < 1e38
    assert kept.sum() > 30
    probes = Probe(dense(X[kept]), sizes[kept])
    actual = ENGINES[target](fp.export(fitted, target).files, NAMES, probes.X)
    assert probes.error(actual, predict(fitted, probes.X), 1e-37) <= TOLERANCE


def test_weights_out_of_the_float32_range_are_rejected() -> None:
    from firstpage.learning.models.model_files import Model
    from firstpage.learning.scorers.linear import LinearScoring

    for weight in (1e39, 1e-31):
        model = Model("ListNet", {}, LinearScoring(np.array([weight])), None, None, {})
        for target in ("solr", "elasticsearch"):
            with pytest.raises(fp.DataError, match="out of the float32 range of"):
                fp.export(model, target)
        X = np.array([[2.0]], np.float32)
        files = fp.export(model, "vespa").files
        assert ENGINES["vespa"](files, [], X).tolist() == [2 * weight]


def test_real_data(real_data: Path) -> None:
    """MSLR-WEB10K has counts, zeros, and features up to 2e8."""
    data = fp.read_letor(real_data / "mslr-web10k-5k" / "test.txt")
    names = [f"feature_{i + 1}" for i in range(data.n_features)]
    for fitted in (
        fp.LambdaMART(scorer="trees(count=20)").fit(data),
        fp.RankBoost(rounds=40, normalize="global minmax").fit(data),
    ):
        expected = fitted.predict(data)
        for target, engine in ENGINES.items():
            actual = engine(fp.export(fitted, target).files, names, dense(data.X))
            assert np.abs(actual - expected).max() <= 1e-6 * np.abs(expected).max(), target


@pytest.mark.parametrize("seed", range(12))
def test_random_stumps_of_any_magnitude(seed: int) -> None:
    """Thresholds from 1e-40 to 1e38, features exactly at them and at their neighbors."""
    from firstpage.learning.models.model_files import Model
    from firstpage.learning.scorers.stumps import StumpsScoring

    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(-40, 39, 2)) if seed % 2 else (-12, 9)
    t = rng.normal(0, 1, 40) * 10.0 ** rng.integers(low, high + 1, 40)
    t[:3] = 0, 1e-35, -1e-35
    scoring = StumpsScoring.from_stumps(3, rng.integers(0, 3, 40), t, rng.normal(0, 1, 40))
    transform = fp.Standardize("global", rng.normal(0, 9, 3), 10.0 ** rng.uniform(-4, 4, 3))
    model = Model("RankBoost", {}, scoring, transform if seed % 3 == 2 else None, None, {})
    with np.errstate(over="ignore"):
        at = t.astype(np.float32)
        near = [np.nextafter(at, np.float32(side)) for side in (-np.inf, np.inf)]
    values = np.concatenate([at, *near])
    X = rng.choice(values[np.isfinite(values)], (500, 3))
    expected = model.predict(fp.Dataset.from_arrays(X, np.zeros(500), np.zeros(500, int)))
    usual = ((np.abs(X) >= 1e-30) | (X == 0)).all(axis=1)
    for target, engine in ENGINES.items():
        try:
            exported = fp.export(model, target)
        except fp.DataError as error:
            assert target == "solr"
            assert "cannot represent both" in str(error)
            continue
        rows = usual if target == "solr" else slice(None)
        actual = engine(exported.files, [f"feature_{i}" for i in (1, 2, 3)], X[rows])
        assert np.abs(actual - expected[rows]).max(initial=0.0) <= 1e-5, target
