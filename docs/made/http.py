"""docs/api.md."""

from __future__ import annotations

from firstpage.core import Table

HEADER = """\
# HTTP API of the labeling application

A running server describes its API at `/api/v1/openapi.json`, and shows the table below at
`/api/v1/docs`.

- **Sign in** with `POST /api/v1/login`, which sets the session cookie. Every change must send the
  header `X-CSRF-Token` with the token that `login` and `me` return. A program sends its
  [API token](label-programs.md#give-a-program-an-api-token) instead, as `Authorization: Bearer`.
- **Fields** marked with * are required, and those with ? are query parameters.
- **Access.** A resource that you may not see returns 404.
- **Answers** have a sequence number and a key. A sequence number that is already used returns 409
  and the current state. Sending the same key again returns 200, and the answer is stored once.

`make docs` generates this page from the OpenAPI description.

"""


def api_page() -> str:
    from firstpage.labeling.app.api import HEAD, description, rows

    table = [(f"`{route}`", *rest) for route, *rest in rows(description())]
    return HEADER + Table(HEAD, table, left_aligned=len(HEAD)).markdown() + "\n"
