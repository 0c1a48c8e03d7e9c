"""The command `import`."""

from __future__ import annotations

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


def test_gains_of_imported_trees_are_unknown(tmp_path: Path, run) -> None:  # noqa: F811
    (tmp_path / "m.txt").write_text(ENSEMBLE)
    (tmp_path / "l.txt").write_text("## Coordinate Ascent\n1:0.5 3:-2.0\n")
    for name in ("m", "l"):
        run("import", "ranklib", tmp_path / f"{name}.txt", "-o", tmp_path / f"{name}.json")
    done = run("explain", tmp_path / "m.json")
    assert done.stderr == (
        f"firstpage: note: {tmp_path / 'm.json'}: was imported from a file without the gains of "
        "splits, so all are shown as 0.\n"
    )
    assert run("explain", tmp_path / "l.json").stderr == ""
