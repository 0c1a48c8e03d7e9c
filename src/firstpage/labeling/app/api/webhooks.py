"""The webhook of a project: its address, and what became of its messages."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from firstpage.labeling.app.admission import LEAD, api_routes
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import settings_of, store_of
from firstpage.labeling.app.store import Member, webhooks
from firstpage.labeling.app.store.sessions import NotFound
from firstpage.labeling.app.webhooks import check_public

routes = api_routes("projects", admit=LEAD)


@routes.get("/projects/{slug}/webhook")
def webhook(request: Request, member: Member) -> dict[str, Any]:
    """Return the address of the project's webhook, or null, and its last messages."""
    with store_of(request).read() as tx:
        hook = webhooks.find(tx, member.project.id)
        messages = webhooks.recent(tx, member.project.id)
    return {"url": hook.url if hook else None, "messages": messages}


@routes.put("/projects/{slug}/webhook")
def set_webhook(request: Request, member: Member, body: bodies.WebhookBody) -> dict[str, Any]:
    """Set the address; the response is the only one with the secret that signs the messages."""
    check_public(body.url, settings_of(request).private_webhooks)
    with store_of(request).write() as tx:
        hook = webhooks.put(tx, member.project, body.url, member.person)
    return {"url": hook.url, "secret": hook.secret}


@routes.delete("/projects/{slug}/webhook", status=204)
def remove_webhook(request: Request, member: Member) -> None:
    """Remove the webhook, with the messages that were not sent yet."""
    with store_of(request).write() as tx:
        if not webhooks.remove(tx, member.project, member.person):
            raise NotFound("this project has no webhook.")
