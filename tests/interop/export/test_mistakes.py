"""Invalid input of exports: one-line errors, and no wrong or overwritten files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.interop.export.targets import TARGETS
from firstpage.learning.models.model_files import Model
from firstpage.learning.scorers.linear import LinearScoring
from firstpage.learning.scorers.stumps import StumpsScoring
from tests.cli.conftest import run  # noqa: F401
from tests.interop.export.conftest import NAMES, ranker
from tests.interop.export.engines import ENGINES
from tests.interop.export.test_runtimes import run_onnx


def linear(
    *weights: float, intercept: float = 0.0, names: Any = None, normalize: Any = None
) -> Model:
    return Model("ListNet", {}, LinearScoring(np.array(weights), intercept), normalize, names, {})


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.chdir(tmp_path)
    ranker("linear").save("model.json")
    return Path("model.json").read_bytes()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        *((name, "is also read (MODEL)") for name in ("model.json", "./model.json", "link.json")),
        (".", "is the exported model itself; write elsewhere"),
    ],
)
def test_the_source_model_is_not_overwritten(model: bytes, run, output, message) -> None:  # noqa: F811
    Path("link.json").symlink_to("model.json")
    done = run("export", "model.json", "--to", "solr", "-o", output)
    assert done.returncode != 0
    assert message in done.stderr
    assert Path("model.json").read_bytes() == model
    assert not Path("features.json").exists()  # nor anything else begun


def test_definitions_that_were_filled_in_are_not_overwritten(model: bytes) -> None:
    exported = fp.export("model.json", "solr", "out")
    filled = Path("out/features.json")
    filled.write_text(filled.read_text().replace("{!func}FILL_IN", "{!func}clicks", 1))
    for target in ("solr", "elasticsearch"):
        with pytest.raises(fp.DataError, match="is filled in there, and would be lost"):
            fp.export("model.json", target, "out")
    fp.export("model.json", "solr", "out", features="out/features.json")
    assert filled.read_text().count("{!func}clicks") == 1
    exported.save("other")
    exported.save("other")  # templates may go


@pytest.mark.parametrize("target", ["solr", "elasticsearch", "vespa"])
def test_definitions_of_other_features_are_not_overwritten(target: str, tmp_path: Path) -> None:
    """The new model has no feature of that name; a constant feature of an export may go."""
    before = linear(1.0, 2.0, intercept=3.0, names=("a", "b"))
    own = {"class": "C", "template": {"x": 1}, "expression": "bm25(a)"}
    exported = fp.export(before, target, tmp_path, name="m", features=[{"name": "a", **own}, "b"])
    with pytest.raises(fp.DataError, match="the feature 'a' is filled in there, and would be lost"):
        fp.export(linear(1.0, names=("b",)), target, tmp_path, name="m")
    assert {name: (tmp_path / name).read_bytes() for name in exported.files} == exported.files
    fp.export(
        linear(1.0, names=("a",)), target, tmp_path, name="m", features=[{"name": "a", **own}]
    )


def test_a_readme_of_the_user_is_not_overwritten(model: bytes) -> None:
    Path("out").mkdir()
    Path("out/README.md").write_text("# Our shop\n")
    with pytest.raises(
        fp.DataError, match=r"out/README\.md: was not written by an export, and woul"
    ):
        fp.export("model.json", "solr", "out")
    assert [path.name for path in Path("out").iterdir()] == ["README.md"]
    for target in TARGETS:
        if target not in ("lightgbm", "xgboost"):
            fp.export("model.json", target, "other", name="shoes.v2-x")
            fp.export("model.json", target, "other")


def test_functions_that_were_filled_in_are_not_overwritten(model: bytes) -> None:
    fp.export("model.json", "vespa", "out")
    fp.export("model.json", "vespa-onnx", "out")
    profile = Path("out/listmle.profile")
    profile.write_text(profile.read_text().replace("expression: 0", "expression: bm25(a)", 1))
    with pytest.raises(fp.DataError, match="is filled in there, and would be lost"):
        fp.export("model.json", "vespa", "out")
    contents = [{"name": NAMES[0], "expression": "bm25(a)"}, *NAMES[1:]]
    fp.export("model.json", "vespa", "out", features=contents)


@pytest.mark.parametrize("output", ["a" * 300, "a" * 300 + ".json", "model.json/x", "x\0y"])
def test_invalid_output_paths_are_rejected(model: bytes, output: str) -> None:
    with pytest.raises(fp.DataError, match="cannot write there"):
        fp.export("model.json", "solr", output)


def test_names_of_the_model_may_come_in_any_order() -> None:
    a = linear(1.0, 2.0, 3.0, names=("a", "b", "c"))
    contents = [{"name": "c", "class": "C"}, {"name": "a", "class": "A"}, "b"]
    exported = fp.export(a, "solr", features=contents)
    assert json.loads(exported.files["model.json"])["params"]["weights"] == {
        "a": 1.0,
        "b": 2.0,
        "c": 3.0,
    }
    store = {f["name"]: f for f in json.loads(exported.files["features.json"])}
    assert (store["a"]["class"], store["c"]["class"], store["c"]["params"]) == ("A", "C", {})
    with pytest.raises(fp.DataError, match="'b' is at position 1, and is feature 2 of the model"):
        fp.export(a, "solr", features=["b", "x", "c"])
    assert fp.export(a, "solr", features=["x", "b", "z"]).files
    assert fp.export(linear(1.0, 2.0), "solr", features=["b", "a"]).files  # it has no names


@pytest.mark.parametrize("target", ["solr", "opensearch"])
def test_exported_features_can_be_reused(target: str, tmp_path: Path) -> None:
    """Including the constant feature of an intercept."""
    model = linear(1.0, 2.0, intercept=3.0, names=("a", "b"))
    first = fp.export(model, target, tmp_path)
    again = fp.export(model, target, features=tmp_path / "features.json")
    assert again.files["features.json"] == first.files["features.json"]
    assert again.files["model.json"] == first.files["model.json"]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"a", "b"}, "must be a list of names"),
        ([None, "b"], "a name must be a string; got None"),
        ([True, "b"], "a name must be a string; got True"),
        ([["a"], "b"], "a name must be a string"),
        (["a", "a"], "'a' occurs twice"),
        (["a", " "], "one is blank"),
        ([{"name": "a", "template": {"x": float("nan")}}, "b"], "cannot be written as JSON"),
        ([{"name": "a", "template": {1, 2}}, "b"], "cannot be written as JSON"),
        ([{"name": "a", "template": 3}, "b"], "must have a query or a string as 'template'"),
        ([{"name": "a", "template": {}, "params": "x"}, "b"], "a list as 'params'"),
    ],
)
def test_invalid_features_are_rejected(features: Any, message: str) -> None:
    with pytest.raises(fp.DataError, match=message) as error:
        fp.export(linear(1.0, 2.0), "elasticsearch", features=features)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("own", [{"class": 3}, {"class": "x", "params": [1]}])
def test_invalid_features_of_solr_are_rejected(own: dict[str, Any]) -> None:
    with pytest.raises(fp.DataError, match="must have a string as 'class'"):
        fp.export(linear(1.0), "solr", features=[{"name": "a", **own}])


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("f.txt", "a\nü".encode("latin-1"), r"f\.txt: is not UTF-8 text \(byte 2\)"),
        ("f.json", b"[" * 100_000, r"f\.json:1: not valid JSON"),
        ("f.json", b'[\n"a",\n', r"f\.json:3: not valid JSON"),
    ],
)
def test_invalid_feature_files_are_rejected(
    tmp_path: Path, name: str, contents: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(fp.DataError, match=message):
        fp.export(linear(1.0, 2.0), "solr", features=tmp_path / name)


def test_keys_of_other_engines_are_dropped() -> None:
    features = [{"name": "a", "template": {"x": 1}, "store": "s", "class": "c"}]
    exported = fp.export(linear(1.0), "elasticsearch", features=features)
    contents = json.loads(exported.files["features.json"])["featureset"]["features"]
    assert contents == [{"name": "a", "template": {"x": 1}}]


@pytest.mark.parametrize("name", ["..", ".", "-x", "", "a/b", "a b"])
def test_invalid_names_are_rejected(name: str) -> None:
    with pytest.raises(fp.DataError, match="name must consist of letters"):
        fp.export(linear(1.0), "solr", name=name)


def test_dtype_is_for_onnx_only(model: bytes, run) -> None:  # noqa: F811
    done = run("export", "model.json", "--to", "solr", "--dtype", "float64")
    assert "dtype requires onnx and vespa-onnx" in done.stderr
    assert not Path("listmle-solr").exists()
    with pytest.raises(fp.DataError, match="dtype must be float32 or float64"):
        fp.export("model.json", "vespa-onnx", dtype="float16")


def scaled(shift: Any, scale: Any) -> Model:
    a, b = (None if part is None else np.array(part) for part in (shift, scale))
    return linear(1.0, 2.0, normalize=fp.Standardize("global", shift=a, scale=b))


STUMPS = Model(
    "RankBoost",
    {},
    StumpsScoring.from_stumps(2, [0, 1], [0.5, 0.5], [1e308, 1e308]),
    None,
    None,
    {},
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (linear(1.0, intercept=np.inf), "a weight is infinite"),
        (linear(1.0, intercept=np.nan), "a weight is infinite"),
        (linear(), "has no features"),
        (scaled(None, None), "is not known for all"),
        (scaled([1.0], [1.0]), "is not known for all"),
        (scaled([1.0, np.nan], [1.0, 1.0]), "is not finite for all"),
        (scaled([1.0, 1.0], [1.0, 0.0]), "is not finite for all"),
        (linear(1e308, 1e308, normalize=fp.MinMax()), "scores that are not finite: its largest"),
        (linear(1e300), "scores that are not finite: its largest weight is 1e.300"),
        (STUMPS, "scores that are not finite: its weights"),
    ],
)
def test_models_with_infinite_numbers_are_rejected(
    target: str, broken: Model, message: str
) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.export(broken, target)


@pytest.mark.parametrize("step", [1e39, 3e38, 1e-31])
def test_leaves_out_of_the_float32_range_are_rejected(step: float) -> None:
    scoring = StumpsScoring.from_stumps(2, [0, 1], [0.5, 0.5], [step, step])
    model = Model("RankBoost", {}, scoring, None, None, {})
    for target in TARGETS:
        if target in ("numpy", "vespa", "lightgbm", "xgboost"):
            continue
        with pytest.raises(fp.DataError, match="is out of the float32 range"):
            fp.export(model, target)
    actual = ENGINES["vespa"](fp.export(model, "vespa").files, [], np.ones((1, 2)))
    assert actual.tolist() == [2 * step]


def test_thresholds_out_of_the_float32_range_split_nothing() -> None:
    """They must not be written as infinities, which JSON lacks, nor be rejected."""
    scoring = StumpsScoring.from_stumps(2, [0, 1, 1], [1e300, -1e300, 0.0], [1.0, 2.0, 4.0])
    model = Model("RankBoost", {}, scoring, None, None, {})
    X = np.array([[3e38, -3e38], [0, 1]], np.float32)
    for target, engine in ENGINES.items():
        files = fp.export(model, target).files
        assert b"Infinity" not in files.get("model.json", b"")
        actual = engine(files, ["feature_1", "feature_2"], X)
        assert actual.tolist() == [2.0, 6.0], target


def test_errors_of_the_numpy_scorer_are_clear(tmp_path: Path) -> None:
    fp.export(linear(1.0, 2.0), "numpy", tmp_path / "m.py")
    for text, message in (
        ("1 2 3\n", "2 columns"),
        ("1 x\n", "x"),
        ("1 nan\n", "missing or infinite"),
    ):
        done = subprocess.run(
            [sys.executable, "-I", str(tmp_path / "m.py")],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert message in done.stderr
    names: dict[str, Any] = {"__name__": "m"}
    exec((tmp_path / "m.py").read_text(), names)
    with pytest.raises(ValueError, match="one entry per row"):
        names["score"](np.ones((3, 2)), [1, 2])


def test_ten_thousand_features() -> None:
    rng = np.random.default_rng(0)
    weights, X = rng.normal(0, 1, 10_000), rng.normal(0, 1, (4, 10_000)).astype(np.float32)
    model = linear(*weights)
    expected, sizes = X @ weights, np.abs(X) @ np.abs(weights)
    for target in TARGETS:
        if target not in ("lightgbm", "xgboost"):
            assert fp.export(model, target).files
    actual = [ENGINES["ranklib"](fp.export(model, "ranklib").files, [], X)]
    actual.append(run_onnx(fp.export(model, "onnx"), [X]))
    assert (np.abs(np.array(actual) - expected) / sizes).max() <= 1e-6
