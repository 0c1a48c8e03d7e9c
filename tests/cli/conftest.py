"""A fixture that runs the command line in this process."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest

from firstpage.cli import main


class CommandResult(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs `firstpage` with arguments in this process."""

    def call(*args: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["firstpage", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return CommandResult(int(stop.value.code or 0), out, err)

    return call
