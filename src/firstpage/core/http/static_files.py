"""Static files for pages: few, compressed, in memory, and cached by browsers forever."""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from firstpage.core.http.modules import bundled

SHARED_FOLDER = Path(__file__).parent / "static"
GZIP = re.compile(r"(?:^|,)\s*(?:gzip|\*)\s*(?:,|$|;\s*q=(?!0(?:\.0*)?\s*(?:,|$)))")  # not q=0
CACHED = {
    "cache-control": "public, max-age=31536000, immutable",
    "vary": "accept-encoding",
}


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
