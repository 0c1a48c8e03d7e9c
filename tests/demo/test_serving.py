"""The demo with --judge and --serve."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from firstpage.core import errors
from firstpage.core.errors import FirstpageError, install_command
from firstpage.demo import loop
from firstpage.demo.output import KIND, Folder, StepPrinter
from firstpage.labeling.app import server as served
from firstpage.labeling.app.analysis.truth import QueryTruth, truths
from firstpage.labeling.app.app import LOCAL
from firstpage.labeling.app.machines import judge
from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.store import people
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.projects import find_project
from firstpage.labeling.assessors import AssessorAnswer
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


def test_the_demo_continues_with_the_questions_that_the_reader_judged(
    small, tmp_path: Path, run, monkeypatch
) -> None:
    monkeypatch.setattr(loop, "serve", serve_reader(1000))
    result = run("demo", "-o", tmp_path, "--judge", "--port", 0)
    assert result.returncode == 0, result.stderr
    assert judged_by_you(tmp_path) == ["1", "2"]
    assert "You judged 2 of 2 questions" in result.stdout
    report = (tmp_path / "report.html").read_text()
    assert "You judged questions 1, 2 yourself" in report
    assert "except where you judged" in report
    judged = judged_questions(tmp_path)
    assert len(judged) == QUESTIONS
    for query in ("1", "2"):
        assert judged[query].assessors == 1
        assert judged[query].order[0] == min(judged[query].documents)


def judged_by_you(folder: Path) -> list[str]:
    return KIND.read(folder / "demo.json")["figures"]["labels"]["judged_by_you"]


def judged_questions(folder: Path) -> dict[str, QueryTruth]:
    store = Store(folder)
    with store.read() as tx:
        found = {truth.query: truth for truth in truths(tx, find_project(tx, "questions"))}
    store.close()
    return found


class SearchPage:
    """A replacement of the process that serves the search page."""

    started: ClassVar[list[SearchPage]] = []

    def __init__(self, command: list[str], stdin: int) -> None:
        self.command, self.ended = command, False
        self.started.append(self)

    def __enter__(self) -> SearchPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def poll(self) -> None:
        """It has not ended."""


def test_a_second_run_in_the_same_folder_after_an_interrupt_then_served(
    small, done: Path, tmp_path: Path, run, monkeypatch
) -> None:
    """The reader stops after five answers, which finish no question; then everything is served."""
    folder, calls, started = tmp_path / "copy", [], []
    shutil.copytree(done, folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "labels.qrels").write_text("old")

    def serve(
        where: Path, host: str, port: int, settings: ServeSettings, until: Any = None
    ) -> None:
        started.append(port)
        if len(started) == 1:
            serve_reader(5)(where, host, port, settings, until)
        calls.append((where, host, settings.single_user, (where / "report.html").exists()))
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "serve", serve)
    monkeypatch.setattr("firstpage.demo.loop.subprocess.Popen", SearchPage)
    result = run("demo", "-o", folder, "--judge", "--serve", "--port", 0)
    assert result.returncode == 0
    assert "You judged 0 of 2 questions" in result.stdout
    assert judged_by_you(folder) == []
    assert len(judged_questions(folder)) == QUESTIONS
    assert (folder / "labels.qrels").read_text() == (done / "labels.qrels").read_text()
    assert (folder / "notes.txt").read_text() == "mine"
    assert calls == [(folder, "127.0.0.1", True, True)]
    (page,) = SearchPage.started
    assert page.ended
    model, index = str(folder / "model.json"), str(folder / "python.index")
    assert page.command[3:7] == ["serve", model, "--index", index]
    assert f"To see the labels: firstpage label serve {folder} --open\n" in result.stdout
    assert result.stdout.rstrip().endswith(" --open")


def test_the_search_page_ends_with_its_parent() -> None:
    """The system closes the other end of its input, also if the parent is killed."""
    code = loop.STOP_WITH_PARENT + "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE) as page:
        pass
    assert page.returncode == -signal.SIGTERM


def test_a_search_page_that_ends_stops_the_labeling_application(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(served, "POLL_INTERVAL", 0.05)
    monkeypatch.setattr(served, "STOP_DELAY", 0.05)
    monkeypatch.setattr(loop, "RUN_COMMAND", "raise SystemExit(3)")
    with pytest.raises(FirstpageError, match="the search page ended with status 3"):
        loop.serve_until_stopped(Folder(tmp_path), 0, StepPrinter())
    assert "are running" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "options", "extras"),
    [("sqlalchemy", [], "web,search"), ("tantivy", [], "web,search"),
     ("msgspec", ["--serve"], "web,search,serve")],
)  # fmt: skip
def test_all_extras_are_named_before_any_work(
    tmp_path: Path, run, monkeypatch, module, options, extras
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == module else name)
    result = run("demo", "-o", tmp_path / "x", *options)
    assert result.returncode == 1
    assert f"The demo needs the package '{module}'" in result.stderr
    assert install_command(extras) in result.stderr
    assert not (tmp_path / "x").exists()


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


def test_a_port_without_room_for_the_search_page_is_refused(tmp_path: Path, run) -> None:
    result = run("demo", "-o", tmp_path / "x", "--serve", "--port", 65530)
    assert result.returncode == 1
    assert "port 65540 (ports are at most 65535); choose another --port" in result.stderr


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
