"""Shard folders appear complete or not at all; drafts of killed processes are removed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from tests.narrow import present

DATA = fp.Synthetic(queries=30, docs=10, features=4).dataset()
KILLED = """
import os, sys, firstpage as fp
data = fp.Synthetic(queries=30, docs=10, features=4).dataset()
def blocks():
    yield data[:20]
    os.kill(os.getpid(), 9)
fp.write_shards(blocks(), sys.argv[1], rows=50)
"""


def test_draft_of_a_killed_process_is_removed_by_the_next(tmp_path: Path, monkeypatch) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "s"], check=False)
    assert done.returncode == -9
    left = [p.name for p in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0].startswith(".s-")
    (tmp_path / ".s-mine").mkdir()
    (tmp_path / ".s-mine" / "notes").write_text("not a draft")
    monkeypatch.setattr("firstpage.data.shards.writer.MIN_DRAFT_AGE", -1.0)

    def blocks():  # a second writer must not touch the draft of a running one
        yield DATA[:20]
        fp.write_shards(DATA, tmp_path / "s", rows=50)
        yield DATA[20:]

    with pytest.raises(DataError, match="cannot be written"):  # the other was first
        fp.write_shards(blocks(), tmp_path / "s", rows=50)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".s-mine", "s"]
    assert fp.read_shards(tmp_path / "s").n_queries == 30


def test_full_disk_and_invalid_paths_are_reported(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written \("):
        fp.write_shards(DATA, tmp_path / "file" / "s")
    (tmp_path / "file").unlink()

    def full(*args: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("numpy.save", full)
        with pytest.raises(DataError, match=r"s: cannot be written \(No space left on device\)"):
            fp.write_shards(DATA, tmp_path / "s")
    assert not list(tmp_path.iterdir())
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    fp.write_shards(DATA, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert fp.read_shards(tmp_path / "empty").n_docs == DATA.n_docs


def test_data_with_other_feature_names_are_refused(tmp_path: Path) -> None:
    data = fp.Synthetic(queries=4, docs=3, features=2).dataset()
    first = replace(data[:2], feature_names=("a", "b"))
    for names in (("b", "a"), None):
        with pytest.raises(fp.DataError, match="not named as those of"):
            fp.write_shards([first, replace(data[2:], feature_names=names)], tmp_path / "shards")


def test_ids_of_some_documents_are_stored(tmp_path: Path) -> None:
    data = fp.Synthetic(queries=4, docs=3, features=2).dataset()
    parts = [data[:2], replace(data[2:], docids=None)]
    assert data.docids is not None
    shards = fp.write_shards(parts, tmp_path / "shards")
    assert list(present(shards[0].docids)) == [*list(data.docids)[:6], *[""] * 6]
    with pytest.warns(fp.FirstpageWarning, match="shards do not store how the features"):
        fp.write_shards([replace(data, recipe={"features": 2})], tmp_path / "more")
