"""Pages without a browser: access, CSRF tokens, redirects."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from firstpage.labeling.app.pages import rendering
from firstpage.labeling.app.pages.rendering import local_path
from firstpage.labeling.app.pages.setup import percentage, slug_of
from firstpage.labeling.app.store import invitations, logins, projects
from tests.labeling.app.site import PASSWORD, Client, Site
from tests.narrow import present

LEAD = (
    "dashboard", "progress", "agreement", "truth", "measure", "report", "audit", "comments", "people", "setup",
    "answers", "adjudicate", "machines", "queries",
    "setup/data", "setup/judging", "setup/people", "setup/assignment",
)  # fmt: skip


def token(client: Client, path: str = "/login") -> str:
    field = re.search(r'name="csrf" value="([^"]+)"', client.get(path).text)
    assert field is not None
    return field[1]


@pytest.mark.parametrize("page", LEAD)
def test_pages_of_a_lead_are_for_leads(site: Site, page: str) -> None:
    site.project()
    assert site.client("lena").get(f"/p/books/{page}").status_code == 200
    assert site.client("ada").get(f"/p/books/{page}").status_code == 403
    assert site.client("eve").get(f"/p/books/{page}").status_code == 404
    response = site.client().get(f"/p/books/{page}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (
        303,
        f"/login?next=/p/books/{page}",
    )


def test_the_webhook_is_set_on_the_first_page_of_the_set_up(site: Site) -> None:
    site.project(documents=2, queries=1)
    lena, page = site.client("lena"), "/p/books/setup"
    form = {"csrf": token(lena, page), "url": "https://example.org/hook"}
    shown = lena.post(f"{page}/webhook", data=form)
    secret = re.search(r'id="secret" value="([^"]+)"', shown.text)
    assert secret is not None
    again = lena.get(page).text
    assert secret[1] not in again
    assert 'value="https://example.org/hook"' in again
    site.client("ada").judge(site.task("books", "ada"))
    assert "Last messages" in lena.get(page).text
    refused = lena.post(f"{page}/webhook", data={**form, "url": "nowhere"})
    assert refused.status_code == 400
    assert "A webhook needs an address" in refused.text
    lena.post(f"{page}/webhook", data={**form, "remove": "yes"})
    assert 'value="https://example.org/hook"' not in lena.get(page).text
    ada = site.client("ada")
    assert (
        ada.post(f"{page}/webhook", data={**form, "csrf": token(ada, "/p/books")}).status_code
        == 403
    )


def test_pages_of_an_assessor_are_their_own(site: Site) -> None:
    site.project(assessors=("ada", "bo"))
    task = site.task("books", "ada")
    for name in ("", "/next", "/done", "/judgments"):
        path = f"/tasks/{task}{name}"
        assert site.client("ada").get(path).status_code == 200
        assert site.client("bo").get(path).status_code == 404
        assert site.client("lena").get(path).status_code == 404


@pytest.mark.parametrize(
    "path", ["/tasks/0", "/tasks/x", "/tasks/99999999999", "/p/A", "/p/-", "/p/books/x", "/nowhere"]
)
def test_unknown_addresses_are_not_server_errors(site: Site, path: str) -> None:
    response = site.client("ada").get(path)
    assert response.status_code == 404
    assert "Not found" in response.text


POSTS = (
    "/projects/new", "/p/books/setup", "/p/books/setup/judging", "/p/books/import",
    "/p/books/preview/import", "/p/books/assignment", "/p/books/open", "/p/books/close",
    "/p/books/people/invite", "/p/books/people/revoke", "/p/books/people/join", "/logout",
    "/account/password", "/p/books/adjudicate", "/p/books/adjudicate/withdraw", "/p/books/queries",
    "/p/books/archive", "/p/books/restore", "/p/books/delete",
)  # fmt: skip


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("form", [{}, {"csrf": ""}, {"csrf": "x" * 43}])
def test_forms_need_their_token(site: Site, path: str, form: dict[str, str]) -> None:
    """The header of the API is not accepted, since a form cannot send it."""
    site.project()
    client = site.client("lena")
    assert client.post(path, data=form, follow_redirects=False).status_code == 403


def test_sign_in_redirects_to_local_pages_only(site: Site) -> None:
    from firstpage.labeling.app.store import people

    person = site.person("ada")
    with site.store.write() as tx:
        people.set_password(tx, person, people.hash_password(PASSWORD, person.login))
    for target, expected in (
        ("/p/books", "/p/books"),
        ("//evil.example", "/"),
        ("https://evil", "/"),
    ):
        client = site.client()
        form = {"csrf": token(client), "login": "ada", "password": PASSWORD, "next": target}
        response = client.post("/login", data=form, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (303, expected)


def test_a_form_sent_after_the_session_ended_says_that_nothing_was_saved(site: Site) -> None:
    site.project()
    client, lena = site.client("lena"), site.person("lena")
    form = {"csrf": token(client, "/p/books/setup"), "title": "New", "guidelines": "text"}
    with site.store.write() as tx:
        logins.end_all(tx, lena.id)
    page = {"referer": "http://testserver/p/books/setup?note=saved"}
    reply = client.post("/p/books/setup", data=form, headers=page, follow_redirects=False)
    assert reply.status_code == 303
    assert reply.headers["location"] == "/login?next=/p/books/setup&note=expired"
    assert "nothing was saved" in client.get(reply.headers["location"]).text
    for foreign in ("https://evil.example//evil.example", "", "javascript:x"):
        reply = client.post(
            "/p/books/setup", data=form, headers={"referer": foreign}, follow_redirects=False
        )
        assert reply.headers["location"] == "/login?next=/&note=expired"


@pytest.mark.parametrize(
    "path", ["//a", "/\\a", "https://a", "javascript:x", "", "a", "/a\nb", None, 3, "/\ta"]
)
def test_foreign_redirects_lead_home(path: object) -> None:
    assert local_path(path) == "/"
    assert local_path("/p/books?x=1") == "/p/books?x=1"


def test_user_texts_are_escaped(site: Site) -> None:
    bad = "<script>alert(1)</script>"
    site.project()
    client = site.client("lena")
    form = {"csrf": token(client, "/p/books/setup"), "title": bad, "guidelines": bad}
    assert client.post("/p/books/setup", data=form).status_code == 200
    for path in ("/", "/p/books/setup", "/p/books/guidelines", "/p/books/audit"):
        text = client.get(path).text
        assert bad not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_an_invalid_number_is_reported_on_the_page(site: Site) -> None:
    site.project(opened=False)
    client = site.client("lena")
    form = {"csrf": token(client, "/p/books/setup/judging"), "tools": "pairs", "k": "many"}
    form |= {"away_after": "60", "training_pass": "70", "replicates": "1", "seed": "0"}
    form |= {"refine": "0", "repeat_rate": "0", "gold_rate": "0", "strategy": "heap"}
    response = client.post("/p/books/setup/judging", data=form)
    assert response.status_code == 400
    assert "k must be an integer; got &#39;many&#39;." in response.text
    response = client.post(
        "/p/books/setup/judging", data={**form, "k": "4", "strategy": "nonsense"}
    )
    assert response.status_code == 400
    assert "nonsense" in response.text
    response = client.post(
        "/p/books/setup/judging", data={**form, "k": "4"}, follow_redirects=False
    )
    assert response.status_code == 303


def test_saving_a_page_unchanged_changes_nothing(site: Site) -> None:
    """Rates that were set elsewhere are not rounded to whole percentages."""
    setting = {
        "k": 3,
        "strategy": "heap",
        "repeat_rate": 0.125,
        "gold_rate": 0.005,
        "probe_rate": 1 / 3,
    }
    options = {"training_pass": 0.675, "away_after": 60.5, "verdict_weight": 2.5}
    site.project(opened=False, setting=setting, options=options)
    client = site.client("lena")
    path = "/p/books/setup/judging"
    names = "k|seed|refine|repeat_rate|gold_rate|probe_rate|away_after|training_pass|verdict_weight|replicates"
    page = client.get(path).text
    form = {
        match[1]: present(re.search(r'value="([^"]*)"', match[0]))[1]
        for match in re.finditer(rf'<input[^>]*name="({names})"[^>]*>', page)
    }
    assert len(form) == 10
    before = client.get("/api/v1/projects/books").json()
    form |= {"csrf": token(client, path), "tools": "pairs", "strategy": "heap", "bad": "yes"}
    assert client.post(path, data=form, follow_redirects=False).status_code == 303
    after = client.get("/api/v1/projects/books").json()
    assert (after["setting"], after["options"]) == (before["setting"], before["options"])
    reply = client.post(path, data={**form, "gold_rate": "1,5"})
    assert "Gold rate must be a number; got &#39;1,5&#39;." in reply.text


@pytest.mark.parametrize("fraction", [0, 1, 0.7, 0.07, 0.29, 1e-05, 1 / 3, 0.1 + 0.2])
def test_fractions_are_shown_exactly(fraction: float) -> None:
    text = percentage(fraction)
    assert float(Decimal(text) / 100) == fraction
    assert not text.endswith(".0")


def test_short_names_are_derived_from_titles() -> None:
    assert slug_of("Grüner Tee & Co.") == "gruner-tee-co"
    assert slug_of("緑茶") == "project"
    assert len(slug_of("x" * 200)) == 64


def test_static_files_are_cached_and_pages_are_not(site: Site) -> None:
    client = site.client()
    response = client.get(f"{rendering.static_files().url}/judge.js")
    assert response.status_code == 200
    assert "immutable" in response.headers["cache-control"]
    assert response.headers["content-type"].startswith("text/javascript")
    page = client.get("/login")
    assert page.headers["cache-control"] == "no-store"
    assert rendering.static_files().url in page.text


def test_no_page_has_inline_scripts_or_styles(site: Site) -> None:
    """The policy forbids them, so they would have no effect."""
    site.project()
    client = site.client("lena")
    for page in LEAD:
        text = client.get(f"/p/books/{page}").text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), page
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text), page


def test_a_lead_switches_a_strategy_in_mid_query(site: Site) -> None:
    site.project(setting={"k": 3, "strategy": "heap"})
    task, ada = site.task("books", "ada"), site.person("ada").id
    lead = site.client("lena")
    page = f"/p/books/people/{ada}"
    form = {"csrf": token(lead, page), "task": str(task), "strategy": "tournament", "k": "2"}
    assert lead.post(f"{page}/switch", data=form, follow_redirects=False).status_code == 303
    log = lead.get("/api/v1/projects/books/export/log.jsonl").text
    assert '"strategy": "tournament"' in log
    assert "heap, k = 3" in lead.get(page).text
    wrong = {**form, "csrf": token(lead, page), "k": "many"}
    assert lead.post(f"{page}/switch", data=wrong).status_code == 400
    other = {**form, "csrf": token(lead, page), "task": "999"}
    assert lead.post(f"{page}/switch", data=other).status_code == 404
    assert site.client("ada").post(f"{page}/switch", data=form).status_code == 403


def test_pages_name_queries_and_people_in_place_of_ids(site: Site) -> None:
    site.project(documents=5)
    task, ada, lead = site.task("books", "ada"), site.person("ada").id, site.client("lena")
    judge = site.client("ada")
    state = judge.state(task)
    for seconds in (1, 2, 3, 1, 2, 3, 600):
        span = {"kind": "active", "ms": 1000 * seconds}
        state = judge.answer(state, spans=[span]).json()
    page = f"/p/books/people/{ada}"
    form = {"csrf": token(lead, page), "task": str(task), "strategy": "insertion"}
    assert lead.post(f"{page}/switch", data=form).status_code == 200
    audit = lead.get("/p/books/audit").text
    assert "query: query 0; assessor: Ada; strategy: insertion" in audit
    unusual = lead.get("/p/books/dashboard").text.partition('aria-label="Unusual times"')[2]
    assert re.search(r">query 0</th><td>Ada</td><td dir=.auto.>Title \d · Title \d<", unusual)
    assert 'Only query <strong dir="auto">query 1<' in lead.get("/p/books/adjudicate?query=q1").text


def test_pages_of_an_empty_project_say_what_to_do_next(site: Site) -> None:
    site.project(assessors=(), queries=0, opened=False)
    lead = site.client("lena")
    for page, link in (
        ("dashboard", "setup/data"),
        ("queries", "setup/data"),
        ("setup/assignment", "setup/data"),
        ("agreement", "setup/judging"),
        ("truth", "dashboard"),
    ):
        body = lead.get(f"/p/books/{page}").text.partition("<main")[2]
        assert f'href="/p/books/{link}"' in body, page
    assert "as soon as somebody judges" in lead.get("/p/books/answers").text
    assert "No answer matches" in lead.get("/p/books/answers?skipped=true").text


def test_unstorable_texts_are_refused(db_site: Site) -> None:
    """The character NUL is refused in every form, also of people who are not signed in."""
    db_site.project()
    lena, guest = db_site.client("lena"), db_site.client()
    with db_site.store.write() as tx:
        link = invitations.invite(tx, projects.by_slug(tx, "books"), "assessor", None).path
    form = {"csrf": token(guest), "login": "a\0b", "password": PASSWORD}
    for client, path, fields in (
        (guest, "/login", form),
        (guest, link, form | {"login": "abc", "name": "a\0b", "csrf": token(guest, link)}),
        (lena, "/projects/new", {"title": "a\0b", "slug": "fine"}),
        (lena, "/p/books/setup", {"title": "a", "guidelines": "a\0b"}),
        (lena, "/p/books/people/invite", {"role": "lead\0"}),
    ):
        data = {"csrf": str(lena.headers["X-CSRF-Token"]), **fields}
        response = client.post(path, data=data, follow_redirects=False)
        assert response.status_code == 400, path
        assert "NUL" in response.text, path


def test_pages_accept_head_requests(site: Site) -> None:
    site.project()
    assert site.client().head("/login").status_code == 200
    assert site.client("lena").head("/p/books/dashboard").status_code == 200
    assert site.client("lena").head("/p/nothing/dashboard").status_code == 404
    assert site.client("lena").head("/logout").status_code == 405
