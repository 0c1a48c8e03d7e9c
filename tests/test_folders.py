"""Files and folders that are replaced in one step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firstpage.folders import atomic_replace

KILLED = """
import os, sys
from pathlib import Path
from firstpage.folders import atomic_replace
with atomic_replace(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_is_the_old_one_until_the_new_one_is_whole(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_replace(path, sync=sync) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("kind", ["file", "folder", "nothing"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def fail() -> None:
        with atomic_replace(path) as draft:
            if kind == "file":
                draft.write_text("half")
            elif kind == "folder":
                draft.mkdir()
                (draft / "x").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_appears_whole_and_replaces_no_other(tmp_path: Path) -> None:
    with atomic_replace(tmp_path / "f") as draft:
        draft.mkdir()
        (draft / "x").write_text("1")
    assert (tmp_path / "f" / "x").read_text() == "1"

    def again() -> None:
        with atomic_replace(tmp_path / "f") as draft:
            draft.mkdir()
            (draft / "x").write_text("2")

    with pytest.raises(OSError, match="not empty"):
        again()
    assert (tmp_path / "f" / "x").read_text() == "1"
    assert os.listdir(tmp_path) == ["f"]


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == -9
    assert path.read_text() == "old"


def test_a_synced_file_is_flushed_before_it_takes_its_name(tmp_path: Path, monkeypatch) -> None:
    done: list[str] = []
    flush, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("flush"), flush(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("name"), replace(a, b))[1])
    with atomic_replace(tmp_path / "a", sync=True) as draft:
        draft.write_text("x")
    assert done == ["flush", "name", "flush"]  # the file, and the folder that names it
