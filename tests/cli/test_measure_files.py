"""Tests of measure files in the commands that take measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.core.registry import parse_call, split_arguments


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = fp.Synthetic(queries=30, docs=10, features=4, grades=3, seed=5).dataset()
    for name, subset in (("train", data[:15]), ("vali", data[15:22]), ("test", data[22:])):
        fp.write_letor(subset, f"{name}.txt")
    fp.write_folds(data, "letor", 3)
    fp.write_scores(data[22:].y, "good.txt")
    fp.write_scores(-data[22:].y, "bad.txt")
    fp.dcglearn.Utility.from_dcg("exp", range(3), 5).save("measure.json")
    fp.dcglearn.Utility.from_gains(
        [0, 1, 9], [1, 0.1], segments={"a, b": fp.dcglearn.Utility.from_gains([0, 1, 2], [1])}
    ).save("my measure.json")
    return tmp_path


TEXTS = ["NDCG(measure.json)@5", "DCG(my measure.json, form=weights, segment=a, b)@1"]


def test_evaluate_and_compare_use_a_measure_file(files: Path, run) -> None:
    measures = [word for text in [*TEXTS, "NDCG@5"] for word in ("-m", text)]
    result = run("evaluate", "test.txt", "--scores", "good.txt", *measures, "--json")
    assert result.returncode == 0, result.stderr
    values = json.loads(result.stdout)["measures"]
    assert list(values) == [*TEXTS, "NDCG@5"]
    assert values[TEXTS[0]] == pytest.approx(values["NDCG@5"])
    assert values[TEXTS[1]] == pytest.approx(2.0, abs=0.5)
    systems = ("--scores", "good.txt", "--scores", "bad.txt")
    for kind in ("text", "csv", "latex", "markdown", "html"):
        result = run("compare", "test.txt", *systems, *measures, "-f", kind, "--rounds", "100")
        assert result.returncode == 0, result.stderr
        assert "my measure.json" in result.stdout


def test_train_and_rank_with_a_measure_file(files: Path, run) -> None:
    result = run(
        "train",
        "TopSlack",
        "train.txt",
        "--valid",
        "vali.txt",
        "-m",
        TEXTS[0],
        "--grid",
        "delta=NDCG(my measure.json, form=gains)@2,NDCG@3",
        "--trials-to",
        "t.json",
        "-o",
        "m.json",
    )
    assert result.returncode == 0, result.stderr
    assert f"{TEXTS[0]} on validation data" in result.stdout
    tried = [row["delta"] for row in json.loads(Path("t.json").read_text())]
    assert tried == ["NDCG(my measure.json, form=gains)@2", "NDCG@3"]
    for name in ("measure.json", "my measure.json"):
        Path(name).unlink()
    assert run("rank", "m.json", "test.txt", "-o", "s.txt").returncode == 0
    assert run("explain", "m.json").returncode == 0


def test_gains_of_lambdamart_are_set_on_the_command_line(files: Path, run) -> None:
    for gain in ("measure.json", "0,1,3", "[0, 1, 3]"):
        result = run(
            "train",
            "LambdaMART(scorer=trees(count=5))",
            "train.txt",
            "--set",
            f"gain={gain}",
            "-o",
            "m.json",
            "--json",
        )
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["label_gain"] == pytest.approx([0, 1, 3])
    named = "LambdaMART(scorer=trees(count=5), gain=[0, 1, 3])"
    assert run("train", named, "train.txt", "-o", "m.json").returncode == 0


def test_crossval_uses_a_measure_file(files: Path, run) -> None:
    ranker = "TopSlack(C=1, delta=NDCG(my measure.json, segment=a, b)@1)"
    result = run("crossval", "letor", ranker, "-m", TEXTS[0], "-t", TEXTS[1], "-t", "AP", "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["results"]
    assert [row["measure"] for row in rows] == [TEXTS[1], "AP"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DCG(none.json)", "none.json: no such file"),
        ("DCG(test.txt)", "test.txt:1: not a measure file"),
        ("DCG(measure.json)@9", "choose one from 1 to 5"),
        ("DCG(measure.json, form=x)", "form must be gains or weights"),
    ],
)
def test_errors_are_one_line(files: Path, run, text: str, message: str) -> None:
    for command in (
        ("evaluate", "test.txt", "--scores", "good.txt", "-m", text),
        ("train", "ListNet", "train.txt", "-m", text, "-o", "m.json"),
        ("crossval", "letor", "ListNet", "-t", text),
    ):
        result = run(*command)
        assert result.returncode == 1
        assert message in result.stderr
        assert result.stderr.count("\n") == 1


def test_measures_lists_the_form_with_a_file(run) -> None:
    assert "NDCG(file, form, segment)@n" in run("measures").stdout
    forms = [row["measure"] for row in json.loads(run("measures", "--json").stdout)["measures"]]
    assert "DCG(file, form, segment)@n" in forms


def test_commas_inside_brackets_do_not_separate() -> None:
    assert split_arguments("a, f(b, g(c, d)), [1, 2], e") == [
        "a",
        " f(b, g(c, d))",
        " [1, 2]",
        " e",
    ]
    name, parameters = parse_call(
        "TopRank(first=TopSlack(C=3, delta=NDCG(m.json, form=gains)@10), depth=5)"
    )
    assert name == "TopRank"
    assert parameters == {"first": "TopSlack(C=3, delta=NDCG(m.json, form=gains)@10)", "depth": 5}
