"""The demo with --judge and --serve."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from firstpage.demo import loop
from firstpage.demo.output import KIND
from firstpage.labeling.assessors import AssessorAnswer
from firstpage.web import serve as served
from firstpage.web.app import LOCAL
from firstpage.web.machines import judge
from firstpage.web.security import ServeSettings
from firstpage.web.store import people
from firstpage.web.store.connect import Store
from firstpage.web.store.projects import find_project
from tests.demo.small import QUESTIONS


class Reader:
    """Prefers the document that is first by name; interrupts after some answers."""

    def __init__(self, answers: int) -> None:
        self.remaining = answers

    def judge(self, query: str, left: Any, right: Any) -> AssessorAnswer:
        if self.remaining == 0:
            raise KeyboardInterrupt
        self.remaining -= 1
        return AssessorAnswer(1 if left.key < right.key else -1)


def serve_reader(answers: int):
    """Return a replacement of `serve` in which a reader judges."""

    def serve(
        where: Path, host: str, port: int, settings: ServeSettings, until: Any = None
    ) -> None:
        store = Store(where)
        with store.read() as tx:
            project, you = find_project(tx, None), people.by_login(tx, LOCAL)
        assert you is not None
        assert settings.single_user
        try:
            judge(store, project, you, Reader(answers))
        finally:
            store.close()
        assert until()

    return serve


@pytest.mark.slow
@pytest.mark.parametrize("answers", [5, 1000])
def test_the_demo_continues_with_the_questions_that_the_reader_judged(
    small, tmp_path: Path, run, monkeypatch, answers: int
) -> None:
    monkeypatch.setattr(loop, "serve", serve_reader(answers))
    result = run("demo", "-o", tmp_path, "--judge", "--port", 0)
    assert result.returncode == 0, result.stderr
    by_reader = KIND.read(tmp_path / "demo.json")["figures"]["labels"]["judged_by_you"]
    if answers == 5:
        assert by_reader == []
    if answers == 1000:
        assert by_reader == ["1", "2"]
        assert "You judged questions 1, 2 yourself" in (tmp_path / "report.html").read_text()
        assert "except where you judged" in (tmp_path / "report.html").read_text()
    assert f"You judged {len(by_reader)} of 2 questions" in result.stdout
    store = Store(tmp_path)
    with store.read() as tx:
        from firstpage.web.analysis.truth import truths

        judged = {t.query: t for t in truths(tx, find_project(tx, "questions"))}
    store.close()
    assert len(judged) == QUESTIONS
    assert all(
        judged[q].assessors == 1 and judged[q].order[0] == min(judged[q].documents)
        for q in by_reader
    )


class SearchPage:
    """A replacement of the process that serves the search page."""

    started: ClassVar[list[SearchPage]] = []

    def __init__(self, command: list[str]) -> None:
        self.command, self.terminated = command, False
        self.started.append(self)

    def __enter__(self) -> SearchPage:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def terminate(self) -> None:
        self.terminated = True


@pytest.mark.slow
def test_serve_keeps_the_application_running(small, tmp_path: Path, run, monkeypatch) -> None:
    calls = []

    def serve(where: Path, host: str, port: int, settings: ServeSettings) -> None:
        calls.append((where, host, settings.single_user, (where / "report.html").exists()))
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "serve", serve)
    monkeypatch.setattr(loop.subprocess, "Popen", SearchPage)
    result = run("demo", "-o", tmp_path, "--serve", "--port", 0)
    assert result.returncode == 0
    assert calls == [(tmp_path, "127.0.0.1", True, True)]
    (page,) = SearchPage.started
    assert page.terminated
    model, index = str(tmp_path / "model.json"), str(tmp_path / "python.index")
    assert page.command[1:7] == ["-m", "firstpage", "serve", model, "--index", index]
    assert f"To see the labels: firstpage label serve {tmp_path} --open\n" in result.stdout
    assert result.stdout.rstrip().endswith(" --open")


def test_the_search_page_has_the_port_after_the_labeling_application() -> None:
    assert (loop.search_port(8210), loop.search_port(0)) == (8220, 0)


def test_a_port_in_use_is_reported_before_any_work(tmp_path: Path, run) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        result = run("demo", "-o", tmp_path / "x", "--serve", "--port", busy.getsockname()[1])
    assert result.returncode == 1
    assert "choose another --port" in result.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_server_stops_when_its_condition_is_true(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(served, "POLL_INTERVAL", 0.05)
    monkeypatch.setattr(served, "STOP_DELAY", 0.05)
    checks = []

    def until() -> bool:
        checks.append(threading.current_thread().name)
        return len(checks) > 5

    served.serve(tmp_path, "127.0.0.1", 0, ServeSettings(single_user=True), until)
    assert len(checks) == 6
    assert "/open?token=" in capsys.readouterr().out
