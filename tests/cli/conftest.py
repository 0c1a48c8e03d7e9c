"""The command line, called in this process."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest

from firstpage.cli import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys, monkeypatch):
    """firstpage(..): (exit code, standard output, standard error)."""

    def call(*args: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["firstpage", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return Done(int(stop.value.code or 0), out, err)

    return call
