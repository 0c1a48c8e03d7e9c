"""`firstpage label serve --open`: a single user without an account, with the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.labeling.app.browser.actions import answer, submit
from tests.labeling.app.browser.test_lead import texts
from tests.patience import PATIENCE


def test_a_single_user_from_set_up_to_a_judgment(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "firstpage", "label", "serve", str(tmp_path / "mine")]
    process = subprocess.Popen(
        [*command, "--open", "--port", "0"], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    context = browser.new_context()
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        page = context.new_page()
        page.goto(address)
        page.get_by_role("link", name="New project").click()
        assert page.get_by_role("button", name="Sign out").count() == 0
        page.get_by_label("Title").fill("Mine")
        page.get_by_role("button", name="Create project").click()
        page.get_by_label("Documents", exact=True).set_input_files(texts(tmp_path)["documents"])
        submit(page, "Import")
        page.get_by_role("link", name="Assign and open").click()
        submit(page, "Assign and open the project")
        page.get_by_role("link", name="My queries").click()
        page.get_by_role("link", name="Start", exact=True).click()
        answer(page, "ArrowLeft")
        expect(page.locator("#progress")).to_contain_text("1 judged")
        stranger = browser.new_context().new_page()
        stranger.goto(address)
        expect(stranger.get_by_role("heading", name="Mine")).to_have_count(0)
        stranger.context.close()
    finally:
        context.close()
        process.terminate()
        process.communicate(timeout=PATIENCE)
