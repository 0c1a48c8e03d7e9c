"""Bodies in JSON as JSON Schema: what may be asked of a model, and what it answers."""

from __future__ import annotations

from typing import Any

from firstpage.serving.asked import REASONS
from firstpage.serving.limits import Limits

Told = dict[str, Any]
TEXT: Told = {"type": "string"}
COUNT: Told = {"type": "integer", "minimum": 0}
NUMBER: Told = {"type": "number"}
ID: Told = {
    "anyOf": [TEXT, {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1}],
    "description": "A text or a whole number.",
}
WISHES: Told = {
    "explain": {
        "anyOf": [{"type": "boolean"}, COUNT],
        "default": False,
        "description": f"Features named for every candidate in the answer; true: {REASONS}.",
    },
    "top": {
        "type": ["integer", "null"], "minimum": 1, "description": "The first so many of a query.",
    },
}  # fmt: skip
DETAIL: Told = {"detail": {**TEXT, "description": "One line."}}


def ref(name: str) -> Told:
    return {"$ref": f"#/components/schemas/{name}"}


def schemas(names: tuple[str, ...] | None, limits: Limits) -> Told:
    """Without a model nothing is known of the features."""
    queries = _list(ref("QueryOfBatch"), 1, limits.queries)
    query = {
        "query": {"anyOf": [*ID["anyOf"], {"type": "null"}]},
        "candidates": _list(ref("Candidate"), 1, limits.candidates),
    }
    return {
        "Features": _features(names),
        "Candidate": _closed({"id": ID, "features": ref("Features")}, "features"),
        "Query": _closed({**query, **WISHES}, "candidates"),
        "QueryOfBatch": _closed(query, "candidates"),
        "Batch": {"anyOf": [queries, _closed({"queries": queries, **WISHES}, "queries")]},
        **_answers(),
        "Health": _object(
            {
                "status": {
                    "enum": ["ok", "degraded", "no model"],
                    "description": "degraded: the file there is refused, and an older model ranks.",
                },
                "file": TEXT, "model": TEXT, "digest": TEXT,
                "since": NUMBER, "reloads": COUNT, "refused": {"type": ["string", "null"]},
            },
            "status", "file", "reloads", "refused",
        ),
        "Model": _object(
            {
                "ranker": TEXT, "digest": TEXT, "parameters": {"type": "object"},
                "features": _object({"count": COUNT, "names": _list(TEXT)}, "count", "names"),
                "normalize": {"type": ["object", "null"]}, "by_query": {"type": "boolean"},
                "training": {"type": "object"},
            },
            "ranker", "digest", "parameters", "features", "normalize", "by_query", "training",
        ),
        "Description": {"type": "object"},
        "Reloaded": _object({"digest": TEXT, **_reload()}, "digest", *_reload()),
        "NotReloaded": _object({**DETAIL, **_reload()}, "detail", *_reload()),
        "Refusal": _object(DETAIL, "detail"),
    }  # fmt: skip


def _closed(fields: Told, *needed: str) -> Told:
    """An object of a request: a field that it does not know is refused."""
    return {**_object(fields, *needed), "additionalProperties": False}


def _reload() -> Told:
    """The models before and after a look at the file, and what became of it."""
    model = _object({
        "digest": TEXT, "ranker": {"type": ["string", "null"]},
        "features": {"type": ["integer", "null"], "minimum": 0},
    }, "digest", "ranker", "features")  # fmt: skip
    either = {"anyOf": [model, {"type": "null"}]}
    changes = _object({"added": _list(TEXT), "removed": _list(TEXT)}, "added", "removed")
    return {
        "accepted": {"type": "boolean"}, "changed": {"type": "boolean"},
        "refused": {"type": ["string", "null"]}, "old": either, "new": either,
        "features": changes, "reloads": COUNT,
    }  # fmt: skip


def _features(names: tuple[str, ...] | None) -> Told:
    by_name: Told = {"type": "object", "description": "By name; others are ignored."}
    by_place = _list(NUMBER)
    if names is not None:
        by_name |= {
            "required": list(dict.fromkeys(names)),
            "properties": dict.fromkeys(names, NUMBER),
        }
        by_place |= {"minItems": len(names), "maxItems": len(names)}
    by_place["description"] = "In the model's order, as GET /model shows it."
    return {"anyOf": [by_name, by_place]}


def _answers() -> Told:
    part = _object({"feature": TEXT, "voter": TEXT, "value": NUMBER, "part": NUMBER}, "part")
    reasons = _object({"base": NUMBER, "parts": _list(part)}, "parts")
    answer = {
        "query": {"anyOf": [*ID["anyOf"], {"type": "null"}]},
        "order": {**_list(ID), "description": "Ids, or places from 0 on; the best first."},
        "scores": {**_list(NUMBER), "description": "In the order of `order`."},
        "explanations": _list(reasons),
    }
    named = {
        "model": {**TEXT, "description": "The sha256 of the model's file."},
        "explained": {**TEXT, "description": "What the parts are."},
    }
    needed = ("query", "order", "scores")
    return {
        "Answer": _object({**named, **answer}, "model", *needed),
        "Answers": _object(
            {**named, "answers": _list(_object(answer, *needed))}, "model", "answers"
        ),
    }


def _object(properties: Told, *required: str) -> Told:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(items: Told, least: int | None = None, most: int | None = None) -> Told:
    sizes = {"minItems": least, "maxItems": most}
    return {"type": "array", "items": items, **{k: v for k, v in sizes.items() if v is not None}}
