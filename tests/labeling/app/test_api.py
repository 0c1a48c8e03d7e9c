"""Requests generated from the OpenAPI description never cause a server error."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from schemathesis.core.result import Ok

from firstpage.labeling.app.security import COOKIE
from firstpage.labeling.app.store.connect import Store
from tests.labeling.app.site import HOST, Site
from tests.narrow import instance

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error

EXAMPLES = 3  # per route


@pytest.mark.filterwarnings("ignore")
def test_no_request_is_a_server_error(site: Site, tmp_path: Path, fresh: Path) -> None:
    """A lead and an assessor send the same requests, each to an application of their own."""
    shutil.copytree(fresh, tmp_path / "other")
    other = Site(Store(tmp_path / "other", site.clock), site.clock)
    senders = [_sender(site, "lena"), _sender(other, "ada")]
    schema = schemathesis.openapi.from_asgi(
        "/api/v1/openapi.json", site.app, headers={"Host": HOST}
    )
    tried = 0
    for result in schema.get_all_operations():
        operation: Any = instance(Ok, result).ok()
        if operation.path.endswith("/logout"):
            continue  # later requests would be anonymous

        tried += _try(operation, senders)
    other.close()
    assert tried > 100


def _sender(site: Site, login: str) -> dict[str, Any]:
    """Return the options of a request that a person sends to a site with a project."""
    site.project()
    client = site.client(login)
    headers = {
        "X-CSRF-Token": client.headers["X-CSRF-Token"],
        "Cookie": f"{COOKIE}={client.cookies[COOKIE]}",
        "Host": HOST,
    }
    return {"app": site.app, "headers": headers}


def _try(operation: Any, senders: list[dict[str, Any]]) -> int:
    """Send requests that Hypothesis generates for a route, with existing ids where they fit."""
    from hypothesis import given

    count = 0

    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def run(case: Any) -> None:
        nonlocal count
        if "slug" in case.path_parameters and count % 2:
            case.path_parameters["slug"] = "books"
        if "task" in case.path_parameters and count % 2:
            case.path_parameters["task"] = 1
        count += 1
        for sender in senders:
            case.call_and_validate(**sender, checks=[not_a_server_error])

    run()
    return count
