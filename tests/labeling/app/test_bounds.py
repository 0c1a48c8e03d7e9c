"""Every integer of a request is bounded, so that both databases can store it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import inspect
from starlette.routing import Route

from firstpage.core.http.routes import Endpoint
from firstpage.labeling.app.api.bodies import MAX_INT
from tests.labeling.app.site import Site, body
from tests.narrow import instance

BEYOND = (0, -1, MAX_INT + 1, 2**63, 10**26)


def endpoints(site: Site) -> Iterator[Endpoint]:
    """Yield the endpoints of all declared routes."""
    for route in site.app.routes:
        if isinstance(route, Route):
            yield instance(Endpoint, route.app)


def integers(name: str, kind: inspect.Type) -> Iterator[tuple[str, inspect.IntType]]:
    """Yield each integer of a parameter with its constraints."""
    if isinstance(kind, inspect.IntType):
        yield name, kind
    for field in getattr(kind, "fields", ()):
        yield from integers(f"{name}.{field.name}", field.type)
    for attribute in ("type", "item_type", "key_type", "value_type"):
        if (inner := getattr(kind, attribute, None)) is not None:
            yield from integers(name, inner)
    for inner in getattr(kind, "types", ()):
        yield from integers(name, inner)


def test_every_integer_of_every_route_is_bounded(site: Site) -> None:
    names: set[str] = set()
    unbounded = []
    for endpoint in endpoints(site):
        kinds = {"path": endpoint.path_kind, "query": endpoint.query_kind, "body": endpoint.kind}
        for place, kind in kinds.items():
            if kind is None:
                continue
            for name, number in integers(place, inspect.type_info(kind)):
                names.add(name)
                low, high = (number.ge, number.gt), (number.le, number.lt)
                if low == (None, None) or high == (None, None):
                    unbounded.append(f"{endpoint.method} {endpoint.path}: {name}")
    expected = {"query.before", "path.task", "path.person", "body.seq", "query.max_pairs"}
    assert {*expected, "body.depth"} <= names, "paths, queries, forms and bodies are checked"
    assert unbounded == []


@pytest.mark.parametrize("number", BEYOND)
def test_the_audit_bounds_row_ids(db_site: Site, number: int) -> None:
    db_site.project()
    lena = db_site.client("lena")
    assert lena.get(f"/p/books/audit?before={number}").status_code == 404
    assert lena.get(f"/api/v1/projects/books/audit?before={number}").status_code == 422


@pytest.mark.parametrize("number", BEYOND)
def test_the_form_to_revoke_a_link_is_bounded(db_site: Site, number: int) -> None:
    db_site.project()
    lena = db_site.client("lena")
    sent = {"csrf": lena.headers["X-CSRF-Token"], "link": str(number)}
    reply = lena.post("/p/books/people/revoke", data=sent, follow_redirects=False)
    assert reply.status_code < 500


@pytest.mark.parametrize("name", ["k", "seed", "refine"])
def test_the_numbers_of_a_setting_are_bounded(site: Site, name: str) -> None:
    site.project()
    lena = site.client("lena")
    reply = lena.post("/api/v1/projects", json={"slug": "huge", "setting": {name: 10**26}})
    assert reply.status_code == 400
    assert name in reply.json()["detail"]


def test_a_document_is_marked_bad_once(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    sent = body(ada.state(task), outcome=0)
    repeated = {**sent, "bad": [sent["left"], sent["left"]]}
    reply = ada.post(f"/api/v1/tasks/{task}/answers", json=repeated)
    assert reply.status_code == 422
    assert "once" in reply.json()["detail"]
    both_bad = {**sent, "bad": [sent["left"], sent["right"]]}
    assert ada.post(f"/api/v1/tasks/{task}/answers", json=both_bad).status_code == 200
    revision = {"seq": 1, "key": "again", "index": 0, "outcome": 0, "bad": repeated["bad"]}
    assert ada.post(f"/api/v1/tasks/{task}/revise", json=revision).status_code == 422
