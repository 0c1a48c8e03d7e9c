"""Static files of all servers: the shared look, and the files of a server's own."""

from __future__ import annotations

from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

SHARED_FOLDER = Path(__file__).parent / "static"


class CachedStaticFiles(StaticFiles):
    """The files of folders, which browsers cache forever: `url` changes with their contents.

    Parameters
    ----------
    folders : path
        The folders, in addition to the shared one; the files of all have distinct names.

    Attributes
    ----------
    url : str
        `/static/` with a digest of all files.
    """

    def __init__(self, *folders: Path) -> None:
        super().__init__(directory=SHARED_FOLDER)
        self.all_directories = [SHARED_FOLDER, *folders]
        digest = sha256()
        for folder in (SHARED_FOLDER, *folders):
            for path in sorted(folder.iterdir()):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
        self.url = f"/static/{digest.hexdigest()[:12]}"

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope,
        status_code: int = 200,
    ) -> Response:  # fmt: skip
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response
