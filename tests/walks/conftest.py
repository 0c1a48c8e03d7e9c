"""An empty folder with a shop's texts, in which commands run one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firstpage.cli import main
from tests.walks.shop import write_texts

Command = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: the shop's texts and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "taste", raising=False)
    write_texts(tmp_path)
    yield tmp_path
    sys.modules.pop("taste", None)


@pytest.fixture
def firstpage(
    folder: Path,
    shared_statements: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Return a function that runs a command line word by word, and returns all that it prints."""

    def call(line: str, *more: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["firstpage", *line.split(), *more])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert (stop.value.code or 0) == code, f"firstpage {line}\n{out}{err}"
        return out + err

    return call
