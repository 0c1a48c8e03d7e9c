"""The table of routes, and the health check."""

from __future__ import annotations

from firstpage.labeling.app.api.reference import description, rows


def test_every_route_is_described() -> None:
    route_rows = list(rows(description()))
    assert len(route_rows) > 40
    assert all(description for _, description, _, _ in route_rows)
    sent = {route: fields for route, _, fields, _ in route_rows}
    assert sent["POST /api/v1/login"] == "login*, password*"


def test_the_page_needs_no_script_and_no_login(site) -> None:
    reply = site.client().get("/api/v1/docs")
    assert reply.status_code == 200
    assert "POST /api/v1/tasks/{task}/answers" in reply.text
    assert "<script" not in reply.text
    assert "script-src" not in reply.headers["content-security-policy"]


def test_health(site) -> None:
    assert site.client().get("/health").json() == {"state": "fine"}


def test_a_form_that_is_too_large_gets_a_readable_error(site) -> None:
    body = b"x" * (site.settings.max_body + 1)
    for accept, begins in (("text/html", "The request is too large"), ("*/*", '{"detail"')):
        reply = site.client("ada").post("/login", content=body, headers={"accept": accept})
        assert reply.status_code == 413
        assert reply.text.startswith(begins)
