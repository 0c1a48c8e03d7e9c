"""docs/api.md."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from firstpage.table import Table


def api_page() -> str:
    from firstpage.web.api.reference import HEAD, rows
    from firstpage.web.app import create_app
    from firstpage.web.store.connect import Store

    with TemporaryDirectory() as folder:
        store = Store(folder)
        found = list(rows(create_app(store).openapi()))
        store.close()
    table = [(f"`{route}`", *rest) for route, *rest in found]
    return (
        "# The HTTP API of the labeling application\n\n"
        "Made by `make docs` from its OpenAPI description, which a running server tells at `/api/v1/openapi.json`; "
        "`/api/v1/docs` shows this table.\n\n"
        "Sign in by `POST login`: the cookie is the session, and every change carries the header `X-CSRF-Token` that `login` and `me` tell. "
        "A star marks what must be sent. What one may not see is not there (404). An answer with a sequence number that is used gets 409 and the present state; the same key again gets 200 and is kept once.\n\n"
        + Table(HEAD, table, left_aligned=len(HEAD)).markdown()
        + "\n"
    )
