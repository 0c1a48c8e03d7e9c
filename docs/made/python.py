"""docs/python.md: every public name, with what its docstring says."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import firstpage as fp
from firstpage.rankers.ranker import Ranker

# In the order of the loop.
PARTS = {
    "Data and truth": ("data", "Files of the field as one `Dataset`, and what is known of its documents."),
    "A collection to try": ("demo", "Real texts and questions, without a download."),
    "Label": ("labeling", "Few questions, and the ordered top k of each query."),
    "Train": ("rankers", "All take `fit(train, valid=None)` or `fit(X, y, qid=qid)`."),
    "Export": ("interop.export", "Models in search engines and elsewhere: [the manual](export.md)."),
    "Import": ("interop.read", "Models, judgments, feature logs and clicks of other programs."),
    "Losses": ("losses", "What rankers minimize, by name."),
    "Evaluate and compare": ("measures", "[All measures](measures.md), [conventions](conventions.md)."),
    "Learn the measure": ("dcglearn", "Gains and discounts from preferences over rankings."),
    "Aggregate": ("aggregation", "Several rankings into one."),
    "Theory": ("papers.theory", "Is a loss top-k order sensitive, and consistent?"),
    "Errors": ("errors", "One line for a person each; all are `FirstpageError`."),
}  # fmt: skip
LONG = 88  # characters from which on a signature has a line for each parameter


def python_page() -> str:
    lines = [
        "# Python",
        "",
        "Made by `make docs` from the docstrings. `import firstpage as fp` loads nothing; each name is fetched when it is first used.",
        "",
        " · ".join(f"[{title}](#{title.lower().replace(' ', '-')})" for title in PARTS),
        "",
    ]
    for title, (package, about) in PARTS.items():
        lines += [f"## {title}", "", about, ""]
        if package == "rankers":
            lines += _class("Ranker", Ranker, "What all rankers share.")
        for name in _names(package):
            lines += _described(name, getattr(fp, name))
    return "\n".join(lines).rstrip() + "\n"


def _names(package: str) -> list[str]:
    """Classes first, then functions, by name."""
    found = [n for n, where in fp._MODULE_OF.items() if f"{where}.".startswith(f"{package}.")]
    return sorted(found, key=lambda n: (not inspect.isclass(getattr(fp, n)), n.casefold()))


def _described(name: str, found: Any) -> list[str]:
    if inspect.isclass(found):
        return _class(name, found)
    return [f"### `fp.{name}`", "", *_code(_signature(name, found)), *_doc(found)]


def _class(name: str, found: type, about: str = "") -> list[str]:
    head = f"### `fp.{name}`" if name in fp.__all__ else f"### {name}"
    lines = [head, ""]
    if not issubclass(found, Exception | Warning) and name in fp.__all__:
        lines += _code(_signature(name, found))
    lines += [about, ""] if about else []
    lines += _doc(found)
    rows = [f"- {row}" for row in _members(found)]
    return [*lines, *rows, ""] if rows else lines


def _members(found: type) -> Iterator[str]:
    """What the class itself adds: methods with their first lines, and properties."""
    fields = (
        {f.name for f in dataclasses.fields(found)} if dataclasses.is_dataclass(found) else set()
    )
    for name, member in vars(found).items():
        if (
            name.startswith("_")
            or name in fields
            or (name.startswith("set_") and "request" in name)
        ):
            continue
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        said = _first_line(plain)
        if inspect.isfunction(plain):
            yield f"`{_signature(name, plain, method=not isinstance(member, staticmethod))}`" + said
        elif isinstance(member, property) or hasattr(member, "func"):
            yield f"`{name}`" + _first_line(getattr(member, "func", member))


def _first_line(member: Any) -> str:
    said = inspect.getdoc(member) or ""
    whole = said.split("\n\n")[0].replace("\n", " ").strip()
    return f": {whole}" if whole else ""


def _doc(found: Any) -> list[str]:
    """The first paragraph as it is; lists of parameters and the rest keep their lines."""
    said = (found.__doc__ and inspect.cleandoc(found.__doc__)) or ""
    if not said or said.startswith(f"{getattr(found, '__name__', '')}("):  # a dataclass's own
        return []
    first, _, rest = said.partition("\n\n")
    return [first, "", *(["```text", rest, "```", ""] if rest else [])]


def _code(text: str) -> list[str]:
    return ["```text", text, "```", ""]


def _signature(name: str, found: Any, method: bool = False) -> str:
    signature = inspect.signature(found)
    parameters = list(signature.parameters.values())[1 if method else 0 :]
    parts = list[str]()
    for p in parameters:
        if (
            p.kind is p.KEYWORD_ONLY
            and "*" not in parts
            and not any(x.startswith("*") for x in parts)
        ):
            parts.append("*")
        parts.append(_parameter(p))
    back = signature.return_annotation
    arrow = "" if back is signature.empty or inspect.isclass(found) else f" -> {_type(back)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    if method or len(line) <= LONG:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"


def _parameter(p: inspect.Parameter) -> str:
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    text = star + p.name
    if p.annotation is not p.empty:
        text += f": {_type(p.annotation)}"
    if p.default is not p.empty:
        text += (
            f" = {_default(p.default)}"
            if p.annotation is not p.empty
            else f"={_default(p.default)}"
        )
    return text


def _type(annotation: Any) -> str:
    return (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )


def _default(value: Any) -> str:
    """Defaults that have no short text of their own are told by their kind."""
    text = repr(value)
    return "..." if " at 0x" in text or "<factory>" in text else text
