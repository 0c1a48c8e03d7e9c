"""Coming in: log in, accept an invitation, set a password.  The API and the pages share this."""

from __future__ import annotations

from firstpage.errors import DataError, FirstpageError
from firstpage.web.store import attempts, audit, invitations, logins, people
from firstpage.web.store.connect import Store
from firstpage.web.store.logins import Login
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project

WRONG = "This login and password do not fit together."


class WrongLogin(FirstpageError):
    """No such login, or another password; which of them is not said."""


def log_in(
    store: Store, login: str, password: str, address: str, before: Login | None = None
) -> tuple[str, Login]:
    """A new session and its token; one that the browser had `before` ends.

    The password is checked outside any transaction: it is slow by design.  The attempt is
    written down first, so that many at once do not slip through, and taken back if it was right.
    """
    login = login.strip()[:100]
    with store.write() as tx:
        attempts.check(tx, login, address)
        attempts.failed(tx, login, address)
        person = people.by_login(tx, login)
        known = None if person is None else people.password_hash(tx, person.id)
    if not people.fits(password, known) or person is None:
        with store.write() as tx:
            audit.note(tx, "login failed", person=person.id if person else None, address=address)
        raise WrongLogin(WRONG)
    with store.write() as tx:
        attempts.forget(tx, login)
        if before is not None:
            logins.end(tx, before.id)
        audit.note(tx, "logged in", person=person.id, address=address)
        return logins.start(tx, person)


def accept(
    store: Store, token: str, *, login: str = "", name: str = "", password: str = "",
    person: Person | None = None,
) -> tuple[str | None, Project | None]:  # fmt: skip
    """Take up an invitation as `person`, or with a new account, which is then logged in.

    The new session's token (None for somebody who was logged in), and the project joined.
    """
    with store.read() as tx:
        invitations.look(tx, token, "join")  # before the slow hash
    known = None if person is not None else people.hashed(password)
    with store.write() as tx:
        offer = invitations.look(tx, token, "join")
        who = person or people.create(tx, login, name, known)
        project = invitations.join(tx, offer, who)
        return (None if person else logins.start(tx, who)[0]), project


def reset(store: Store, token: str, password: str) -> None:
    """Set a new password by a link; all sessions of the account end."""
    with store.read() as tx:
        invitations.look(tx, token, "reset")
    known = people.hashed(password)
    with store.write() as tx:
        offer = invitations.look(tx, token, "reset")
        person = people.get(tx, offer.person or 0)
        if person is None:
            raise DataError(invitations.OVER)
        invitations.use(tx, offer, person)
        people.set_password(tx, person, known)
        logins.end_all(tx, person.id)


def change_password(store: Store, login: Login, old: str, new: str, address: str) -> None:
    """By the person, who must know the old one; other sessions end.  Guessing is limited too."""
    who = login.person
    with store.write() as tx:
        attempts.check(tx, who.login, address)
        attempts.failed(tx, who.login, address)
        known = people.password_hash(tx, who.id)
    if not people.fits(old, known):
        raise DataError("the old password is not this one.")
    fresh = people.hashed(new)
    with store.write() as tx:
        attempts.forget(tx, who.login)
        people.set_password(tx, who, fresh)
        logins.end_all(tx, who.id, but=login.id)
