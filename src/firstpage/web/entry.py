"""Coming in: log in, accept an invitation, set a password.  The API and the pages share this."""

from __future__ import annotations

from firstpage.errors import FirstpageError
from firstpage.web.store import attempts, audit, logins, people
from firstpage.web.store.connect import Store
from firstpage.web.store.logins import Login

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
