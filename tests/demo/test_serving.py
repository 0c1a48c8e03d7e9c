"""The reader judges, or looks around."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from firstpage.demo import loop
from firstpage.demo.output import KIND
from firstpage.labeling.assessors import Verdict
from firstpage.web import serve as served
from firstpage.web.app import LOCAL
from firstpage.web.machines import judge
from firstpage.web.security import ServeSettings
from firstpage.web.store import people
from firstpage.web.store.connect import Store
from firstpage.web.store.projects import find_project
from tests.demo.small import QUESTIONS


class Reader:
    """Likes what comes first in the alphabet; leaves after so many answers."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    def judge(self, query: str, left: Any, right: Any) -> Verdict:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return Verdict(1 if left.key < right.key else -1)


def sit_down(answers: int):
    """Instead of a server: somebody at the desk, until they have enough."""

    def serve(
        where: Path, host: str, port: int, settings: ServeSettings, until: Any = None
    ) -> None:
        store = Store(where)
        with store.read() as tx:
            project, you = find_project(tx, None), people.by_login(tx, LOCAL)
        assert you is not None
        assert settings.open
        try:
            judge(store, project, you, Reader(answers))
        finally:
            store.close()
        assert until()

    return serve


@pytest.mark.slow
@pytest.mark.parametrize("answers", [5, 1000])
def test_the_demo_goes_on_with_what_was_judged(
    small, tmp_path: Path, run, monkeypatch, answers: int
) -> None:
    monkeypatch.setattr(loop, "serve", sit_down(answers))
    made = run("demo", "-o", tmp_path, "--judge", "--port", 0)
    assert made.returncode == 0, made.stderr
    mine = KIND.read(tmp_path / "demo.json")["figures"]["labels"]["judged_by_you"]
    if answers == 5:
        assert mine == []
    if answers == 1000:
        assert mine == ["1", "2"]
        assert "You judged questions 1, 2 yourself" in (tmp_path / "report.html").read_text()
        assert "except where you judged" in (tmp_path / "report.html").read_text()
    assert f"You judged {len(mine)} of 2 questions" in made.stdout
    store = Store(tmp_path)
    with store.read() as tx:
        from firstpage.web.analysis.truth import truths

        found = {t.query: t for t in truths(tx, find_project(tx, "questions"))}
    store.close()
    assert len(found) == QUESTIONS
    assert all(
        found[q].assessors == 1 and found[q].order[0] == min(found[q].documents) for q in mine
    )


@pytest.mark.slow
def test_the_application_stays_up(small, tmp_path: Path, run, monkeypatch) -> None:
    seen = []

    def serve(where: Path, host: str, port: int, settings: ServeSettings) -> None:
        seen.append((where, host, settings.open, (where / "report.html").exists()))
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "serve", serve)
    made = run("demo", "-o", tmp_path, "--serve", "--port", 0)
    assert made.returncode == 0
    assert seen == [(tmp_path, "127.0.0.1", True, True)]
    assert made.stdout.endswith(f"Stopped. Again: firstpage label serve {tmp_path} --open\n")


def test_a_port_that_is_taken_is_told_first(tmp_path: Path, run) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        made = run("demo", "-o", tmp_path / "x", "--serve", "--port", busy.getsockname()[1])
    assert made.returncode == 1
    assert "choose another --port" in made.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_server_stops_when_its_work_is_done(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(served, "POLL_INTERVAL", 0.05)
    monkeypatch.setattr(served, "STOP_DELAY", 0.05)
    asked = []

    def until() -> bool:
        asked.append(threading.current_thread().name)
        return len(asked) > 5

    served.serve(tmp_path, "127.0.0.1", 0, ServeSettings(open=True), until)
    assert len(asked) == 6
    assert "/open?token=" in capsys.readouterr().out
