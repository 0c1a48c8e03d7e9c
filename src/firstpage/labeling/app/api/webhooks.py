"""The webhook of a project: its address, and what became of its messages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from firstpage.labeling.app.admission import AdmissionRoute
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import Lead, csrf_header, settings_of, store_of
from firstpage.labeling.app.store import webhooks
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.sessions import NotFound
from firstpage.labeling.app.webhooks import check_public

router = APIRouter(tags=["projects"], route_class=AdmissionRoute)
Changing = Annotated[Login, Depends(csrf_header)]


@router.get("/projects/{slug}/webhook")
def webhook(request: Request, member: Lead) -> dict[str, Any]:
    """Return the address of the project's webhook, or null, and its last messages."""
    with store_of(request).read() as tx:
        hook = webhooks.find(tx, member.project.id)
        messages = webhooks.recent(tx, member.project.id)
    return {"url": hook.url if hook else None, "messages": messages}


@router.put("/projects/{slug}/webhook")
def set_webhook(
    request: Request, member: Lead, body: bodies.WebhookBody, login: Changing
) -> dict[str, Any]:
    """Set the address; the response is the only one with the secret that signs the messages."""
    check_public(body.url, settings_of(request).private_webhooks)
    with store_of(request).write() as tx:
        hook = webhooks.put(tx, member.project, body.url, login.person)
    return {"url": hook.url, "secret": hook.secret}


@router.delete("/projects/{slug}/webhook", status_code=204)
def remove_webhook(request: Request, member: Lead, login: Changing) -> None:
    """Remove the webhook, with the messages that were not sent yet."""
    with store_of(request).write() as tx:
        if not webhooks.remove(tx, member.project, login.person):
            raise NotFound("this project has no webhook.")
