"""Grades of a list's items: a measure is learned from them, and who judges must not see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GRADE = "grade"  # of an item; a whole number, absent or None where nobody has judged it
IDS = ("document", "docid", "doc_id", "docno", "document_id", "id")  # of an item


def items_of(fields: Any) -> list[dict[str, Any]]:
    """The items that the fields of a list hold."""
    items = fields.get("items") if isinstance(fields, dict) else None
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def grades_of(fields: Any) -> tuple[int | None, ...]:
    """From the first place on."""
    return tuple(item.get(GRADE) for item in items_of(fields))


def without_grade(item: Any) -> Any:
    """An item as it is shown: a grade would bias who sees it."""
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if name != GRADE}


def with_grades(fields: Any, known: Mapping[str, int]) -> tuple[Any, int]:
    """Return the fields of a list whose items have the grades of their ids; how many have one."""
    found = [_graded(item, known) for item in items_of(fields)]
    hits = sum(new for _, new in found)
    return ({**fields, "items": [item for item, _ in found]} if hits else fields), hits


def _graded(item: dict[str, Any], known: Mapping[str, int]) -> tuple[dict[str, Any], bool]:
    found = known.get(item_id(item) or "")
    return (item, False) if found is None else ({**item, GRADE: found}, True)


def item_id(item: Mapping[str, Any], names: Sequence[str] = IDS) -> str | None:
    """What an item is called, if it has a name."""
    return next((str(item[name]) for name in names if item.get(name) not in (None, "")), None)
