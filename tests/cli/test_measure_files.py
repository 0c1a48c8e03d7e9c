"""Measure files through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.registry import pieces, split


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = fp.Synthetic(queries=30, docs=10, features=4, grades=3, seed=5).dataset()
    for name, part in (("train", data[:15]), ("vali", data[15:22]), ("test", data[22:])):
        fp.write_letor(part, f"{name}.txt")
    fp.write_folds(data, "letor", 3)
    fp.write_scores(data[22:].y, "good.txt")
    fp.write_scores(-data[22:].y, "bad.txt")
    fp.Utility.from_dcg("exp", range(3), 5).save("measure.json")
    fp.Utility.from_gains(
        [0, 1, 9], [1, 0.1], segments={"a, b": fp.Utility.from_gains([0, 1, 2], [1])}
    ).save("my measure.json")
    return tmp_path


TEXTS = ["NDCG(measure.json)@5", "DCG(my measure.json, form=weights, segment=a, b)@1"]


def test_evaluate_and_compare(files: Path, run) -> None:
    asked = [word for text in [*TEXTS, "NDCG@5"] for word in ("-m", text)]
    done = run("evaluate", "test.txt", "--scores", "good.txt", *asked, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["measures"]
    assert list(found) == [*TEXTS, "NDCG@5"]
    assert found[TEXTS[0]] == pytest.approx(found["NDCG@5"])
    assert found[TEXTS[1]] == pytest.approx(2.0, abs=0.5)
    systems = ("--scores", "good.txt", "--scores", "bad.txt")
    for kind in ("text", "csv", "latex", "markdown", "html"):
        done = run("compare", "test.txt", *systems, *asked, "-f", kind, "--rounds", "100")
        assert done.returncode == 0, done.stderr
        assert "my measure.json" in done.stdout


def test_train_rank_and_score_by_a_file(files: Path, run) -> None:
    done = run(
        "train", "TopSlack", "train.txt", "--valid", "vali.txt", "-m", TEXTS[0],
        "--grid", "delta=NDCG(my measure.json, form=gains)@2,NDCG@3", "--trials-to", "t.json",
        "-o", "m.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{TEXTS[0]} on validation data" in done.stdout
    tried = [row["delta"] for row in json.loads(Path("t.json").read_text())]
    assert tried == ["NDCG(my measure.json, form=gains)@2", "NDCG@3"]
    for name in ("measure.json", "my measure.json"):
        Path(name).unlink()
    assert run("rank", "m.json", "test.txt", "-o", "s.txt").returncode == 0
    assert run("explain", "m.json").returncode == 0


@pytest.mark.slow
def test_gains_on_the_command_line(files: Path, run) -> None:
    for gain in ("measure.json", "0,1,3", "[0, 1, 3]"):
        done = run(
            "train", "LambdaMART(scorer=trees(count=5))", "train.txt", "--set", f"gain={gain}",
            "-o", "m.json", "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["label_gain"] == pytest.approx([0, 1, 3])
    named = "LambdaMART(scorer=trees(count=5), gain=[0, 1, 3])"
    assert run("train", named, "train.txt", "-o", "m.json").returncode == 0


def test_crossval(files: Path, run) -> None:
    ranker = "TopSlack(C=1, delta=NDCG(my measure.json, segment=a, b)@1)"
    done = run("crossval", "letor", ranker, "-m", TEXTS[0], "-t", TEXTS[1], "-t", "AP", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["results"]
    assert [row["measure"] for row in found] == [TEXTS[1], "AP"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DCG(none.json)", "none.json: no such file"),
        ("DCG(test.txt)", "test.txt:1: not a measure file"),
        ("DCG(measure.json)@9", "choose one from 1 to 5"),
        ("DCG(measure.json, form=x)", "form must be gains or weights"),
    ],
)
def test_errors_are_one_line(files: Path, run, text: str, says: str) -> None:
    for command in (
        ("evaluate", "test.txt", "--scores", "good.txt", "-m", text),
        ("train", "ListNet", "train.txt", "-m", text, "-o", "m.json"),
        ("crossval", "letor", "ListNet", "-t", text),
    ):
        done = run(*command)
        assert done.returncode == 1
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_measures_names_the_form(run) -> None:
    assert "NDCG(file, form, segment)@n" in run("measures").stdout
    forms = [row["form"] for row in json.loads(run("measures", "--json").stdout)["measures"]]
    assert "DCG(file, form, segment)@n" in forms


def test_commas_inside_brackets_part_nothing() -> None:
    assert pieces("a, f(b, g(c, d)), [1, 2], e") == ["a", " f(b, g(c, d))", " [1, 2]", " e"]
    name, given = split("TopRank(first=TopSlack(C=3, delta=NDCG(m.json, form=gains)@10), depth=5)")
    assert name == "TopRank"
    assert given == {"first": "TopSlack(C=3, delta=NDCG(m.json, form=gains)@10)", "depth": 5}
