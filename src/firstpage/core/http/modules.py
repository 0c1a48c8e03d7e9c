"""Joins a script with the modules that it imports, so that a browser loads one file.

Each module becomes a function that returns what the module exports.  Modules use a part of the
syntax only: imports from one folder, one per line; exported functions, classes and constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

IMPORT = re.compile(
    r'^import (?:\* as (?P<all>\w+)|(?P<some>\{[^}]*\})) from "\./(?P<name>[\w-]+\.js)";$',
    re.MULTILINE,
)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
UNSUPPORTED = re.compile(r"^(?:import|export)\b.*|\bimport\(.*", re.MULTILINE)


def bundled(scripts: Mapping[str, str], name: str) -> str:
    """Return a script together with the modules that it imports, directly or not."""
    modules = list(dict.fromkeys(_imported(scripts, name, ())))
    parts = [_module(module, scripts[module]) for module in modules]
    return "".join([*parts, _without_imports(name, scripts[name])])


def _imported(scripts: Mapping[str, str], name: str, importers: tuple[str, ...]) -> Iterator[str]:
    """Yield the modules that a script imports, each after those that it imports itself."""
    if name in importers:
        raise ValueError(f"{name}: modules import each other: {', '.join(importers)}")
    for match in IMPORT.finditer(scripts[name]):
        yield from _imported(scripts, match["name"], (*importers, name))
        yield match["name"]


def _module(name: str, source: str) -> str:
    """Return the definition of a module's exports."""
    exports = ", ".join(EXPORT.findall(source))
    body = _without_imports(name, EXPORT.sub("", source))
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"


def _without_imports(name: str, source: str) -> str:
    """Return a source that takes what it imports from the modules before it."""
    source = IMPORT.sub(
        lambda match: (
            f"const {match['all'] or _renamed(match['some'])} = {_variable(match['name'])};"
        ),
        source,
    )
    unsupported = UNSUPPORTED.search(EXPORT.sub("", source))
    if unsupported:
        raise ValueError(f"{name}: cannot be bundled: {unsupported[0]}")
    return source


def _renamed(names: str) -> str:
    """Return the names of an import as those of a destructuring assignment."""
    return re.sub(r"\bas\b", ":", names)


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))
