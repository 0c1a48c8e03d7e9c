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

from firstpage.web.api.bodies import MAX_INT
from tests.web.site import Site, body

BEYOND = (0, -1, MAX_INT + 1, 2**63, 10**26)


def routes(app: FastAPI) -> Iterator[APIRoute]:
    """Return all routes, those of included routers too."""
    found: list[Any] = list(app.routes)
    while found:
        route = found.pop()
        if isinstance(route, APIRoute):
            yield route
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        found += getattr(inner, "routes", [])


def fields(dependant: Dependant) -> Iterator[tuple[str, FieldInfo]]:
    for inner in dependant.dependencies:
        yield from fields(inner)
    for group in ("path_params", "query_params", "header_params", "cookie_params", "body_params"):
        for field in getattr(dependant, group):
            yield field.name, field.field_info


def integers(name: str, kind: Any, info: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each integer that a parameter may hold, with what is demanded of it."""
    if kind is int:
        yield name, info
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for key, field in kind.model_fields.items():
            yield from integers(f"{name}.{key}", field.annotation, tuple(field.metadata))
    elif typing.get_origin(kind) is typing.Annotated:
        inner, *more = typing.get_args(kind)
        for demand in more:
            info += tuple(demand.metadata) if isinstance(demand, FieldInfo) else (demand,)
        yield from integers(name, inner, info)
    else:
        for inner in typing.get_args(kind):
            yield from integers(name, inner, info)


def test_every_integer_of_every_route_is_bounded(site: Site) -> None:
    found: set[str] = set()
    unbounded = []
    for route in routes(site.app):
        for name, info in fields(route.dependant):
            for where, demands in integers(name, info.annotation, tuple(info.metadata)):
                found.add(where)
                low = any(isinstance(d, Ge | Gt) for d in demands)
                high = any(isinstance(d, Le | Lt) for d in demands)
                if not (low and high):
                    unbounded.append(f"{sorted(route.methods)} {route.path}: {where}")
    seen = {"before", "task", "person", "body.seq", "most", "depth"}
    assert seen <= found, "paths, queries, forms and nested bodies are looked at"
    assert unbounded == []


@pytest.mark.parametrize("number", BEYOND)
def test_the_audit_bounds_row_ids(both: Site, number: int) -> None:
    both.project()
    lena = both.client("lena")
    assert lena.get(f"/p/books/audit?before={number}").status_code == 404
    assert lena.get(f"/api/v1/projects/books/audit?before={number}").status_code == 422


@pytest.mark.parametrize("number", BEYOND)
def test_the_form_to_revoke_a_link_is_bounded(both: Site, number: int) -> None:
    both.project()
    lena = both.client("lena")
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
    twice = {**sent, "bad": [sent["left"], sent["left"]]}
    reply = ada.post(f"/api/v1/tasks/{task}/answers", json=twice)
    assert reply.status_code == 422
    assert "once" in reply.json()["detail"]
    both_bad = {**sent, "bad": [sent["left"], sent["right"]]}
    assert ada.post(f"/api/v1/tasks/{task}/answers", json=both_bad).status_code == 200
    again = {"seq": 1, "key": "again", "at": 0, "outcome": 0, "bad": twice["bad"]}
    assert ada.post(f"/api/v1/tasks/{task}/revise", json=again).status_code == 422
