"""Every integer of a request is bounded, so that both databases can store it."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from annotated_types import Ge, Gt, Le, Lt
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from firstpage.labeling.app.api.bodies import MAX_INT
from tests.labeling.app.site import Site, body
from tests.narrow import present

BEYOND = (0, -1, MAX_INT + 1, 2**63, 10**26)


def routes(app: FastAPI) -> Iterator[APIRoute]:
    """Return all routes, those of included routers too."""
    all_routes: list[Any] = list(app.routes)
    while all_routes:
        route = all_routes.pop()
        if isinstance(route, APIRoute):
            yield route
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        all_routes += getattr(inner, "routes", [])


def fields(dependant: Dependant) -> Iterator[tuple[str, FieldInfo]]:
    for inner in dependant.dependencies:
        yield from fields(inner)
    for group in ("path_params", "query_params", "header_params", "cookie_params", "body_params"):
        for field in getattr(dependant, group):
            yield field.name, field.field_info


def integers(name: str, kind: Any, info: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each integer of a parameter with its constraints."""
    if kind is int:
        yield name, info
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for key, field in kind.model_fields.items():
            yield from integers(f"{name}.{key}", field.annotation, tuple(field.metadata))
    elif typing.get_origin(kind) is typing.Annotated:
        inner, *constraints = typing.get_args(kind)
        for demand in constraints:
            info += tuple(demand.metadata) if isinstance(demand, FieldInfo) else (demand,)
        yield from integers(name, inner, info)
    else:
        for inner in typing.get_args(kind):
            yield from integers(name, inner, info)


def test_every_integer_of_every_route_is_bounded(site: Site) -> None:
    names: set[str] = set()
    unbounded = []
    for route in routes(site.app):
        for name, info in fields(route.dependant):
            for path, demands in integers(name, info.annotation, tuple(info.metadata)):
                names.add(path)
                low = any(isinstance(d, Ge | Gt) for d in demands)
                high = any(isinstance(d, Le | Lt) for d in demands)
                if not (low and high):
                    unbounded.append(f"{sorted(present(route.methods))} {route.path}: {path}")
    expected = {"before", "task", "person", "body.seq", "max_pairs", "depth"}
    assert expected <= names, "paths, queries, forms and nested bodies are checked"
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
