"""RankLib's models, valid and damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.io.json_files import write_json
from firstpage.learning.models.model_files import read_model
from tests.interop.export.conftest import RANKERS, TOLERANCE, dataset, predict, probe, ranker
from tests.interop.export.engines import ranklib

ENSEMBLE = """## LambdaMART
## No. of trees = 2
## Learning rate = 0.1

<ensemble>
\t<tree id="1" weight="0.1">
\t\t<split>
\t\t\t<feature> 3 </feature>
\t\t\t<threshold> 0.45867884 </threshold>
\t\t\t<split pos="left">
\t\t\t\t<feature> 1 </feature>
\t\t\t\t<threshold> 0.0 </threshold>
\t\t\t\t<split pos="left">
\t\t\t\t\t<output> -2.0 </output>
\t\t\t\t</split>
\t\t\t\t<split pos="right">
\t\t\t\t\t<output> 1.5 </output>
\t\t\t\t</split>
\t\t\t</split>
\t\t\t<split pos="right">
\t\t\t\t<output> 1.3413738 </output>
\t\t\t</split>
\t\t</split>
\t</tree>
\t<tree id="2" weight="0.1">
\t\t<split>
\t\t\t<output> 0.5 </output>
\t\t</split>
\t</tree>
</ensemble>
"""


X = np.array([[0, 9, 0.1], [1e-3, 0, 0.45867884], [5, 5, 0.4586789], [-1, 0, 2]], np.float32)


def data_of(X: np.ndarray) -> fp.Dataset:
    return fp.Dataset.from_arrays(X, np.zeros(len(X)), np.zeros(len(X), int))


def test_ranklib_ensemble_computed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(ENSEMBLE)
    model = fp.interop.read_ranklib(tmp_path / "m.txt")
    actual = model.predict(data_of(X))
    assert actual == pytest.approx([-0.15, 0.2, 0.18413738, 0.18413738], rel=1e-6)
    assert actual == pytest.approx(ranklib(ENSEMBLE, X), rel=1e-6)
    write_json(model.to_dict(), tmp_path / "m.json")
    assert read_model(tmp_path / "m.json").predict(data_of(X)).tolist() == actual.tolist()
    assert fp.load(tmp_path / "m.json").predict(X).tolist() == actual.tolist()


def test_linear_ranklib_models_computed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "ca.txt").write_text("## Coordinate Ascent\n## Restart = 5\n1:0.5 3:-2.0\n")
    assert fp.interop.read_ranklib(tmp_path / "ca.txt").predict(data_of(X[:2])) == pytest.approx(
        [-0.2, 0.0005 - 2 * 0.45867884], rel=1e-6
    )
    (tmp_path / "lr.txt").write_text("## Linear Regression\n## Lambda = 1E-10\n0:4.5 1:1.0 2:2.0")
    model = fp.interop.read_ranklib(tmp_path / "lr.txt", n_features=3)
    assert model.predict(data_of(X)).tolist() == pytest.approx([22.5, 4.501, 19.5, 3.5])


@pytest.mark.parametrize("kind", RANKERS)
def test_exported_models_are_read_back(kind: str, tmp_path: Path) -> None:
    fitted = ranker(kind)
    fp.export(fitted, "ranklib", tmp_path / "m.txt")
    model = fp.interop.read_ranklib(tmp_path / "m.txt", n_features=6)
    given = probe(fitted)
    assert given.error(model.predict(data_of(given.X)), predict(fitted, given.X)) <= TOLERANCE
    assert np.isfinite(model.predict(dataset().with_features(dataset().X))).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a RankLib model"),
        ("## RankNet\n1 2\n", "its first line is '## RankNet'"),
        ("## Coordinate Ascent\n1:a\n", "damaged"),
        ("## Coordinate Ascent\n1:1 1:2\n", "occurs twice"),
        ("## Coordinate Ascent\n", "damaged"),
        ("## Coordinate Ascent\n1:nan\n", "not finite"),
        ("## Coordinate Ascent\n99999999999:1\n", "too many"),
        ("## MART\n<ensemble>", "damaged"),
        ("## MART\n<ensemble></ensemble>", "no trees"),
        ("## MART\n<!DOCTYPE x><ensemble></ensemble>", "declarations"),
        (ENSEMBLE.replace("<feature> 3", "<feature> 0"), "must have one feature"),
        (ENSEMBLE.replace("<output> 0.5", "<output> inf"), "not finite"),
        (ENSEMBLE.replace("<feature> 3", "<feature> 4"), "n_features is 3"),
    ],
)
def test_damaged_ranklib_models_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(fp.DataError, match=message) as error:
        fp.interop.read_ranklib(tmp_path / "m.txt", n_features=3 if "<feature> 4" in text else None)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENSEMBLE[:200], r"m\.txt:\d+: damaged or truncated"),
        (ENSEMBLE[:-20], r"m\.txt:\d+: damaged or truncated"),
        (ENSEMBLE.replace(' weight="0.1"', ""), "'weight' is missing"),
        (ENSEMBLE.replace(' pos="left"', ""), "'pos' is missing"),
        (ENSEMBLE.replace("<feature> 3", "<feature> " + "9" * 30), "must have one feature"),
        (ENSEMBLE.replace("threshold>", "bound>"), "must have one feature"),
        ("## Coordinate Ascent\n1:0.5\n2:0.5\n", "2 lines of weights"),
        ("## Random Forests\n", "'## Random Forests'"),
        ("no header", "'no header'"),
    ],
)
def test_truncated_and_changed_models_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(fp.DataError, match=message) as error:
        fp.interop.read_ranklib(tmp_path / "m.txt")
    assert "\n" not in str(error.value)


def test_errors_name_the_line_of_the_file(tmp_path: Path) -> None:
    at = ENSEMBLE[: ENSEMBLE.index("<feature>")].count("\n") + 1
    (tmp_path / "m.txt").write_text(ENSEMBLE.replace("<feature>", "<feature", 1))
    with pytest.raises(fp.DataError, match=rf"m\.txt:{at}: damaged"):
        fp.interop.read_ranklib(tmp_path / "m.txt")


def test_other_encodings_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(ENSEMBLE.encode("utf-16"))
    with pytest.raises(fp.DataError, match="is UTF-16 text"):
        fp.interop.read_ranklib(tmp_path / "b.txt")
    (tmp_path / "c.txt").write_bytes(b"## MART \xff")
    with pytest.raises(fp.DataError, match=r"is not UTF-8 text \(byte 8\)"):
        fp.interop.read_ranklib(tmp_path / "c.txt")
