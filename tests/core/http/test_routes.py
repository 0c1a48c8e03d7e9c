"""Declared routes: admission before the body, decoding with places of mistakes, description."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from firstpage.core.http import (
    FORM_HEAD,
    JSON,
    SMALL_BODY,
    DeclaredResponse,
    ErrorMessage,
    Operation,
    Parameter,
    Routes,
    openapi_document,
    refusals,
)

with warnings.catch_warnings():  # a deprecation warning about its HTTP library
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

Positive = Annotated[int, Meta(ge=1, le=9)]
Short = Annotated[str, Meta(max_length=3)]
MAX_BYTES = 2 * SMALL_BODY


class Line(Struct, forbid_unknown_fields=True):
    kind: Literal["in", "out"]
    name: Short = ""


class Order(Struct, forbid_unknown_fields=True):
    number: Positive
    lines: list[Line] = []
    counts: dict[Short, Positive] = {}
    password: Short | None = None


class Filter(Struct):
    page: Positive = 1
    bold: bool = False


class Files(Struct, forbid_unknown_fields=True):
    first: UploadFile
    others: list[UploadFile] = []
    depth: Positive | None = None


class Key:
    """Admits the sender of the right key."""

    refusals: Mapping[int, str] = {401: "The key is wrong."}

    def __call__(self, request: Request) -> str:
        if request.headers.get("x-key") != "right":
            raise HTTPException(401, "The key is wrong.")
        return "sender"


def storable(text: str, place: str) -> None:
    if "\x00" in text and not place.endswith("lines.name"):
        raise ValueError("must not contain the character NUL")


routes = Routes(check_text=storable, form_token=lambda request: "token", prefix="/shop")


@routes.get("/items/{item}")
def item(request: Request, item: Positive, bold: bool = False, note: Short = "") -> dict[str, Any]:
    """Return an item.

    More about items.
    """
    return {"item": item, "bold": bold, "note": note}


@routes.get("/items")
def items(request: Request, wanted: Filter) -> Filter:
    """Return a filter."""
    return wanted


@routes.post("/orders", admit=Key(), status=201, max_bytes=MAX_BYTES, tag="orders")
def order(request: Request, sender: str, body: Order) -> Order:
    """Store an order."""
    return body


@routes.put("/orders", admit=Key(), status=204)
async def change_order(request: Request, sender: str, body: Order) -> None:
    """Change an order."""
    assert sender == "sender"


@routes.post("/files", admit=Key())
def files(request: Request, sender: str, upload: Files) -> list[str | int | None]:
    """Store files."""
    named = [upload.first.filename, *(other.filename for other in upload.others)]
    return [*named, upload.depth]


@routes.post("/pages", admit=Key(), hidden=True, max_bytes=MAX_BYTES)
def page(request: Request, sender: str, form: FormData) -> Response:
    return PlainTextResponse(str(form["name"]))


async def own(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("own")(scope, receive, send)


routes.app(
    Operation(
        "POST",
        "/own",
        "own",
        "An application.",
        parameters=(Parameter("top", "query", {"type": "integer"}),),
        body={JSON: Order, "application/x-npy": {"type": "string"}},
        answers={200: DeclaredResponse("Fine.", {"text/plain": str}), **refusals({503: "Busy."})},
    ),
    own,
)
KEY = {"x-key": "right"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=list(routes))) as opened:
        yield opened


def test_parameters_are_decoded(client: TestClient) -> None:
    assert client.get("/shop/items/3?bold=true&note=x&other=1").json() == {
        "item": 3, "bold": True, "note": "x",
    }  # fmt: skip
    assert client.get("/shop/items?page=2").json() == {"page": 2, "bold": False}
    assert client.head("/shop/items").status_code == 200


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/shop/items/0", "path.item: expected `int` >= 1."),
        ("/shop/items/x", "path.item: expected `int`, got `str`."),
        ("/shop/items/1?bold=maybe", "query.bold: expected `bool`, got `str`."),
        ("/shop/items/1?note=long", "query.note: expected `str` of length <= 3."),
        ("/shop/items/1?note=%00", "query.note: must not contain the character NUL."),
        ("/shop/items?page=10", "query.page: expected `int` <= 9."),
    ],
)
def test_invalid_parameters_are_refused(client: TestClient, path: str, detail: str) -> None:
    reply = client.get(path)
    assert (reply.status_code, reply.json()) == (422, {"detail": detail})


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        ('{"number": 0}', "body.number: expected `int` >= 1."),
        ('{"number": 1e999}', "body.number: expected `int`, got `float`."),
        ("{}", "body.number: is required."),
        ('{"number": 1, "x": 2}', "body.x: there is no such field; there are number, lines, counts, password."),
        ('{"number": 1, "number": 2}', "body: the key 'number' occurs twice in one JSON object."),
        ('{"number": 1, "lines": [{"kind": "secret"}]}', "body.lines[0].kind: expected one of in, out."),
        ('{"number": 1, "counts": {"long": 1}}', "a key of body.counts: expected `str` of length <= 3."),
        ('{"number": 1, "password": "secret"}', "body.password: expected `str` of length <= 3."),
        ('{"number": 1, "password": "\\u0000"}', "body.password: must not contain the character NUL."),
        ("[]", "body: expected `object`, got `array`."),
        ("{", "body: this is not valid JSON in UTF-8."),
        ("[" * 10_000, "body: this is not valid JSON in UTF-8."),
        ('{"number": ' + "1" * 5000 + "}", "body: this is not valid JSON in UTF-8."),
        ("\udc80", "body: this is not valid JSON in UTF-8."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_invalid_bodies_are_refused(
    client: TestClient, method: str, sent: str, detail: str
) -> None:
    content = sent.encode("utf-8", "surrogateescape")
    headers = KEY | {"content-type": JSON}
    for padding in (b"", b" " * SMALL_BODY):  # read before and after the admission
        reply = client.request(method, "/shop/orders", content=content + padding, headers=headers)
        assert (reply.status_code, reply.json()) == (422, {"detail": detail})
        assert "secret" not in reply.text


def test_a_body_is_decoded_and_answered(client: TestClient) -> None:
    sent = {"number": 1, "lines": [{"kind": "in", "name": "\x00"}]}
    reply = client.post("/shop/orders", json=sent, headers=KEY)
    assert reply.status_code == 201
    assert reply.json()["lines"] == [{"kind": "in", "name": "\x00"}]
    assert client.put("/shop/orders", json=sent, headers=KEY).status_code == 204
    text = {"content-type": "text/plain"}
    assert client.post("/shop/orders", json=sent, headers=KEY | text).status_code == 422


@pytest.mark.parametrize("path", ["orders", "files", "pages"])
def test_refused_bodies_are_not_read(path: str) -> None:
    """The body would raise if it were read."""

    async def receive() -> Message:
        raise AssertionError("the body is read")

    statuses = []

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    headers = [(b"content-type", b"multipart/form-data; boundary=b"), (b"content-length", b"9")]
    scope = {
        "type": "http", "method": "POST", "path": f"/shop/{path}", "root_path": "",
        "query_string": b"", "headers": headers,
    }  # fmt: skip
    asyncio.run(Starlette(routes=list(routes))(scope, receive, send))
    assert statuses[0] == 401


def test_bodies_are_limited(client: TestClient) -> None:
    content = b" " * (MAX_BYTES + 1)
    headers = KEY | {"content-type": JSON}
    reply = client.post("/shop/orders", content=content, headers=headers)
    assert (reply.status_code, f"{MAX_BYTES:,}" in reply.text) == (413, True)


def test_forms_with_files(client: TestClient) -> None:
    many = [("first", ("a", b"1")), ("others", ("b", b"2")), ("others", ("c", b"3"))]
    reply = client.post("/shop/files", files=many, data={"depth": "3"}, headers=KEY)
    assert reply.json() == ["a", "b", "c", 3]
    twice = client.post("/shop/files", files=[*many, many[0]], headers=KEY)
    assert (twice.status_code, twice.json()["detail"]) == (422, "body.first: occurs 2 times.")
    wrong = client.post("/shop/files", files=[*many, ("x", ("d", b"4"))], headers=KEY)
    assert wrong.json()["detail"].startswith("body.x: there is no such field; there are first, ")


def test_forms_need_their_token(client: TestClient) -> None:
    for sent, status in (
        ({"csrf": "token", "name": "x"}, 200),
        ({"csrf": "guess", "name": "x"}, 403),
        ({"csrf": "guess", "name": "token"}, 403),
        ({"name": "x" * FORM_HEAD, "csrf": "token"}, 403),
    ):
        reply = client.post("/shop/pages", data=sent, headers=KEY)
        assert reply.status_code == status, sent


def test_the_description() -> None:
    document = openapi_document(
        routes.operations(), title="Shop", version="1", description="A shop."
    )
    json.dumps(document)
    paths = document["paths"]
    assert set(paths) == {f"/shop/{p}" for p in ("items/{item}", "items", "orders", "files", "own")}
    described = paths["/shop/items/{item}"]["get"]
    assert described["summary"] == "Return an item."
    assert described["description"] == "More about items."
    assert [(p["in"], p["name"], p["required"]) for p in described["parameters"]] == [
        ("path", "item", True), ("query", "bold", False), ("query", "note", False),
    ]  # fmt: skip
    assert described["parameters"][0]["schema"]["maximum"] == 9
    stored = paths["/shop/orders"]["post"]
    assert stored["tags"] == ["orders"]
    assert set(stored["responses"]) == {"201", "401", "422"}
    body = stored["requestBody"]["content"][JSON]["schema"]
    assert body == {"$ref": "#/components/schemas/Order"}
    assert document["components"]["schemas"]["Order"]["required"] == ["number"]
    assert ErrorMessage.__name__ in document["components"]["schemas"]
    upload = paths["/shop/files"]["post"]["requestBody"]["content"]
    assert list(upload) == ["multipart/form-data"]
    assert set(paths["/shop/own"]["post"]["responses"]) == {"200", "503"}


def test_an_application_has_its_own_endpoint(client: TestClient) -> None:
    assert client.post("/shop/own").text == "own"
