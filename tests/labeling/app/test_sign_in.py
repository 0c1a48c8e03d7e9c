"""Sign-in under attack: bounded memory, no blocked requests, no locked-out owners."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from firstpage.core.errors import DataError
from firstpage.labeling.app import sign_in
from firstpage.labeling.app.app import create_app
from firstpage.labeling.app.pages.sign_in import routes as sign_in_routes
from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.sign_in import SignInBusy, SignInPool
from firstpage.labeling.app.store import attempts, invitations, people, projects
from firstpage.labeling.app.store.attempts import RequestSource, network
from firstpage.labeling.app.store.failures import Busy
from tests.labeling.app.served import browser, served
from tests.labeling.app.site import PASSWORD, Client, Site, body
from tests.narrow import instance, present
from tests.patience import PATIENCE

LEAD, OFFICE, ATTACKER = "192.0.2.7", "192.0.2.8", "203.0.113.9"
FLOOD = 30


class BlockingHasher:
    """An Argon2 hasher whose checks wait for `release`; `max_running` ran at the same time."""

    def __init__(self, real: Any) -> None:
        self.real, self.running, self.max_running = real, 0, 0
        self.release = threading.Event()
        self._lock = threading.Lock()

    def verify(self, known: str, password: str) -> bool:
        with self._lock:
            self.running += 1
            self.max_running = max(self.max_running, self.running)
        try:
            assert self.release.wait(PATIENCE)
            return bool(self.real.verify(known, password))
        finally:
            with self._lock:
                self.running -= 1

    def hash(self, password: str) -> str:
        return str(self.real.hash(password))


def give_password(site: Site, login: str, admin: bool = False) -> None:
    person = site.person(login, admin=admin)
    with site.store.write() as tx:
        people.set_password(tx, person, people.hash_password(PASSWORD, login))


def post_login(client: Any, login: str, password: str = PASSWORD) -> Any:
    return client.post("/api/v1/login", json={"login": login, "password": password})


def behind_proxy(site: Site) -> Site:
    """Make the site trust the header with the address of the client."""
    site.settings = ServeSettings(hosts=site.settings.hosts, proxy=True)
    site.app = create_app(site.store, site.settings)
    return site


def from_network(site: Site, address: str) -> Client:
    client = site.client()
    client.headers["X-Forwarded-For"] = address
    return client


def test_many_sign_ins_do_not_block_other_requests(
    db_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During 30 concurrent sign-ins two hash, judging continues, and the lead can sign in."""
    site = behind_proxy(db_site)
    site.project(documents=30, setting={"k": 5, "strategy": "heap"})
    give_password(site, "lena")
    task = site.task("books", "ada")
    hasher = BlockingHasher(people.hasher())
    with (
        served(site) as address,
        browser(address, LEAD) as lead,
        browser(address, LEAD) as other,
        browser(address, OFFICE, site, "ada") as ada,
        ThreadPoolExecutor(FLOOD + 1) as executor,
    ):
        assert post_login(lead, "lena").status_code == 200, "this makes it a known device"
        monkeypatch.setattr(people, "hasher", lambda: hasher)
        start = threading.Barrier(FLOOD)

        def attack(number: int) -> httpx.Response:
            with browser(address, ATTACKER) as client:
                start.wait(PATIENCE)
                return post_login(client, "lena", f"guess number {number}")

        flood = [executor.submit(attack, number) for number in range(FLOOD)]
        while (
            hasher.running < sign_in.HASHES
            or sum(f.done() for f in flood) < FLOOD - sign_in.PER_SOURCE
        ):
            time.sleep(0.01)  # admitted sign-ins wait; all others were refused at once
        state = ada.get(f"/api/v1/tasks/{task}").json()
        for _ in range(10):  # no hash finishes during these answers
            reply = ada.post(f"/api/v1/tasks/{task}/answers", json=body(state))
            assert reply.status_code == 200, reply.text
            state = reply.json()
        lead_login = executor.submit(post_login, lead, "lena")
        time.sleep(0.1)
        hasher.release.set()
        replies = [future.result() for future in flood]
        assert lead_login.result().status_code == 200, (
            "the known device can sign in during the flood"
        )
        assert post_login(other, "lena").status_code == 200, (
            "a new device can, from another network"
        )
    assert hasher.max_running == sign_in.HASHES, "at most two hashes are computed at a time"
    codes = [reply.status_code for reply in replies]
    assert codes.count(503) == FLOOD - sign_in.PER_SOURCE
    assert set(codes) <= {401, 429, 503}
    for reply in replies:
        if reply.status_code != 401:
            assert int(reply.headers["Retry-After"]) > 0


def test_failures_of_strangers_do_not_lock_out_a_known_device(db_site: Site) -> None:
    """This holds even for the same address, as behind one router."""
    site = behind_proxy(db_site)
    give_password(site, "lena")
    lead = from_network(site, OFFICE)
    assert post_login(lead, "lena").status_code == 200
    colleague = from_network(site, OFFICE)
    codes = [post_login(colleague, "lena", "a wrong guess").status_code for _ in range(12)]
    assert codes == [401] * attempts.BY_LOGIN_AND_SOURCE + [429] * 2
    assert post_login(colleague, "lena").status_code == 429, "an unknown device, with any password"
    assert post_login(lead, "lena").status_code == 200
    assert post_login(from_network(site, LEAD), "lena").status_code == 200, (
        "also from another network"
    )


def test_attempts_of_a_known_device_are_limited(site: Site) -> None:
    give_password(site, "lena")
    lead = site.client()
    assert post_login(lead, "lena").status_code == 200
    codes = [post_login(lead, "lena", "a wrong guess").status_code for _ in range(11)]
    assert codes == [401] * attempts.BY_LOGIN_AND_SOURCE + [429]


@pytest.mark.parametrize(
    "change", [lambda v: v[:-1] + "0", lambda v: "0" * 32 + v[32:], lambda v: "", lambda v: "ä"]
)
def test_a_forged_device_cookie_is_ignored(site: Site, change: Any) -> None:
    give_password(site, "lena")
    give_password(site, "eve")
    eve = site.client()
    assert post_login(eve, "eve").status_code == 200
    (value,) = (v for name, v in eve.cookies.items() if name.startswith(sign_in.COOKIE_PREFIX))
    person = site.person("lena").id
    for forged in (value, change(value)):  # of another account, and forged
        cookies = {f"{sign_in.COOKIE_PREFIX}{person}": forged}
        source = sign_in.source(site.store, "lena", ATTACKER, cookies)
        assert source == RequestSource(ATTACKER, ATTACKER)


def test_a_new_password_invalidates_known_devices(site: Site) -> None:
    give_password(site, "lena")
    lead = site.client()
    reply = post_login(lead, "lena")
    cookies = dict(lead.cookies)
    assert sign_in.source(site.store, "lena", LEAD, cookies).known
    lead.headers["X-CSRF-Token"] = reply.json()["csrf"]
    changed = {"old": PASSWORD, "new": "another fine password"}
    assert lead.post("/api/v1/password", json=changed).status_code == 204
    assert not sign_in.source(site.store, "lena", LEAD, cookies).known
    assert sign_in.source(site.store, "lena", LEAD, dict(lead.cookies)).known, "except this device"


def test_failures_from_many_networks_are_limited(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "BY_LOGIN", 5)
    site = behind_proxy(site)
    give_password(site, "lena")
    lead = from_network(site, LEAD)
    assert post_login(lead, "lena").status_code == 200
    codes = [
        post_login(from_network(site, f"198.51.100.{i}"), "lena", "a wrong guess").status_code
        for i in range(6)
    ]
    assert codes == [401] * 5 + [429]
    assert post_login(lead, "lena").status_code == 200


@pytest.mark.parametrize(
    "written", ["ADA", "ａｄａ", "ＡＤＡ", " ada ", "\u00aada", "ad\u1d43"]  # the same normalization everywhere
)  # fmt: skip
def test_variants_of_a_login_are_counted_together(db_site: Site, written: str) -> None:
    give_password(db_site, "ada")
    client = db_site.client()
    logins_tried = ["ada", written] * attempts.BY_LOGIN_AND_SOURCE
    codes = [post_login(client, login, "a wrong guess").status_code for login in logins_tried]
    assert codes.count(401) == attempts.BY_LOGIN_AND_SOURCE
    assert post_login(client, written).status_code == 429
    db_site.clock.pass_(minutes=16)
    assert post_login(client, written).status_code == 200


def test_logins_that_grow_by_case_folding_are_accepted(db_site: Site) -> None:
    assert post_login(db_site.client(), "\ufdfa" * 100, "a wrong guess").status_code == 401


def test_too_many_failures_set_retry_after(site: Site) -> None:
    """The wait ends when one failure expires, not 15 minutes after the last one."""
    give_password(site, "ada")
    client = site.client()
    for _ in range(attempts.BY_LOGIN_AND_SOURCE):
        post_login(client, "ada", "a wrong guess")
    site.clock.pass_(minutes=10)
    reply = post_login(client, "ada")
    assert reply.status_code == 429
    assert int(reply.headers["Retry-After"]) == 300
    assert "5 minutes" in reply.json()["detail"]
    token = client.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
    page = client.post("/login", data={"csrf": token, "login": "ada", "password": PASSWORD})
    assert page.status_code == 429
    assert page.headers["Retry-After"] == "300"
    site.clock.pass_(seconds=301)
    assert post_login(client, "ada").status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/me", "/account"])
def test_a_busy_server_sets_retry_after(
    site: Site, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*arguments: object) -> None:
        raise Busy

    ada = site.client("ada")
    site.clock.pass_(days=1)  # the last use would be recorded again
    with monkeypatch.context() as patched:
        patched.setattr(site.store, "write", busy)
        assert ada.get(path).status_code == 200, "reading needs no writing"
    monkeypatch.setattr(site.store, "read", busy)
    reply = ada.get(path)
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[2001:db8:1:2::6]:4711", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::6]", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
        ("x" * 200, "x" * 64),
    ],
)
def test_an_ipv6_subscriber_is_one_network(address: str, name: str) -> None:
    assert network(address).name == name


class TestGate:
    """The queue is limited per network, and partly reserved for known devices."""

    @staticmethod
    async def fill(pool: SignInPool, sources: list[RequestSource]) -> list[Any]:
        go = threading.Event()
        tasks = [asyncio.create_task(pool.run(source, go.wait)) for source in sources]
        await asyncio.sleep(0.05)
        refused = [task.exception() for task in tasks if task.done()]
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return refused

    def test_one_network_cannot_use_the_whole_capacity(self) -> None:
        sources = [network(ATTACKER)] * 40
        refused = asyncio.run(self.fill(SignInPool(), [*sources, network(LEAD)]))
        assert len(refused) == 40 - sign_in.PER_SOURCE
        assert all(isinstance(error, SignInBusy) for error in refused)

    def test_capacity_is_reserved_for_known_devices(self) -> None:
        sources = [network(f"198.51.100.{i}") for i in range(200)]
        known = [RequestSource(LEAD, f"device {i}", known=True) for i in range(sign_in.RESERVED)]
        refused = asyncio.run(self.fill(SignInPool(), [*sources, *known]))
        assert len(refused) == 200 - (sign_in.CAPACITY - sign_in.RESERVED)

    def test_capacity_is_released(self) -> None:
        async def use() -> None:
            pool = SignInPool()
            for _ in range(3):
                await self.fill(pool, [network(ATTACKER)] * 40)
            for _ in range(100):
                with pytest.raises(ZeroDivisionError):
                    await pool.run(network(LEAD), lambda: 1 / 0)
            assert pool._pending.total() == 0

        asyncio.run(use())


def test_all_password_hashing_runs_in_the_pool(site: Site) -> None:
    """With a full queue, forms and the API are refused before a thread is used."""
    site.project()
    give_password(site, "lena")
    pool: SignInPool = site.app.state.sign_in_pool
    pool._pending["somebody"] = sign_in.CAPACITY
    lena = site.client("lena")
    token = lena.headers["X-CSRF-Token"]
    sent: dict[str, dict[str, Any]] = {
        "/api/v1/login": {"login": "lena", "password": PASSWORD},
        "/api/v1/password": {"old": PASSWORD, "new": "another fine password"},
        "/api/v1/invitations/accept": {"token": "x"},
        "/api/v1/reset": {"token": "x", "password": "another fine password"},
    }
    for path, form in sent.items():
        reply = lena.post(path, json=form)
        assert (reply.status_code, "Retry-After" in reply.headers) == (503, True), path
    for path in ("/login", "/account/password"):
        reply = lena.post(path, data={"csrf": token, "login": "lena"})
        assert (reply.status_code, "Retry-After" in reply.headers) == (503, True), path
    routes = [instance(Route, route) for route in sign_in_routes]
    forms = {route.path for route in routes if "POST" in present(route.methods)}
    assert forms == {  # tokens are random, so that a fast digest of them is enough
        "/login",
        "/logout",
        "/invitation/{token}",
        "/reset/{token}",
        "/account/password",
        "/account/tokens",
        "/account/tokens/revoke",
    }


TRIVIAL = [
    ("short", "10 to 500"),
    ("x" * 501, "10 to 500"),
    ("aaaaaaaaaaaa", "different"),
    ("1212121212", "different"),
    ("Lena.Lovelace@example.org", "login"),
    ("ＬＥＮＡ.lovelace@example.org", "login"),
    ("1234567890", "common"),
    ("0987654321", "common"),
    ("Password123!", "common"),
    ("QWERTYUIOP", "common"),
    ("welcome2031", "common"),
    ("Firstpage-2026", "common"),
]


@pytest.mark.parametrize(("password", "reason"), TRIVIAL)
def test_trivial_passwords_are_refused(site: Site, password: str, reason: str) -> None:
    """They are refused wherever one is set: by the owner, by a link, with a new account."""
    site.project()
    login = "lena.lovelace@example.org"
    give_password(site, login)
    client = site.client(login)
    replies = [client.post("/api/v1/password", json={"old": PASSWORD, "new": password})]
    person = site.person(login)
    with site.store.write() as tx:
        reset = invitations.reset_link(tx, person, None)
        joining = invitations.invite(tx, projects.by_slug(tx, "books"), "assessor", None)
    form = {"token": reset.token, "password": password}
    replies.append(site.client().post("/api/v1/reset", json=form))
    if reason != "login":
        form = {"token": joining.token, "login": "new", "password": password}
        replies.append(site.client().post("/api/v1/invitations/accept", json=form))
    for reply in replies:
        assert reply.status_code == 400
        assert reason in reply.json()["detail"]
    with site.store.read() as tx:
        stored_hash = people.password_hash(tx, person.id)
    assert people.verify_password(PASSWORD, stored_hash)


@pytest.mark.parametrize(
    "password", ["correct horse battery", "password by my aunt", "Tr0ub4dor&3"]
)
def test_other_passwords_are_accepted(password: str) -> None:
    people.check_password(password, "ada")


@pytest.mark.parametrize(
    ("password", "login"),
    [
        ("lenalenalena", "lena"), ("lena12345678", "lena"), ("12345678lena", "Lena"),
        ("anel-anel-anel", "lena"), ("lena1990lena!", "lena"), ("lena anel 1990", "lena"),
        ("ｌｅｎａlena2026", "lena"), ("lena.lovelace1", "lena.lovelace@example.org"),
        ("lovelace2026!", "lena.lovelace@example.org"), ("lenapassword", "lena"),
    ],
)  # fmt: skip
def test_passwords_that_consist_of_the_login_are_refused(password: str, login: str) -> None:
    with pytest.raises(DataError, match="consists of the login"):
        people.check_password(password, login)


@pytest.mark.parametrize(
    "password",
    ["letmeinletmein", "password password", "Welcome-Welcome-1", "1password1", "secret-sunshine!"],
)
def test_common_words_stay_common_when_repeated(password: str) -> None:
    with pytest.raises(DataError, match="most common"):
        people.check_password(password, "ada")


def test_short_logins_may_occur_in_passwords() -> None:
    people.check_password("a8#4&29!1%b", "ab")


def test_a_password_of_many_words_is_checked_fast() -> None:
    people.check_password("testpassadmin" * 38 + "x", "ada")


@pytest.mark.parametrize("https", [True, False])
def test_hsts_is_set_behind_a_tls_proxy(site: Site, https: bool) -> None:
    site = behind_proxy(site)
    headers = {"X-Forwarded-Proto": "https" if https else "http"}
    sent = site.client().get("/login", headers=headers).headers
    assert ("strict-transport-security" in sent) == https
    unproxied_site = Site(site.store, site.clock)  # without --proxy the header is not trusted
    assert (
        "strict-transport-security"
        not in unproxied_site.client().get("/login", headers=headers).headers
    )
