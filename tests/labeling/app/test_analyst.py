"""Analyses are computed in a process of their own, and cached until the project changes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.app.analysis import figures, truth
from firstpage.labeling.app.analysis.analyst import Analyst, project_version
from firstpage.labeling.app.store import people, projects, tasks
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.projects import Project
from tests.labeling.app.site import Site
from tests.narrow import present


def process_id(tx: Tx, project: Project) -> int:
    return os.getpid()


def fail(tx: Tx, project: Project, line: str) -> None:
    raise DataError(line)


@pytest.fixture
def judged(site: Site) -> Iterator[tuple[Site, Project]]:
    site.project("books", queries=2)
    with site.store.read() as tx:
        yield site, present(projects.by_slug(tx, "books"))


def test_results_are_kept_until_something_changes(judged: tuple[Site, Project]) -> None:
    site, project = judged
    calls: list[int] = []

    def counted(tx: Tx, project: Project) -> int:
        calls.append(1)
        return len(calls)

    analyst = Analyst(site.store)
    assert [analyst.compute(counted, project) for _ in range(3)] == [1, 1, 1]
    versions: dict[str | None, object] = {None: version(site, project)}
    with site.store.write() as tx:
        task = tasks.of_project(tx, project.id)[0]
        tasks.set_state(tx, task.id, "done", judgments=0)
    versions["task"] = version(site, project)
    with site.store.write() as tx:
        projects.join(tx, project, people.create(tx, "newcomer"), "assessor")
    versions["member"] = version(site, project)
    assert len(set(versions.values())) == 3
    assert analyst.compute(counted, project) == 2


def version(site: Site, project: Project) -> object:
    with site.store.read() as tx:
        return project_version(tx, project)


def test_a_process_of_its_own_gives_the_same_and_survives(judged: tuple[Site, Project]) -> None:
    site, project = judged
    inside, outside = Analyst(site.store), Analyst(site.store, separate=True)
    for analysis in (figures.effort, figures.agreement, truth.judged_queries, figures.study_tables):
        assert repr(outside.compute(analysis, project)) == repr(inside.compute(analysis, project))
    process = outside.compute(process_id, project)
    assert process != os.getpid()
    with pytest.raises(DataError, match="one line"):
        outside.compute(fail, project, "one line")
    os.kill(process, signal.SIGKILL)
    assert outside.compute(figures.effort, project) == inside.compute(figures.effort, project)
    with site.store.write() as tx:  # another version, so that it is computed again
        tasks.set_state(tx, tasks.of_project(tx, project.id)[0].id, "done", judgments=0)
    assert outside.compute(process_id, project) not in (process, os.getpid())
