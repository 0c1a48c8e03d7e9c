"""The OpenAPI 3.1 document of a server, from the descriptions of its routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct
from msgspec.json import schema_components

JSON = "application/json"
Json = dict[str, Any]
Content = Mapping[str, Any]  # media types, each with a type, or with a JSON schema as a mapping


class ErrorMessage(Struct):
    """A refused or failed request: `detail` says in one line what is wrong, and where."""

    detail: str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a route; `kind` is a type or a JSON schema."""

    name: str
    location: Literal["path", "query", "header"]
    kind: Any
    required: bool = False
    description: str = ""


@dataclass(frozen=True)
class DeclaredResponse:
    """What a status means, and the content of the answer by media type."""

    description: str
    content: Content = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)


def refusals(
    meanings: Mapping[int, str], message: type[Struct] = ErrorMessage
) -> dict[int, DeclaredResponse]:
    """Return the answers to refused requests, by status."""
    return {status: DeclaredResponse(text, {JSON: message}) for status, text in meanings.items()}


@dataclass(frozen=True)
class Operation:
    """The description of a route."""

    method: str
    path: str
    name: str
    summary: str
    description: str = ""
    tag: str | None = None
    parameters: tuple[Parameter, ...] = ()
    body: Content = field(default_factory=dict)
    answers: Mapping[int, DeclaredResponse] = field(default_factory=dict)
    security: tuple[str, ...] = ()

    def contents(self) -> Iterator[Content]:
        """Yield the content of the body, and of the answers."""
        yield self.body
        for answer in self.answers.values():
            yield answer.content


def openapi_document(
    operations: Iterable[Operation],
    *,
    title: str,
    version: str,
    description: str,
    security: Mapping[str, Any] | None = None,
) -> Json:
    """Return the document; `security` are the security schemes that operations name."""
    operations = list(operations)
    schemas = _Schemas(operations)
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(
            operation, schemas
        )
    components: Json = {"schemas": schemas.components}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": description},
        "paths": paths,
        "components": components | ({"securitySchemes": dict(security)} if security else {}),
    }


class _Schemas:
    """The schemas of the types of all operations; those of structs are shared components."""

    def __init__(self, operations: list[Operation]) -> None:
        kinds = [p.kind for operation in operations for p in operation.parameters]
        for operation in operations:
            for content in operation.contents():
                kinds += content.values()
        self._kinds = [kind for kind in kinds if not isinstance(kind, Mapping)]
        schemas, self.components = schema_components(
            self._kinds, schema_hook=_other_schema, ref_template="#/components/schemas/{name}"
        )
        self._schemas = {id(kind): s for kind, s in zip(self._kinds, schemas, strict=True)}

    def of(self, kind: Any) -> Json:
        return dict(kind) if isinstance(kind, Mapping) else self._schemas[id(kind)]

    def content(self, content: Content) -> Json:
        return {media: {"schema": self.of(kind)} for media, kind in content.items()}


def _other_schema(kind: type) -> Json:
    """Return the schema of a type that msgspec does not know: that of a file, or of anything."""
    return {"type": "string", "format": "binary"} if kind.__name__ == "UploadFile" else {}


def _described(operation: Operation, schemas: _Schemas) -> Json:
    record: Json = {"operationId": operation.name, "summary": operation.summary}
    if operation.description:
        record["description"] = operation.description
    if operation.tag is not None:
        record["tags"] = [operation.tag]
    if operation.security:
        record["security"] = [{name: []} for name in operation.security]
    if operation.parameters:
        record["parameters"] = [_parameter(p, schemas) for p in operation.parameters]
    if operation.body:
        record["requestBody"] = {"required": True, "content": schemas.content(operation.body)}
    record["responses"] = {
        str(status): {
            "description": answer.description,
            **({"content": schemas.content(answer.content)} if answer.content else {}),
            **({"headers": dict(answer.headers)} if answer.headers else {}),
        }
        for status, answer in sorted(operation.answers.items())
    }
    return record


def _parameter(parameter: Parameter, schemas: _Schemas) -> Json:
    described = {"description": parameter.description} if parameter.description else {}
    return {
        "in": parameter.location,
        "name": parameter.name,
        "required": parameter.required,
        "schema": schemas.of(parameter.kind),
        **described,
    }
