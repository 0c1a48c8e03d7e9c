"""The command `import`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import run  # noqa: F401
from tests.interop.read.test_judgments import RATED
from tests.interop.read.test_ranklib import ENSEMBLE


def test_input_files_are_not_overwritten(tmp_path: Path, run) -> None:  # noqa: F811
    contents = RATED + "a,b,1\n"
    (tmp_path / "q.csv").write_text(contents)
    done = run("import", "quepid", tmp_path / "q.csv", "-o", tmp_path / "q.csv")
    assert (done.returncode, "is also read (FILE)" in done.stderr) == (2, True)
    assert (tmp_path / "q.csv").read_text() == contents


def test_options_of_other_kinds_are_rejected(tmp_path: Path, run) -> None:  # noqa: F811
    done = run("import", "quepid", "x.csv", "-o", "y", "--n-features", 3)
    assert (done.returncode, "--n-features requires ranklib" in done.stderr) == (2, True)
    done = run("import", "clicks", "x.csv", "-o", "y", "--qrels", "z")
    assert (done.returncode, "--qrels requires feature-log" in done.stderr) == (2, True)
    (tmp_path / "m.txt").write_text(ENSEMBLE)
    done = run("import", "ranklib", tmp_path / "m.txt", "-o", tmp_path / "m.json")
    assert done.stderr == f"wrote RankLib LambdaMART with 3 features to {tmp_path / 'm.json'}\n"


def test_splits_of_imported_trees_are_counted(tmp_path: Path, run) -> None:  # noqa: F811
    (tmp_path / "m.txt").write_text(ENSEMBLE)
    run("import", "ranklib", tmp_path / "m.txt", "-o", tmp_path / "m.json")
    text = run("explain", tmp_path / "m.json").stdout
    assert text.startswith("LambdaMART, imported from RankLib\n")
    shown = run("explain", tmp_path / "m.json", "--json")
    explanation = json.loads(shown.stdout)
    assert explanation["kind"] == "number of splits"
    counts = [feature["value"] for feature in explanation["features"]]
    assert sum(counts) == ENSEMBLE.count("<feature>")
