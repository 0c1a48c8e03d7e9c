"""A site on which every page has content: usual, extreme and missing, in several projects."""

from __future__ import annotations

from firstpage.labeling.app.store import invitations, people, projects, tasks, tokens
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.live import Live
from tests.labeling.app.graded_lists import graded_queries, judge_first, lists_project
from tests.labeling.app.site import add_query
from tests.labeling.app.test_adjudication import swapped

WORD = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrente"  # has no place to break
NAME = "Wolfeschlegelsteinhausenbergerdorffwelchevoralternwarengewis"  # 60 characters
HEBREW = "מהי הטמפרטורה הנכונה של המים לתה ירוק"
LEAD_PAGES = (
    "dashboard", "answers", "adjudicate", "agreement", "truth?partial=true", "queries", "people", "setup",
    "setup/data", "setup/judging", "setup/people", "setup/assignment", "audit", "comments", "report",
    "guidelines", "machines",
)  # fmt: skip
PROJECTS = ("tea", "long", "lists", "empty", "large", "rtl")


def fill(live: Live) -> None:
    """Create the projects, which lena leads."""
    assert len(NAME) == 60
    _tea(live)
    _long(live)
    _right_to_left(live)
    project = lists_project(live, graded_queries(30), ("ada", "bo"), slug="lists")
    judge_first(live, project, "ada", 25)
    lena = live.person("lena")
    with live.store.write() as tx:
        projects.join(tx, project, lena, "assessor")  # with every link of the navigation
    live.project("empty", assessors=(), queries=0, opened=False)
    live.project("large", assessors=("ada", "bo"), queries=500, documents=2, setting={"k": 1})


def _tea(live: Live) -> None:
    """Add a project that people have judged, with a dispute, a comment and an unused link."""
    options = {"ties": True, "reasons": ["recent", "complete"]}
    project = live.project(
        "tea", assessors=("ada", "bo", "cy"), queries=3, documents=5, options=options
    )
    for number in range(2):
        live.client("ada").judge(live.task("tea", "ada", number))
        live.client("bo").judge(live.task("tea", "bo", number), swapped)
    cy = live.client("cy")
    state = cy.state(live.task("tea", "cy"))
    state = cy.answer(state, 1, comment="Both say the same.").json()
    cy.answer(state, 0, skipped=True, reason="cannot tell: the text is cut off")
    lena = live.person("lena")
    with live.store.write() as tx:
        invitations.invite(tx, project, "assessor", lena)
        tokens.create(tx, lena, "nightly export", "read", 90)


def _long(live: Live) -> None:
    """Add a project whose texts and names are long and have no blanks."""
    with live.store.write() as tx:
        for login in ("x" * 60, "y" * 60):
            people.ensure(tx, login, NAME)
    documents = tuple(DocumentRecord(f"{WORD}{i}", 3 * WORD, body=WORD) for i in range(4))
    query = QueryRecord(WORD, 3 * WORD, 3 * WORD, documents)
    _judged(live, "long", query, ("x" * 60, "y" * 60), title=4 * WORD)


def _right_to_left(live: Live) -> None:
    documents = tuple(DocumentRecord(f"d{i}", f"{HEBREW} {i}", body=HEBREW) for i in range(4))
    _judged(live, "rtl", QueryRecord("q1", HEBREW, HEBREW, documents), ("ada", "bo"), HEBREW)


def _judged(live: Live, slug: str, query: QueryRecord, logins: tuple[str, str], title: str) -> None:
    """Add a project with one query, about which two assessors disagree."""
    project = live.project(slug, assessors=logins, queries=0, opened=False)
    lena = live.person("lena")
    with live.store.write() as tx:
        project = projects.change(tx, project, {"title": title}, lena)
        row = add_query(tx, project.id, query, 0)
        for login in logins:
            person = people.by_login(tx, login)
            assert person is not None
            tasks.add(tx, project, row, person.id, "pairs", 0, 0)
        projects.set_state(tx, project, "open", lena)
    for login, better in zip(logins, (1, -1), strict=True):
        live.client(login).judge(live.task(slug, login), lambda left, right, up=better: up)
