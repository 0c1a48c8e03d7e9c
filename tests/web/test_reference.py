"""The table of routes, and whether the server says that it lives."""

from __future__ import annotations

import pytest

from firstpage.web.api.reference import rows


@pytest.mark.slow
def test_every_route_has_a_row_that_says_what_it_does(site) -> None:
    found = list(rows(site.app.openapi()))
    assert len(found) > 40
    assert all(what for _, what, _, _ in found)
    sent = {route: fields for route, _, fields, _ in found}
    assert sent["POST /api/v1/login"] == "login*, password*"


@pytest.mark.slow
def test_the_page_needs_no_script_and_no_login(site) -> None:
    reply = site.client().get("/api/v1/docs")
    assert reply.status_code == 200
    assert "POST /api/v1/tasks/{task}/answers" in reply.text
    assert "<script" not in reply.text
    assert "script-src" not in reply.headers["content-security-policy"]


def test_health(site) -> None:
    assert site.client().get("/health").json() == {"state": "fine"}


def test_a_form_that_is_too_large_is_told_in_words(site) -> None:
    body = b"x" * (site.settings.body + 1)
    for accept, begins in (("text/html", "This is too large"), ("*/*", '{"detail"')):
        reply = site.client("ada").post("/login", content=body, headers={"accept": accept})
        assert reply.status_code == 413
        assert reply.text.startswith(begins)
