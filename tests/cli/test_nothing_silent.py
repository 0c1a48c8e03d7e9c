"""Whatever a command drops or assumes prints one note; options without effect are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.formats.trec import to_run
from firstpage.data.io.json_files import write_json
from firstpage.learning.models.model_files import FILE
from tests.narrow import dense, instance

SYNTHETIC = fp.Synthetic(queries=12, docs=6, features=3, grades=3).dataset()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write(SYNTHETIC, "d.txt")
    fp.write(SYNTHETIC[6:], "v.txt")
    fp.write_qrels(SYNTHETIC, "d.qrels")
    for name in "ab":
        scores = np.random.default_rng(ord(name)).random(SYNTHETIC.n_docs)
        fp.write_scores(scores, f"{name}.scores")
        fp.write_run(to_run(SYNTHETIC, scores, name), f"{name}.run")
    fp.write_run(to_run(SYNTHETIC[:10], np.arange(SYNTHETIC[:10].n_docs)), "short.run")
    fp.write(SYNTHETIC.with_features(SYNTHETIC.X, ["x", "y1", "z"]), "named.csv")
    fp.write_folds(SYNTHETIC, "folds", 3)
    fp.dcglearn.Utility.from_gains(gains=[0, 1, 2], discounts=[1, 0.5]).save("m.json")
    return tmp_path


TRAIN = ["train", "ListNet", "d.txt", "-o", "model.json"]
SCORES = ["--scores", "a.scores", "--scores", "b.scores"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([*TRAIN, "--tuner", "optuna"], "--tuner requires --tune or --grid"),
        ([*TRAIN, "--trials", "3"], "--trials requires --tune or --grid"),
        ([*TRAIN, "--valid", "v.txt", "--tune", "--trials", "3"], "--trials requires --tuner optuna"),
        ([*TRAIN, "--pad"], "--pad requires --valid"),
        ([*TRAIN, "-m", "NDCG@3"], "--measure requires --valid"),
        ([*TRAIN, "--set", "patience=3"], "patience=3 requires --valid"),
        (["train", "ListMLE(patience=3)", "d.txt", "-o", "m"], "patience=3 requires --valid"),
        (["crossval", "bare-folds", "ListNet", "-m", "AP"], "--measure requires folds that have validation data"),
        (["evaluate", "d.txt", "--scores", "a.scores", "--rel", "2", "-m", "NDCG@5"], "--rel requires a measure of relevant documents"),
        (["evaluate", "d.txt", "--scores", "a.scores", "--rel", "2", "-m", "AP(rel=1)"], "--rel requires a measure of relevant documents"),
        (["compare", "d.txt", *SCORES, "--rel", "2", "-m", "NDCG@5"], "--rel requires a measure of relevant documents"),
        ([*TRAIN, "--set", "l2=1", "--set", "l2=2"], "l2 is given twice: by --set l2=1 and by --set l2=2"),
        ([*TRAIN, "--seed", "3", "--set", "seed=4"], "seed is given twice: by --seed and by --set seed=4"),
        ([*TRAIN, "--normalize", "minmax", "--set", "normalize=standard"], "normalize is given twice"),
        (["train", "ListMLE(k=3)", "d.txt", "--set", "k=5", "-o", "m"], "k is given twice: in ListMLE(k=3) and by --set k=5"),
        (["train", "ListMLE(seed=3)", "d.txt", "--seed", "5", "-o", "m"], "seed is given twice: in ListMLE(seed=3) and by --seed"),
        ([*TRAIN, "--valid", "v.txt", "--grid", "l2=1,2", "--grid", "l2=3"], "--grid l2 is given twice"),
        (["crossval", "folds", "ListNet", "ListNet"], "ListNet is named twice"),
        (["convert", "d.txt", "t.txt", "--k", "5"], "--k requires --truth top-k"),
        (["convert", "d.txt", "t.txt", "--truth", "binary", "--min-grade", "1"], "--min-grade requires --truth top-k"),
        (["convert", "d.txt", "t.txt", "--rel", "2"], "--rel requires --truth binary"),
        (["convert", "d.txt", "t", "--folds", "3", "--to", "csv"], "--folds writes LETOR text, not csv"),
        (["convert", "d.qrels", "t.qrels", "--dtype", "float64"], "--dtype requires a file of features"),
        (["evaluate", "d.txt", "--scores", "a.scores", "--queries", "run"], "--queries requires --run"),
        (["compare", "d.txt", *SCORES, "--queries", "run"], "--queries requires --run"),
        (["compare", "--qrels", "d.qrels", "--run", "a.run", "--run", "sub/a.run", "--baseline", "a"], "--baseline a may be a.run or sub/a.run"),
        (["aggregate", "--data", "d.txt", *SCORES, "--missing", "ignore"], "--missing requires runs"),
        (["aggregate", "--data", "d.txt", *SCORES, "--tag", "x"], "--tag requires runs"),
        (["aggregate", "a.run", "b.run", "-m", "AP"], "--measure requires judgments"),
        (["dcglearn", "choose", "p.jsonl", "--measure", "m.json", "--K", "3"], "--K requires --prefs"),
    ],
)  # fmt: skip
def test_options_without_effect_are_refused(
    files: Path, run, args: list[str], message: str
) -> None:
    Path("sub").mkdir()
    fp.write_folds(SYNTHETIC, "bare-folds", 3)
    for file in Path("bare-folds").glob("*/vali.txt"):
        file.unlink()
    Path("sub/a.run").write_bytes(Path("a.run").read_bytes())
    result = run(*args)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""


def notes(result) -> list[str]:
    assert result.returncode == 0, result.stderr
    return [x for x in result.stderr.splitlines() if x.startswith("firstpage: note: ")]


def test_uninformative_queries_are_counted(files: Path, run) -> None:
    varied = SYNTHETIC.y.copy()
    varied[SYNTHETIC.offsets[:-1]], varied[SYNTHETIC.offsets[:-1] + 1] = 0, 1
    fp.write(SYNTHETIC.with_labels(varied), "varied.txt")
    flat = varied.copy()
    flat[: SYNTHETIC.offsets[2]] = 1
    fp.write(SYNTHETIC.with_labels(flat), "flat.txt")
    (note,) = notes(run("train", "ListNet", "flat.txt", "-o", "m.json"))
    assert note.endswith("flat.txt: 2 of 12 queries have a single label value; skipped.")
    assert notes(run("train", "Regression", "flat.txt", "-o", "m.json")) == []
    assert notes(run("train", "ListNet", "varied.txt", "-o", "m.json")) == []


def test_unused_seed_prints_a_note(files: Path, run) -> None:
    """It is a note and not an error, because scripts pass one seed to every command."""
    arguments = ["evaluate", "d.txt", "--scores", "a.scores", "--seed", "3"]
    (note,) = notes(run(*arguments))
    assert "--seed has no effect" in note
    for options in (["--ci"], ["--k", "3"], ["--ties", "shuffle"], ["-f", "html"]):
        assert notes(run(*arguments, *options)) == []


def test_diverged_trials_are_counted(files: Path, run) -> None:
    arguments = ["train", "Regression(solver=gd)", "d.txt", "--valid", "v.txt", "-o", "m.json"]
    result = run(*arguments, "--grid", "solver=gd(rate=0.1, max_iter=5),gd(rate=1e300, max_iter=5)")
    assert "firstpage: note: 1 of 2 trials diverged; they have no score." in notes(result)


def test_converted_feature_names_are_kept_without_a_note(files: Path, run) -> None:
    for target in ("n.txt", "n.parquet"):
        assert notes(run("convert", "named.csv", target)) == []
        assert (
            instance(fp.Dataset, fp.read(target)).feature_names
            == instance(fp.Dataset, fp.read("named.csv")).feature_names
        )


def test_generated_document_ids_print_a_note(files: Path, run) -> None:
    Path("bare.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2 # docid = b\n")
    _, note = notes(run("convert", "bare.txt", "bare.qrels"))
    assert "bare.txt: 1 of 2 documents have no id" in note
    assert fp.read_qrels("bare.qrels").to_dict() == {"1": {"1-1": 1, "b": 0}}


def test_columns_that_look_like_labels_print_a_note(files: Path, run) -> None:
    Path("two.csv").write_text("label,grade,qid,a\n1,1,1,0.5\n0,0,1,0.1\n")
    (note,) = notes(run("describe", "two.csv"))
    assert "two.csv: 'grade' is read as a feature, since 'label' is the label" in note


def test_unused_arrays_of_npz_print_a_note(files: Path, run) -> None:
    np.savez("d.npz", X=dense(SYNTHETIC.X), y=SYNTHETIC.y, qid=SYNTHETIC.qid, weights=np.ones(3))
    (note,) = notes(run("describe", "d.npz"))
    assert "d.npz: ignores the arrays weights; it reads X" in note


def test_queries_missing_from_an_aggregated_run_print_a_note(files: Path, run) -> None:
    (note,) = notes(run("aggregate", "a.run", "b.run", "short.run", "-o", "o.run"))
    assert "short.run: lacks 2 of 12 queries, and has no vote there: 11, 12." in note


def test_zero_weights_print_a_note(files: Path, run) -> None:
    result = run("aggregate", "a.run", "b.run", "--weights", "0,0", "--json")
    assert [r["weight"] for r in json.loads(result.stdout)["rankers"]] == [0.5, 0.5]
    assert notes(result) == [
        "firstpage: note: every ranker has the weight 0; all are weighted equally."
    ]


def test_folder_files_with_fewer_features_print_a_note(files: Path, run) -> None:
    Path("parts").mkdir()
    fp.write(SYNTHETIC[:6], "parts/1.txt")
    fp.write(SYNTHETIC[6:].with_features(SYNTHETIC[6:].X[:, :2]), "parts/2.txt")
    printed = notes(run("train", "ListNet", "parts", "-o", "m.json"))
    assert (
        "firstpage: note: parts: has 3 features; those that a file lacks are read as 0: 2.txt (2)."
        in printed
    )


def test_duplicate_column_name_is_refused(files: Path, run) -> None:
    Path("two.csv").write_text("label,qid,bm25,bm25\n1,1,0.5,1\n0,1,0.1,2\n")
    result = run("describe", "two.csv")
    assert result.returncode == 1
    assert "two.csv: two columns are named 'bm25'; rename or drop one." in result.stderr


TWICE = "label,qid,docid,a\n1,1,x,0.5\n0,1,y,0.1\n0,1,x,0.2\n"


def test_duplicate_document_prints_a_note(files: Path, run) -> None:
    Path("twice.csv").write_text(TWICE)
    data = instance(fp.Dataset, fp.read("d.txt"))
    fp.ListNet().fit(data.with_features(data.X[:, :1])).save("one.json")
    message = "1 documents repeat an earlier document id of their query"
    result = run("evaluate", "twice.csv", "--model", "one.json")
    assert sum(message in x for x in notes(result)) == 1
    assert "the first is 'x' in query '1'" in result.stderr
    for arguments in (
        ["rank", "one.json", "twice.csv", "--trec", "-o", "o.run"],
        ["convert", "twice.csv", "o.qrels"],
    ):
        result = run(*arguments)
        assert result.returncode == 1
        (line,) = [x for x in result.stderr.splitlines() if "note: " not in x]
        assert "document 'x' occurs twice in query '1', which a TREC file does not allow" in line
    assert not Path("o.run").exists()


def test_truncated_text_prints_a_note(files: Path, run) -> None:
    named = Path("d.txt").read_text().splitlines()
    lines = [line.split(" #")[0] for line in named]
    Path("whole.txt").write_text("\n".join(lines))
    assert notes(run("describe", "whole.txt")) == []
    Path("fewer.txt").write_text("\n".join([*lines[:-1], lines[-1].rsplit(" ", 1)[0]]))
    (note,) = notes(run("describe", "fewer.txt"))
    assert "fewer.txt: may be truncated: its last line does not end in a line feed" in note
    assert note.endswith("has fewer features (2) than any other line.")
    Path("ids.txt").write_text("\n".join([*named[:-1], lines[-1]]))
    (note,) = notes(run("describe", "ids.txt"))
    assert "has no document id, unlike all others" in note


def test_warnings_are_repeated_for_cached_text(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.data.formats.letor.MIN_CACHED_BYTES", 1)
    monkeypatch.chdir(tmp_path)
    lines = [f"1 qid:{i} 1:0.5 2:1 # docid = d\n" for i in range(12)]
    Path("one.txt").write_text("".join([*lines, "1 qid:12 1:2"]))
    for _ in range(2):
        with pytest.warns(fp.FirstpageWarning) as caught:
            fp.read_letor("one.txt", cache=tmp_path / "cache")
        messages = [str(x.message) for x in caught]
        assert [("truncated" in x, "swapped" in x) for x in messages] == [
            (True, False),
            (False, True),
        ]


def test_swapped_query_and_document_ids_print_a_note(files: Path, run) -> None:
    rows = [f"{i % 2},d{i},q{i // 5},{i}" for i in range(20)]
    Path("swapped.csv").write_text("\n".join(["label,qid,docid,a", *rows]))
    (note,) = notes(run("describe", "swapped.csv"))
    assert "swapped.csv: 20 of 20 queries have one document" in note
    assert "are the ids of queries and documents swapped?" in note


@pytest.mark.parametrize(
    ("scores", "ranks", "message"),
    [
        ([1, 2, 3], [1, 2, 3], "ranks contradict the scores in 1 of 2 queries; the order comes from"),
        ([1, 1, 1], [1, 2, 3], "all documents of a query have the same score, despite their ranks"),
        ([3, 2, 2], [1, 2, 3], None),
        ([1, 2, 3], [3, 2, 1], None),
        ([1, 2, 3], [0, 0, 0], None),
        ([1, 1, 1], [0, 0, 0], None),
        ([1, 2, 3], ["a", "b", "c"], None),
    ],
)  # fmt: skip
def test_ranks_that_contradict_scores_print_a_note(
    files: Path, run, scores, ranks, message
) -> None:
    docs = list(fp.read_qrels("d.qrels").to_dict()["1"])
    lines = [f"1 Q0 {d} {r} {s} x\n" for d, r, s in zip(docs[:3], ranks, scores, strict=True)] + [
        "2 Q0 2-1 1 5 x\n"
    ]
    Path("odd.run").write_text("".join(lines))
    printed = [x for x in notes(run("describe", "odd.run")) if "odd.run" in x]
    assert len(printed) == (message is not None)
    assert message is None or message in printed[0]


def test_data_dropped_by_trec_files_print_a_note(files: Path, run) -> None:
    result = run("convert", "d.txt", "o.qrels")
    assert "firstpage: note: o.qrels: qrels have labels only; dropped: 3 features." in notes(result)
    assert (
        result.stderr.splitlines()[-1] == "wrote Qrels(d.txt: 12 queries, 72 documents) to o.qrels"
    )
    result = run("convert", "d.txt", "o.run", "--scores", "a.scores")
    assert "note: o.run: a run has scores only; dropped: labels and 3 features." in result.stderr


@pytest.mark.parametrize(("separator", "suffix"), [(";", "csv"), ("\t", "csv"), ("\t", "tsv")])
def test_tables_with_other_separators_are_read(files: Path, run, separator, suffix) -> None:
    expected = instance(fp.Dataset, fp.read("named.csv"))
    text = Path("named.csv").read_text().replace(",", separator)
    Path(f"other.{suffix}").write_text(text)
    assert notes(run("describe", f"other.{suffix}")) == []
    data = instance(fp.Dataset, fp.read(f"other.{suffix}"))
    assert data.feature_names == expected.feature_names
    assert dense(data.X).tolist() == dense(expected.X).tolist()
    Path("run.tsv").write_text("1\tQ0\ta\t1\t2.5\tx\n")
    assert isinstance(fp.read("run.tsv"), fp.Run)


def test_scores_that_overflow_are_not_written(files: Path, run) -> None:
    run("train", "ListNet", "d.txt", "-o", "model.json")
    contents = json.loads(Path("model.json").read_text())
    for key in ("format", "version", "sha256"):
        del contents[key]
    contents["scorer"]["weights"] = [1e308, 1e308, 1e308]
    write_json(FILE.with_header(contents), "model.json")
    done = run("rank", "model.json", "d.txt", "-o", "new.scores")
    assert (done.returncode, Path("new.scores").exists()) == (1, False)
    assert "by model.json is" in done.stderr
    done = run("export", "model.json", "--to", "numpy", "-o", "scorer.py")
    assert (done.returncode, Path("scorer.py").exists()) == (1, False)
    assert "model.json: computes scores that are not finite" in done.stderr
