"""File formats, atomic writes, pipes, encodings, and the embedded collection."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from tests.narrow import dense
from tests.patience import PATIENCE

MADE = fp.Synthetic(queries=6, docs="uniform(1, 9)", features=4, grades=3).dataset()


def test_text_formats_are_detected_by_the_first_line(tmp_path: Path) -> None:
    for text, kind in (
        ("# hello\n1 qid:1 1:1\n", fp.Dataset),
        ("1 0 a 1\n", fp.Qrels),
        ("1 Q0 a 1 0.5 me\n", fp.Run),
    ):
        path = tmp_path / "file.txt"
        path.write_text(text)
        assert isinstance(fp.read(path), kind)
    with pytest.raises(fp.DataError, match="is not that of a known format"):
        fp.write(MADE, tmp_path / "file.xyz")
    with pytest.raises(fp.DataError, match="unknown format 'excel'"):
        fp.read(path, "excel")
    with pytest.raises(fp.DataError, match="a run needs scores"):
        fp.write(MADE, tmp_path / "x.run")
    with pytest.raises(fp.DataError, match="Qrels has no features"):
        fp.write(fp.Qrels.from_dict({"1": {"a": 1}}), tmp_path / "x.parquet")


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    bad = fp.Dataset.from_arrays([[1.0]], [1], ["two words"])
    with pytest.raises(fp.DataError, match="'two words' cannot be written to a LETOR file"):
        fp.write_letor(bad, tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(fp.DataError, match="cannot write there"):
        fp.write_letor(MADE, tmp_path / "no" / "x.txt")


def test_scores_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fp.write_scores([0.1 + 0.2, -1e-300, 5], path)
    assert fp.read_scores(path, 3).tolist() == [0.1 + 0.2, -1e-300, 5]
    path.write_text("1\n\n 2.5 # note\r\n# all comment\n3")
    assert fp.read_scores(path).tolist() == [1, 2.5, 3]
    with pytest.raises(fp.DataError, match="3 scores for 4 documents"):
        fp.read_scores(path, 4)
    for text, message in (
        ("1\n2 3\n", ":2:1: .*got '2 3'"),
        ("1\nx\n", ":2:1: .*'x'"),
        ("1\nnan\n", "score of document 2 is NaN"),
        ("1\n1e\n", ":2:1: "),
    ):
        path.write_text(text)
        with pytest.raises(fp.DataError, match=message):
            fp.read_scores(path)


# --- synthetic data


# --- descriptions


def test_links_and_pipes_are_written_through(tmp_path: Path) -> None:
    from firstpage.data.io.files import write_bytes

    file, link = tmp_path / "file", tmp_path / "link.gz"
    file.write_text("old")
    link.symlink_to(file)
    with write_bytes(link) as out:
        out.write(b"new")
    assert link.is_symlink()
    assert gzip.decompress(file.read_bytes()) == b"new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with write_bytes(pipe) as out:
        out.write(b"through")
    reader.join(10)
    assert got == [b"through"]
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link.gz", "pipe"]


def test_writing_to_a_folder_is_refused(tmp_path: Path) -> None:
    from firstpage.data.io.files import write_bytes

    with pytest.raises(DataError, match="is a folder"), write_bytes(tmp_path):
        pass


def test_byte_order_marks_and_encodings(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbf1 qid:1 1:5\n")
    assert dense(fp.read_letor(path).X).tolist() == [[5]]
    path.write_bytes(b"\xef\xbb\xbfq 0 d 1\n")
    assert list(fp.read_qrels(path).queries) == ["q"]
    path.write_bytes("1 qid:1 1:5\n".encode("utf-16"))
    with pytest.raises(fp.DataError, match="UTF-16"):
        fp.read_letor(path)
    import gzip

    path.write_bytes(gzip.compress(b"1 qid:1 1:5\n"))
    assert dense(fp.read_letor(path).X).tolist() == [[5]]  # despite its suffix


def test_pipes_can_be_read(tmp_path: Path) -> None:
    fp.write_letor(fp.Synthetic(queries=5).dataset(), tmp_path / "x.txt")
    command = f'cat x.txt | "{sys.executable}" -m firstpage describe /dev/stdin'
    for more, code in ((" --from letor", 0), ("", 1)):
        done = subprocess.run(
            command + more,
            shell=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=PATIENCE,
        )
        assert done.returncode == code, done.stderr
    assert "its format must be known. Name it with --from." in done.stderr
