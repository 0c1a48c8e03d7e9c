"""Names, definitions, folders, and the command `export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.interop.export.targets import TARGETS
from tests.cli.conftest import run  # noqa: F401
from tests.interop.export.conftest import NAMES, ranker


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ranker("linear").save("model.json")
    return Path("model.json")


def test_export_writes_a_folder_with_a_readme(model: Path, run) -> None:  # noqa: F811
    done = run("export", model, "--to", "solr")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"wrote listmle-solr/{name}" for name in ("model.json", "features.json", "README.md")
    ]
    readme = Path("listmle-solr/README.md").read_text()
    assert "model-store" in readme
    assert "rq={!ltr model=listmle" in readme
    assert json.loads(Path("listmle-solr/model.json").read_text())["name"] == "listmle"


def test_a_name_with_a_dot_is_no_suffix(model: Path, run) -> None:  # noqa: F811
    done = run("export", model, "--to", "solr", "--name", "shoes.v2")
    assert done.returncode == 0, done.stderr
    assert "wrote shoes.v2-solr/model.json" in done.stderr
    assert fp.export(model, "numpy").save("v1.0/") == [
        Path("v1.0/model.py"),
        Path("v1.0/README.md"),
    ]


def test_export_to_a_file_writes_the_others_beside_it(model: Path, run) -> None:  # noqa: F811
    assert (
        run("export", model, "--to", "OpenSearch", "-o", "mine.json", "--name", "m1").returncode
        == 0
    )
    assert sorted(p.name for p in Path().iterdir()) == [
        "mine.features.json",
        "mine.json",
        "model.json",
    ]
    assert json.loads(Path("mine.json").read_text())["model"]["name"] == "m1"
    Path("mine.onnx").write_text("old")
    assert run("export", model, "--to", "onnx", "-o", "mine.onnx", "--json").returncode == 0
    assert Path("mine.onnx").read_bytes() == fp.export(model, "onnx").files["model.onnx"]


def test_every_target_is_listed(run) -> None:  # noqa: F811
    shown = run("export", "--list").stdout
    assert all(name in shown for name in TARGETS)
    listing = json.loads(run("export", "--list", "--json").stdout)
    assert [row["target"] for row in listing] == list(TARGETS)
    assert set(listing[0]) == {"target", "output", "models"}


def test_the_list_of_targets_is_written(model: Path, run) -> None:  # noqa: F811
    done = run("export", "--list", "-o", "targets.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert Path("targets.json").read_text() == run("export", "--list", "--json").stdout
    for args, message in (
        ([model], "--list shows all targets, and takes no MODEL; got model.json."),
        (["--to", "solr"], "--to requires MODEL, not --list."),
        (["--name", "x"], "--name requires MODEL, not --list."),
    ):
        done = run("export", "--list", *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["model.json"], "give a model file and --to TARGET"),
        (["model.json", "--to", "sollr"], "there is no target 'sollr'. Did you mean 'solr'?"),
        (["none.json", "--to", "solr"], "none.json: no such file."),
        (["model.json", "--to", "solr", "--name", "a b"], "name must consist of letters"),
        (["model.json", "--to", "solr", "--features", "short.txt"], "2 names for the 6 features"),
        (["model.json", "--to", "solr", "--features", "same.txt"], "need different names"),
        (["model.json", "--to", "solr", "--features", "bad.json"], "not valid JSON"),
        (["model.json", "--to", "solr", "--features", "odd.json"], "must be a list of names"),
        (["model.json", "--to", "solr", "--features", "less.json"], "has no 'name'"),
        (["model.json", "--to", "solr", "-o", "short.txt/x"], "cannot write there"),
    ],
)
def test_errors_are_one_line(model: Path, run, args: list[str], message: str) -> None:  # noqa: F811
    Path("short.txt").write_text("a\nb\n")
    Path("same.txt").write_text("a\n" * 6)
    Path("bad.json").write_text("{")
    Path("odd.json").write_text("3")
    Path("less.json").write_text('[{"title": 1}]')
    done = run("export", *args)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_definitions_of_features_are_exported(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    definition = {"class": "org.apache.solr.ltr.feature.OriginalScoreFeature", "params": {}}
    stored = [{"name": "a", **definition}, *({"name": n} for n in names[1:])]
    (tmp_path / "store.json").write_text(json.dumps(stored))
    exported = fp.export(ranker("linear"), "solr", features=tmp_path / "store.json")
    actual = json.loads(exported.files["features.json"])
    assert actual[0] == {"store": "listmle", "name": "a", **definition}
    assert actual[1]["params"] == {"q": "{!func}FILL_IN"}
    template = {"name": "a", "params": [], "template_language": "mustache", "template": {"x": 1}}
    feature_set = {"featureset": {"features": [template, *names[1:]]}}
    (tmp_path / "set.json").write_text(json.dumps(feature_set))
    exported = fp.export(ranker("linear"), "elasticsearch", features=str(tmp_path / "set.json"))
    assert json.loads(exported.files["features.json"])["featureset"]["features"][0] == template
    expressions = [{"name": "a", "expression": "bm25(title)"}, *names[1:]]
    text = (
        fp.export(ranker("linear"), "vespa", features=expressions).files["listmle.profile"].decode()
    )
    assert "expression: bm25(title)" in text
    assert text.count("(FILL IN)") == 5


def test_names_come_from_the_model_or_are_numbered() -> None:
    exported = fp.export(ranker("linear"), "elasticsearch")
    assert set(
        json.loads(json.loads(exported.files["model.json"])["model"]["model"]["definition"])
    ) == set(NAMES)
    data = fp.Synthetic(queries=10, docs=5, features=3).dataset()
    exported = fp.export(fp.ListNet().fit(data), "elasticsearch")
    features = json.loads(exported.files["features.json"])["featureset"]["features"]
    assert [f["name"] for f in features] == ["feature_1", "feature_2", "feature_3"]
    with pytest.raises(fp.DataError, match="takes a fitted ranker or a model file"):
        fp.export(fp.ListNet(), "solr")
