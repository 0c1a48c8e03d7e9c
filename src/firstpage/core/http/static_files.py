"""Static files for pages: few, compressed, in memory, and cached by browsers forever."""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

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


SHARED_FOLDER = Path(__file__).parent / "static"
GZIP = re.compile(r"(?:^|,)\s*(?:gzip|\*)\s*(?:,|$|;\s*q=(?!0(?:\.0*)?\s*(?:,|$)))")  # not q=0
CACHED = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}


class CachedStaticFiles:
    """An application that serves the files of folders; `url` changes with their contents.

    A script contains the modules that it imports, so that a page needs one request for it.

    Parameters
    ----------
    folders : path
        The folders, in addition to the shared one; the files of all have distinct names.
    sheets : mapping, optional
        Further style sheets, each with the names of the files that it joins.

    Attributes
    ----------
    url : str
        `/static/` with a digest of all files.
    """

    def __init__(self, *folders: Path, sheets: Mapping[str, Sequence[str]] | None = None) -> None:
        sources = {
            path.name: path.read_bytes()
            for folder in (SHARED_FOLDER, *folders)
            for path in sorted(folder.iterdir())
        }
        for name, parts in (sheets or {}).items():
            sources[name] = b"\n".join(sources[part] for part in parts)
        scripts = {name: data.decode() for name, data in sources.items() if name.endswith(".js")}
        contents = sources | {name: bundled(scripts, name).encode() for name in scripts}
        digest = sha256()
        for name, data in contents.items():
            digest.update(name.encode() + b"\0" + data)
        self.url = f"/static/{digest.hexdigest()[:12]}"
        self._responses = {f"/{name}": _responses(name, data) for name, data in contents.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a file, compressed if the browser accepts that."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        plain, compressed = self._responses.get(path, (None, None))
        response: Response | None = plain
        if GZIP.search(Headers(scope=scope).get("accept-encoding", "")):
            response = compressed
        if response is None:
            response = PlainTextResponse("There is no such file.", 404)
        elif scope["method"] not in ("GET", "HEAD"):
            response = PlainTextResponse("Files are only read.", 405, {"allow": "GET, HEAD"})
        await response(scope, receive, send)


def _responses(name: str, data: bytes) -> tuple[Response, Response]:
    """Return the response with a file, as it is and compressed."""
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind in ("text/javascript", "application/javascript"):
        kind = "text/javascript"
    plain = Response(data, media_type=kind, headers=CACHED)
    compressed = Response(gzip.compress(data, 9, mtime=0), media_type=kind, headers=CACHED)
    compressed.headers["content-encoding"] = "gzip"
    return plain, compressed
