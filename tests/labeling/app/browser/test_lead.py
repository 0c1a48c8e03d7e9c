"""The tasks of a lead in the browser, from a new project to the exported truth."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, Route, expect

from firstpage.labeling.app.pages.setup import FILES, FORMATS
from firstpage.labeling.app.store import projects
from tests.labeling.app.browser.actions import answer, better_by_title, ready, submit
from tests.labeling.app.browser.live import Live
from tests.labeling.app.site import jsonl


def texts(folder: Path, documents: int = 4) -> dict[str, Path]:
    """Write the files to import."""
    queries = [{"query": f"q{q}", "text": f"query {q}", "description": "wanted"} for q in range(2)]
    rows = [
        {"query": f"q{q}", "document": f"d{i}", "title": f"Title {i}", "text": f"Body {i}"}
        for q in range(2)
        for i in range(documents)
    ]
    training = [
        {"text": "tea", "left": "about tea", "right": "about cars", "outcome": "left",
         "explanation": "Cars are not tea."}
    ]  # fmt: skip
    paths = {}
    for name, records in (("queries", queries), ("documents", rows), ("training", training)):
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_bytes(jsonl(*records))
    return paths


def import_files(page: Page, files: dict[str, Path]) -> None:
    """Choose files, check the preview, import them, then import the practice questions."""
    button = page.get_by_role("button", name="Import")
    for format_, label, _ in reversed(FORMATS):
        page.get_by_role("radio", name=label).check()
        names = [name for name, _, _, formats, _ in FILES if format_ in formats.split()]
        for state in ("visible", "enabled"):
            fields = page.locator(f"input[type=file]:{state}")
            expect(fields).to_have_count(len(names))
            assert fields.evaluate_all("fields => fields.map(field => field.name)") == names
    before = button.bounding_box()
    page.get_by_label("Documents", exact=True).set_input_files(files["documents"])
    page.get_by_label("Queries", exact=True).set_input_files(files["queries"])
    expect(page.locator("#preview")).to_contain_text("2 queries with 8 documents")
    assert button.bounding_box() == before, "a click is lost if the button moves under the pointer"
    button.click()
    expect(page.get_by_role("heading", name="2 queries, 8 documents")).to_be_visible()
    page.get_by_role("radio", name="Known answers").check()
    page.get_by_label("Practice questions", exact=True).set_input_files(files["training"])
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="1 practice question")).to_be_visible()


def judge_all(page: Page, queries: int) -> None:
    """Answer the practice questions, then judge every query by keyboard."""
    page.get_by_role("link", name="Start practice").click()
    ready(page)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Not quite")).to_be_visible()
    expect(page.get_by_text("Cars are not tea.")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("please try again")
    ready(page)
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="That is correct")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text("you passed the practice")).to_be_visible()
    for number in range(queries):
        page.locator("a.main").first.click()
        while not page.url.endswith("/done"):
            ready(page)
            answer(page, better_by_title(page))
        expect(page.get_by_role("heading", name="This query is done")).to_be_visible()
        remaining = queries - number - 1
        text = f"{remaining} of your queries" if remaining else "no more open queries"
        assert text in page.inner_text("main")


def test_from_set_up_to_export(live: Live, tmp_path: Path) -> None:
    live.person("chief", admin=True)
    page = live.open("/", login="chief")
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Title").fill("Green Tea & Co")
    page.get_by_role("button", name="Create project").click()
    expect(page).to_have_url(f"{live.url}/p/green-tea-co/setup/data")
    import_files(page, texts(tmp_path))
    page.get_by_role("link", name="Continue").click()
    page.get_by_label("Top k", exact=True).fill("2")
    page.get_by_label("Strategy").select_option("heap-closure")
    page.get_by_label("Assessors per query").fill("2")
    page.get_by_role("button", name="Save and continue").click()
    submit(page, "Judge too")
    page.get_by_role("button", name="Create an invitation link").click()
    link = page.get_by_label("Link", exact=True).input_value()
    page.get_by_role("link", name="Continue").click()
    expect(page.get_by_text("need at least 2 assessors")).to_be_visible()  # nobody has judged yet

    guest = live.open(link.removeprefix(live.url), login=None)
    guest.get_by_label("Login").fill("ada")
    guest.get_by_label("Name").fill("Ada")
    guest.get_by_label("Password").fill("a long password")
    guest.get_by_role("button", name="Create account and join").click()
    expect(guest.get_by_text("is not open yet")).to_be_visible()

    page.reload()
    expect(page.get_by_text("Every query is covered")).to_be_visible()
    expect(page.get_by_text("expected hours in total")).to_be_visible()
    page.get_by_role("button", name="Assign and open the project").click()
    expect(page.get_by_text("The project is open")).to_be_visible()

    guest.reload()
    judge_all(guest, 2)
    page.goto(f"{live.url}/p/green-tea-co")
    judge_all(page, 2)
    page.goto(f"{live.url}/p/green-tea-co/dashboard")
    expect(page.get_by_text("4 of 4")).to_be_visible()
    with page.expect_download() as coming:
        page.get_by_role("link", name="Truth, qrels").click()
    lines = Path(coming.value.path()).read_text().splitlines()
    assert lines[:4] == ["q0 0 d0 2", "q0 0 d1 1", "q0 0 d2 0", "q0 0 d3 0"]
    with page.expect_download() as coming:
        page.get_by_role("link", name="Raw log, JSON lines").click()
    log = [json.loads(line) for line in Path(coming.value.path()).read_text().splitlines()]
    assert {row["assessor"] for row in log} == {"ada", "chief"}
    page.get_by_role("link", name="Agreement").click()
    expect(page.get_by_text("100.0 %").first).to_be_visible()


def test_an_invalid_file_names_the_line(live: Live, tmp_path: Path) -> None:
    live.project(opened=False)
    page = live.open("/p/books/setup/data", login="lena")
    bad = tmp_path / "docs.jsonl"
    bad.write_text('{"query": "q9", "document": "d1", "text": "a"}\n{"query": "q9"}\n')
    page.get_by_label("Documents", exact=True).set_input_files(bad)
    expect(page.locator("#preview").get_by_role("alert")).to_contain_text("ocs.jsonl:2")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("alert").first).to_contain_text("ocs.jsonl:2")


def test_the_dashboard_is_live(live: Live) -> None:
    live.project(queries=1, documents=5)
    task = live.task("books", "ada")
    page = live.open("/p/books/dashboard", login="lena")
    expect(page.locator("[data-live] dd").first).to_have_text("0")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("[data-live] .scroll").first.evaluate("box => { box.scrollLeft = 90 }")
    other = live.open(f"/tasks/{task}")
    answer(other, "ArrowLeft")
    expect(page.locator("[data-live] dd").first).to_have_text("1")
    assert page.locator("[data-live] .scroll").first.evaluate("box => box.scrollLeft") == 90


def test_people_are_managed(live: Live) -> None:
    live.project(assessors=("ada", "bo"))
    page = live.open("/p/books/people", login="lena")
    page.get_by_role("link", name="Manage Bo").click()
    page.get_by_role("button", name="Create a link to set a new password").click()
    link = page.get_by_label("Link", exact=True).input_value()
    guest = live.open(link.removeprefix(live.url), login=None)
    guest.get_by_label("New password").fill("another password")
    guest.get_by_role("button", name="Set password").click()
    expect(guest.get_by_role("heading", name="My queries")).to_be_visible()
    guest.get_by_role("button", name="Sign out").click()
    guest.get_by_label("Login").fill("bo")
    guest.get_by_label("Password").fill("not this one")
    guest.get_by_role("button", name="Sign in").click()
    expect(guest.get_by_role("alert")).to_contain_text("login or the password is wrong")
    guest.get_by_label("Password").fill("another password")
    guest.get_by_role("button", name="Sign in").click()
    expect(guest.get_by_role("heading", name="My queries")).to_be_visible()

    page.get_by_role("button", name="Delete the data of Bo").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete the data of Bo").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("The data of this person were deleted")).to_be_visible()
    assert page.get_by_text("Bo", exact=True).count() == 0
    guest.reload()
    expect(guest.get_by_role("heading", name="Sign in")).to_be_visible()


def test_strangers_see_nothing(live: Live) -> None:
    live.project()
    page = live.open("/", login="eve")
    for path in ("/p/books", "/p/books/dashboard", f"/tasks/{live.task('books', 'ada')}"):
        page.goto(live.url + path)
        expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    page = live.open("/p/books/dashboard", login="ada")
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    page = live.open("/p/books", login=None)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.url.endswith("/login?next=/p/books")


def test_removing_a_person_asks_for_confirmation(live: Live) -> None:
    live.project(assessors=("ada", "bob"))
    number = live.person("ada").id
    page = live.open(f"/p/books/people/{number}", login="lena")
    page.get_by_role("button", name="Remove Ada").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 queries not started and 0 queries started")
    dialog.get_by_role("button", name="Cancel").click()
    assert live.person("ada").id in _present(live)
    page.get_by_role("button", name="Remove Ada").click()
    dialog.get_by_role("button", name="Remove Ada").click()
    expect(page.get_by_text("open and started queries were reassigned")).to_be_visible()
    assert live.person("ada").id not in _present(live)


def test_deleting_queries_asks_for_confirmation(live: Live) -> None:
    """Archiving, which can be undone, does not ask."""
    live.project(queries=2, documents=3)
    page = live.open("/p/books/queries", login="lena")
    page.get_by_label("Choose query 0").check()
    submit(page, "Archive the chosen")
    page.get_by_label("Choose query 0").check()
    page.get_by_role("button", name="Delete the chosen for good").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be undone")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Delete the chosen for good").click()
    with page.expect_navigation():
        dialog.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("1 query.")).to_be_visible()


INTO_A_FRAME = """() => {
  const frame = document.createElement("iframe");
  frame.name = "answer";
  document.body.append(frame);
  document.querySelector("form[action$='/people/invite']").target = "answer";
}"""


def test_a_double_click_sends_a_form_once(live: Live) -> None:
    """While the answer is awaited the page says so; after going back the form can be sent again."""
    live.project(assessors=())
    page = live.open("/p/books/people", login="lena")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/people/invite", hold)
    page.evaluate(INTO_A_FRAME)  # so that this page stays, as it does until an answer arrives
    button = page.get_by_role("button", name="Create an invitation link")
    button.dblclick()
    expect(page.get_by_role("status").filter(has_text="Please wait")).to_be_visible()
    button.click()
    page.wait_for_timeout(200)
    assert len(held) == 1
    held[0].fulfill(body="")
    page.unroute("**/people/invite")
    page.goto(f"{live.url}/p/books/people")
    for _ in range(2):
        submit(page, "Create an invitation link")
        expect(page.get_by_text("The invitation link is ready")).to_be_visible()
        page.go_back()


def _present(live: Live) -> list[int]:
    with live.store.read() as tx:
        project = projects.by_slug(tx, "books")
        assert project is not None
        return projects.present(tx, project.id, "assessor")


def test_a_long_upload_is_sent_once(live: Live, tmp_path: Path) -> None:
    """A browser may upload for minutes, and a second click then would import the files twice."""
    live.project(assessors=())
    page = live.open("/p/books/setup/data", login="lena")
    page.clock.install()
    rows = tmp_path / "documents.jsonl"
    rows.write_text('{"query": "q1", "document": "d1", "text": "one"}\n')
    page.get_by_label("Documents", exact=True).set_input_files(rows)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/p/books/import", hold)
    page.evaluate(INTO_A_FRAME.replace("/people/invite", "/import"))
    button = page.get_by_role("button", name="Import", exact=True)
    button.click()
    page.clock.fast_forward(60_000)
    expect(page.get_by_role("status").filter(has_text="reload the page")).to_be_visible()
    button.click()
    page.clock.fast_forward(1000)
    assert len(held) == 1
