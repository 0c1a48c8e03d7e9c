"""The application for the reader: to judge a few questions first, or to look around after."""

from __future__ import annotations

from firstpage.demo import project as desk
from firstpage.demo.folder import Folder
from firstpage.demo.labelling import YOURS
from firstpage.demo.tell import Teller
from firstpage.web.app import LOCAL
from firstpage.web.security import ServeSettings
from firstpage.web.serve import serve
from firstpage.web.store.connect import Store
from firstpage.web.store.projects import Project

HOST = "127.0.0.1"


def let_judge(store: Store, project: Project, folder: Folder, port: int, teller: Teller) -> None:
    """Until the reader has judged their questions, or presses Ctrl-C."""
    teller.note(
        f"Judge {YOURS} questions in your browser; Ctrl-C goes on with what you have judged."
    )

    def ready() -> bool:
        return len(desk.finished(store, project, LOCAL)) >= YOURS

    try:
        serve(folder.path, HOST, port, ServeSettings(open=True), until=ready)
    except KeyboardInterrupt:
        teller.say("")
    done = desk.finished(store, project, LOCAL)
    teller.note(f"You judged {len(done)} of {YOURS} questions; assessors do the rest.")


def keep_up(folder: Folder, port: int, teller: Teller) -> None:
    """Until Ctrl-C."""
    teller.say("\nThe application is up with these data; Ctrl-C stops it.")
    try:
        serve(folder.path, HOST, port, ServeSettings(open=True))
    except KeyboardInterrupt:
        teller.say("")
    teller.say(f"Stopped. Again: firstpage label serve {folder.path} --open")
