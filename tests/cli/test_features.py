"""A model meets data with other features: one rule in every command that scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp

NAMES = ["bm25", "length", "clicks", "age"]
MADE = fp.Synthetic(queries=12, docs=8, features=4, grades=3).dataset()
NAMED = MADE.with_features(MADE.X, NAMES)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write(NAMED, "named.csv")
    fp.write(MADE, "data.txt")
    fp.write(MADE.with_features(MADE.X[:, :3]), "narrow.txt")
    fp.write(MADE.with_features(np.column_stack([MADE.X, MADE.X])), "wide.txt")
    fp.RankNet().fit(NAMED).save("named.json")
    fp.RankNet().fit(MADE).save("bare.json")
    return tmp_path


def rewritten(target: str, columns: list[str], head: list[str] | None = None) -> None:
    """named.csv with some of its columns, in this order."""
    import polars as pl

    frame = pl.read_csv("named.csv").select(columns)
    (frame if head is None else frame.rename(dict(zip(columns, head, strict=True)))).write_csv(
        target
    )


def scores(run, model: str, data: str, *more: str) -> tuple[list[float], str]:
    done = run("rank", model, data, "-o", "scores.txt", *more)
    assert done.returncode == 0, done.stderr
    return fp.read_scores("scores.txt").tolist(), done.stderr


def refused(run, *args: str) -> str:
    done = run(*args)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_columns_are_found_by_name_in_any_order(files: Path, run) -> None:
    want, said = scores(run, "named.json", "named.csv")
    assert said == ""
    rewritten("turned.csv", ["age", "qid", "clicks", "label", "bm25", "length"])
    found, said = scores(run, "named.json", "turned.csv")
    assert (found, said) == (want, "")
    measured = [
        json.loads(run("evaluate", data, "--model", "named.json", "--json").stdout)
        for data in ("named.csv", "turned.csv")
    ]
    assert measured[0] == measured[1]


def test_columns_that_the_model_does_not_know_are_left_out_with_one_note(files: Path, run) -> None:
    want, _ = scores(run, "named.json", "named.csv")
    rewritten("more.csv", ["qid", "label", *NAMES])
    text = Path("more.csv").read_text().splitlines()
    Path("more.csv").write_text(
        "\n".join([f"{text[0]},extra,other", *(f"{line},7,{i}" for i, line in enumerate(text[1:]))])
    )
    found, said = scores(run, "named.json", "more.csv")
    assert found == want
    assert said == (
        "firstpage: note: more.csv: named.json does not use the features 'extra', 'other'; "
        "ignored.\n"
    )
    done = run("evaluate", "more.csv", "--model", "named.json", "--json")
    assert json.loads(done.stdout)
    assert done.stderr == said


def test_a_missing_column_is_refused_by_name(files: Path, run) -> None:
    rewritten("less.csv", ["qid", "label", "age", "bm25", "length"])
    for command in (["rank", "named.json", "less.csv", "-o", "s"],
                    ["rank", "named.json", "less.csv", "-o", "s", "--pad"],
                    ["evaluate", "less.csv", "--model", "named.json"]):  # fmt: skip
        assert "less.csv: lacks the feature 'clicks', which named.json uses" in refused(
            run, *command
        )
    assert not Path("s").exists()


@pytest.mark.parametrize("model", ["bare.json", "named.json"])
def test_text_with_fewer_features_is_refused_unless_it_is_padded(files: Path, run, model) -> None:
    for command in (["rank", model, "narrow.txt", "-o", "s"],
                    ["evaluate", "narrow.txt", "--model", model]):  # fmt: skip
        said = refused(run, *command)
        assert f"narrow.txt: has 3 features, and {model} was trained on 4" in said
        assert "--pad" in said
    found, said = scores(run, model, "narrow.txt", "--pad")
    assert said.startswith("firstpage: note: narrow.txt: has 3 of the 4 features of")
    assert said.count("\n") == 1
    X = np.column_stack([MADE.X[:, :3], np.zeros(MADE.n_docs)])
    names = NAMES if model == "named.json" else None
    assert found == pytest.approx(fp.load(model).predict(MADE.with_features(X, names)))
    done = run("evaluate", "narrow.txt", "--model", model, "--pad", "-m", "AP", "--json")
    assert json.loads(done.stdout)["measures"]["AP"] == pytest.approx(
        fp.evaluate(np.array(found), MADE)["AP"]
    )
    assert "wide.txt: has 8 features" in refused(run, "rank", model, "wide.txt", "-o", "s", "--pad")


@pytest.mark.parametrize(
    ("model", "data", "unnamed"),
    [("bare.json", "named.csv", "bare.json"), ("named.json", "data.txt", "data.txt")],
)
def test_columns_taken_in_their_order_are_one_note(files: Path, run, model, data, unnamed) -> None:
    note = (
        f"firstpage: note: {data}: its columns are matched to the features of "
        f"{model} by their order, since {unnamed} has no feature names.\n"
    )
    assert scores(run, model, data)[1] == note
    asked = ["evaluate", data, "--model", model, "--model", model, "--json"]
    assert run(*asked).stderr == note
    with pytest.warns(fp.FirstpageWarning, match="by their order, since") as said:
        fp.load(model).predict(fp.read(data))
    assert len(said) == 1
    assert scores(run, "bare.json", "data.txt")[1] == ""


def test_shards_follow_the_same_rule(files: Path, run) -> None:
    want, _ = scores(run, "named.json", "named.csv")
    turned = [3, 0, 2, 1]
    fp.write_shards(
        NAMED.with_features(NAMED.X[:, turned], [NAMES[i] for i in turned]), "turned", 30
    )
    assert scores(run, "named.json", "turned") == (want, "")
    wide = np.column_stack([NAMED.X, NAMED.X[:, :1]])
    fp.write_shards(NAMED.with_features(wide, [*NAMES, "copy"]), "more", 30)
    for command in (["rank", "named.json", "more", "-o", "s"],
                    ["evaluate", "more", "--model", "named.json"]):  # fmt: skip
        done = run(*command)
        assert done.returncode == 0
        assert done.stderr.count("does not use the feature 'copy'") == 1
    assert fp.read_scores("s").tolist() == want
    fp.write_shards(MADE.with_features(MADE.X[:, :3]), "narrow", 30)
    assert "--pad" in refused(run, "rank", "bare.json", "narrow", "-o", "s")
    padded, said = scores(run, "bare.json", "narrow", "--pad")
    assert "has 3 of the 4 features" in said
    assert padded == scores(run, "bare.json", "narrow.txt", "--pad")[0]


def test_validation_data_follow_the_same_rule(files: Path, run) -> None:
    train = ["train", "RankNet", "data.txt", "--valid", "narrow.txt", "-o", "m.json"]
    assert "narrow.txt: has 3 features, and this RankNet was trained on 4" in refused(run, *train)
    done = run(*train, "--pad")
    assert done.returncode == 0
    assert "narrow.txt: has 3 of the 4 features of data.txt" in done.stderr
    done = run("train", "RankNet", "narrow.txt", "--valid", "data.txt", "-o", "m.json", "--pad")
    assert done.returncode == 0
    assert fp.load("m.json").n_features_in_ == 4


def test_folds_follow_the_same_rule(files: Path, run) -> None:
    fp.write_folds(MADE, "folds", 3)
    test = fp.read_letor("folds/Fold2/test.txt")
    fp.write_letor(test.with_features(test.X[:, :3]), "folds/Fold2/test.txt")
    asked = ["crossval", "folds", "RankNet", "-t", "AP"]
    assert "--pad" in refused(run, *asked)
    done = run(*asked, "--pad", "--json")
    assert json.loads(done.stdout)["queries"] == 12
    assert done.stderr.count("test.txt: has 3 of the 4 features") == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_data_without_labels_are_ranked(files: Path, run, suffix) -> None:
    import polars as pl

    want, _ = scores(run, "named.json", "named.csv")
    frame = pl.read_csv("named.csv").drop("label")
    if suffix == "npz":
        np.savez("bare.npz", X=NAMED.X, qid=NAMED.qid, feature_names=np.array(NAMES))
    else:
        getattr(frame, f"write_{suffix}")(f"bare.{suffix}")
    assert scores(run, "named.json", f"bare.{suffix}")[0] == pytest.approx(want)
    said = refused(run, "evaluate", f"bare.{suffix}", "--model", "named.json")
    assert "label" in said or "lacks y" in said
    assert refused(run, "train", "RankNet", f"bare.{suffix}", "-o", "m.json")


def test_text_without_labels_says_what_to_write(files: Path, run) -> None:
    Path("bare.txt").write_text("qid:1 1:0.5 2:1 3:1 4:1\n")
    said = refused(run, "rank", "bare.json", "bare.txt", "-o", "s")
    assert "bare.txt:1:1: the line must begin with a number, the label" in said
    assert "Any number will do if the documents are only to be ranked" in said


def test_pad_without_a_model_is_refused(files: Path, run) -> None:
    Path("s").write_text("0\n" * MADE.n_docs)
    done = run("evaluate", "data.txt", "--scores", "s", "--pad")
    assert done.returncode == 2
    assert "--pad goes with --model" in done.stderr
