"""Files and folders that are replaced in one step, and the cache folder."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from firstpage.core import folders
from firstpage.core.errors import FirstpageError, FirstpageWarning
from firstpage.core.folders import atomic_replace, cache_folder

KILLED = """
import os, sys
from pathlib import Path
from firstpage.core.folders import atomic_replace
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

    def flushed(handle: int) -> None:
        done.append("flush")
        flush(handle)

    def renamed(a: Path, b: Path) -> None:
        done.append("name")
        replace(a, b)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    with atomic_replace(tmp_path / "a", sync=True) as draft:
        draft.write_text("x")
    assert done == ["flush", "name", "flush"]  # the file, and the folder that names it


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a user without a home folder, as in a container; return the temporary folder."""
    for name in ("FIRSTPAGE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders._temporary_cache.cache_clear()
    return tmp_path / f"firstpage-{os.getuid()}"


@pytest.mark.parametrize("value", ["~", "~/cache", "~nosuchuser/x"])
def test_an_unknown_home_in_the_variable_is_refused(homeless: Path, monkeypatch, value) -> None:
    monkeypatch.setenv("FIRSTPAGE_CACHE", value)
    with pytest.raises(FirstpageError, match=f"^FIRSTPAGE_CACHE='{value}': this home folder is"):
        cache_folder()


def test_without_a_home_the_cache_is_private_and_temporary(homeless: Path) -> None:
    with pytest.warns(FirstpageWarning, match=f"no home folder .* it is {homeless} now") as caught:
        assert cache_folder() == cache_folder() == homeless
    assert len(caught) == 1
    assert homeless.stat().st_mode & 0o777 == 0o700
    homeless.chmod(0o755)
    folders._temporary_cache.cache_clear()
    with pytest.raises(FirstpageError, match="is not a private folder of yours; set FIRSTPAGE_"):
        cache_folder()


@pytest.mark.parametrize("kind", ["link", "file", "no folder"])
def test_a_temporary_cache_of_others_is_refused(homeless: Path, monkeypatch, kind: str) -> None:
    if kind == "link":
        homeless.symlink_to(homeless.parent)
    elif kind == "file":
        homeless.touch()
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(homeless))
    with pytest.raises(FirstpageError, match="; set FIRSTPAGE_CACHE to a folder"):
        cache_folder()
