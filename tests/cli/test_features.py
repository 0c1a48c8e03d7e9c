"""Every command that scores matches the features of the model and of the data by the same rule."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from tests.narrow import dense

NAMES = ["bm25", "length", "clicks", "age"]
SYNTHETIC = fp.Synthetic(queries=12, docs=8, features=4, grades=3).dataset()
NAMED = SYNTHETIC.with_features(SYNTHETIC.X, NAMES)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write(NAMED, "named.csv")
    fp.write(SYNTHETIC, "data.txt")
    fp.write(SYNTHETIC.with_features(SYNTHETIC.X[:, :3]), "narrow.txt")
    fp.write(
        SYNTHETIC.with_features(np.column_stack([dense(SYNTHETIC.X), dense(SYNTHETIC.X)])),
        "wide.txt",
    )
    fp.RankNet().fit(NAMED).save("named.json")
    fp.RankNet().fit(SYNTHETIC).save("bare.json")
    return tmp_path


def rewritten(target: str, columns: list[str], head: list[str] | None = None) -> None:
    """Write named.csv with some of its columns, in this order."""
    import polars as pl

    frame = pl.read_csv("named.csv").select(columns)
    (frame if head is None else frame.rename(dict(zip(columns, head, strict=True)))).write_csv(
        target
    )


def scores(run, model: str, data: str, *more: str) -> tuple[list[float], str]:
    result = run("rank", model, data, "-o", "scores.txt", *more)
    assert result.returncode == 0, result.stderr
    return fp.read_scores("scores.txt").tolist(), result.stderr


def refused(run, *args: str) -> str:
    result = run(*args)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_columns_are_matched_by_name_in_any_order(files: Path, run) -> None:
    expected, stderr = scores(run, "named.json", "named.csv")
    assert stderr == ""
    rewritten("turned.csv", ["age", "qid", "clicks", "label", "bm25", "length"])
    values, stderr = scores(run, "named.json", "turned.csv")
    assert (values, stderr) == (expected, "")
    measured = [
        json.loads(run("evaluate", data, "--model", "named.json", "--json").stdout)
        for data in ("named.csv", "turned.csv")
    ]
    assert measured[0] == measured[1]


def test_columns_unknown_to_the_model_are_ignored_with_one_note(files: Path, run) -> None:
    expected, _ = scores(run, "named.json", "named.csv")
    rewritten("more.csv", ["qid", "label", *NAMES])
    text = Path("more.csv").read_text().splitlines()
    Path("more.csv").write_text(
        "\n".join([f"{text[0]},extra,other", *(f"{line},7,{i}" for i, line in enumerate(text[1:]))])
    )
    values, stderr = scores(run, "named.json", "more.csv")
    assert values == expected
    assert stderr == (
        "firstpage: note: more.csv: named.json does not use the features 'extra', 'other'; "
        "ignored.\n"
    )
    result = run("evaluate", "more.csv", "--model", "named.json", "--json")
    assert json.loads(result.stdout)
    assert result.stderr == stderr


def test_a_missing_column_is_refused_by_name(files: Path, run) -> None:
    rewritten("less.csv", ["qid", "label", "age", "bm25", "length"])
    for command in (
        ["rank", "named.json", "less.csv", "-o", "s"],
        ["rank", "named.json", "less.csv", "-o", "s", "--pad"],
        ["evaluate", "less.csv", "--model", "named.json"],
    ):
        assert "less.csv: lacks the feature 'clicks', which named.json uses" in refused(
            run, *command
        )
    assert not Path("s").exists()


@pytest.mark.parametrize("model", ["bare.json", "named.json"])
def test_letor_text_with_fewer_features_is_refused_without_pad(files: Path, run, model) -> None:
    for command in (
        ["rank", model, "narrow.txt", "-o", "s"],
        ["evaluate", "narrow.txt", "--model", model],
    ):
        stderr = refused(run, *command)
        assert f"narrow.txt: has 3 features, and {model} was trained on 4" in stderr
        assert "--pad" in stderr
    values, stderr = scores(run, model, "narrow.txt", "--pad")
    assert stderr.startswith("firstpage: note: narrow.txt: has 3 of the 4 features of")
    assert stderr.count("\n") == 1
    X = np.column_stack([dense(SYNTHETIC.X[:, :3]), np.zeros(SYNTHETIC.n_docs)])
    names = NAMES if model == "named.json" else None
    assert values == pytest.approx(fp.load(model).predict(SYNTHETIC.with_features(X, names)))
    result = run("evaluate", "narrow.txt", "--model", model, "--pad", "-m", "AP", "--json")
    assert json.loads(result.stdout)["measures"]["AP"] == pytest.approx(
        fp.evaluate(np.array(values), SYNTHETIC)["AP"]
    )
    assert "wide.txt: has 8 features" in refused(run, "rank", model, "wide.txt", "-o", "s", "--pad")


@pytest.mark.parametrize(
    ("model", "data", "unnamed"),
    [("bare.json", "named.csv", "bare.json"), ("named.json", "data.txt", "data.txt")],
)
def test_columns_matched_by_order_print_one_note(files: Path, run, model, data, unnamed) -> None:
    note = (
        f"firstpage: note: {data}: its columns are matched to the features of "
        f"{model} by their order, since {unnamed} has no feature names.\n"
    )
    assert scores(run, model, data)[1] == note
    arguments = ["evaluate", data, "--model", model, "--model", model, "--json"]
    assert run(*arguments).stderr == note
    with pytest.warns(fp.FirstpageWarning, match="columns are matched to the features") as caught:
        fp.load(model).predict(fp.read(data))
    assert len(caught) == 1
    assert scores(run, "bare.json", "data.txt")[1] == ""


def test_shards_follow_the_same_rule(files: Path, run) -> None:
    expected, _ = scores(run, "named.json", "named.csv")
    turned = [3, 0, 2, 1]
    fp.write_shards(
        NAMED.with_features(NAMED.X[:, turned], [NAMES[i] for i in turned]), "turned", 30
    )
    assert scores(run, "named.json", "turned") == (expected, "")
    wide = np.column_stack([dense(NAMED.X), dense(NAMED.X[:, :1])])
    fp.write_shards(NAMED.with_features(wide, [*NAMES, "copy"]), "more", 30)
    for command in (
        ["rank", "named.json", "more", "-o", "s"],
        ["evaluate", "more", "--model", "named.json"],
    ):
        result = run(*command)
        assert result.returncode == 0
        assert result.stderr.count("does not use the feature 'copy'") == 1
    assert fp.read_scores("s").tolist() == expected
    fp.write_shards(SYNTHETIC.with_features(SYNTHETIC.X[:, :3]), "narrow", 30)
    assert "--pad" in refused(run, "rank", "bare.json", "narrow", "-o", "s")
    padded, stderr = scores(run, "bare.json", "narrow", "--pad")
    assert "has 3 of the 4 features" in stderr
    assert padded == scores(run, "bare.json", "narrow.txt", "--pad")[0]


def test_validation_data_follow_the_same_rule(files: Path, run) -> None:
    train = ["train", "RankNet", "data.txt", "--valid", "narrow.txt", "-o", "m.json"]
    assert "narrow.txt: has 3 features, and this RankNet was trained on 4" in refused(run, *train)
    result = run(*train, "--pad")
    assert result.returncode == 0
    assert "narrow.txt: has 3 of the 4 features of data.txt" in result.stderr
    result = run("train", "RankNet", "narrow.txt", "--valid", "data.txt", "-o", "m.json", "--pad")
    assert result.returncode == 0
    assert fp.load("m.json").n_features_in_ == 4


def test_folds_follow_the_same_rule(files: Path, run) -> None:
    fp.write_folds(SYNTHETIC, "folds", 3)
    test = fp.read_letor("folds/Fold2/test.txt")
    fp.write_letor(test.with_features(test.X[:, :3]), "folds/Fold2/test.txt")
    arguments = ["crossval", "folds", "RankNet", "-t", "AP"]
    assert "--pad" in refused(run, *arguments)
    result = run(*arguments, "--pad", "--json")
    assert json.loads(result.stdout)["queries"] == 12
    assert result.stderr.count("test.txt: has 3 of the 4 features") == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_data_without_labels_are_ranked(files: Path, run, suffix) -> None:
    import polars as pl

    expected, _ = scores(run, "named.json", "named.csv")
    frame = pl.read_csv("named.csv").drop("label")
    if suffix == "npz":
        np.savez("bare.npz", X=dense(NAMED.X), qid=NAMED.qid, feature_names=np.array(NAMES))
    else:
        getattr(frame, f"write_{suffix}")(f"bare.{suffix}")
    assert scores(run, "named.json", f"bare.{suffix}")[0] == pytest.approx(expected)
    message = refused(run, "evaluate", f"bare.{suffix}", "--model", "named.json")
    assert "label" in message or "lacks y" in message
    assert refused(run, "train", "RankNet", f"bare.{suffix}", "-o", "m.json")


def test_letor_text_without_labels_is_refused_with_a_remedy(files: Path, run) -> None:
    Path("bare.txt").write_text("qid:1 1:0.5 2:1 3:1 4:1\n")
    message = refused(run, "rank", "bare.json", "bare.txt", "-o", "s")
    assert "bare.txt:1:1: the line must begin with a number, the label" in message
    assert "Any number will do if the documents are only to be ranked" in message


def test_pad_without_a_model_is_refused(files: Path, run) -> None:
    Path("s").write_text("0\n" * SYNTHETIC.n_docs)
    result = run("evaluate", "data.txt", "--scores", "s", "--pad")
    assert result.returncode == 2
    assert "--pad requires --model" in result.stderr
