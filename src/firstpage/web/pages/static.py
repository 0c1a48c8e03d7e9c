"""Scripts and styles, under an address that changes with them: so browsers may keep them."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parents[1] / "static"


@cache
def address() -> str:
    """`/static/` and a digest of all files; modules find each other beside themselves."""
    digest = sha256()
    for path in sorted(FOLDER.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"/static/{digest.hexdigest()[:12]}"


class Files(StaticFiles):
    """Files that a browser need not ask for twice."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope,
        status_code: int = 200,
    ) -> Response:  # fmt: skip
        found = super().file_response(full_path, stat_result, scope, status_code)
        found.headers["cache-control"] = "public, max-age=31536000, immutable"
        return found
