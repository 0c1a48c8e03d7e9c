"""The files of `deploy/`: units that systemd accepts, and a proxy before both servers, over TLS."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

import firstpage as fp
from tests.patience import PATIENCE

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")])
LABELS, SEARCH = "labels.example.org", "search.example.org"


def tool(name: str) -> str:
    """Return the path of a program; skip the test without it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def test_units_are_accepted_by_systemd(tmp_path: Path) -> None:
    """Also with the program that they start, at the path of the page."""
    analyze = tool("systemd-analyze")
    assert len(UNITS) == 4
    for unit in UNITS:
        text = unit.read_text().replace("/opt/firstpage/bin/firstpage", "/bin/true")
        (tmp_path / unit.name).write_text(text)
        command = [analyze, "verify", "--man=no", str(tmp_path / unit.name)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), unit.name


def test_the_unit_of_backups_names_a_file_per_day() -> None:
    """The unit's own shell command, after what systemd replaces in it."""
    unit = (DEPLOY / "firstpage-backup.service").read_text()
    (command,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", unit, re.M)
    command = command.replace("exec /opt/firstpage/bin/firstpage", "echo").replace("%S", "/state")
    shell = command.replace("%%", "%").replace("$$", "$")
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"label backup /state/firstpage/labels -o /state/firstpage/backups/\w+\.backup\n",
        done.stdout,
    )


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: str


class Proxy(NamedTuple):
    """Ports of nginx, and a context that trusts its certificate alone."""

    http: int
    https: int
    trust: ssl.SSLContext
    serving: int

    def ask(
        self, host: str, path: str, body: object = None, tls: bool = True, name: str = ""
    ) -> Answer:
        """Send a request for a host; `name` is that of the TLS handshake if it differs."""
        plain = socket.create_connection(("127.0.0.1", self.https if tls else self.http), PATIENCE)
        connection = http.client.HTTPConnection(host)
        connection.sock = (
            self.trust.wrap_socket(plain, server_hostname=name or host) if tls else plain
        )
        data = None if body is None else json.dumps(body)
        method = "GET" if data is None else "POST"
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read().decode())
        connection.close()
        return answer


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def started(stack: ExitStack, *command: str | Path, port: int) -> None:
    """Start a process that the stack ends, and wait until it listens on a port."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
    stack.callback(process.wait, PATIENCE)
    stack.callback(process.terminate)
    end = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, command
        assert time.monotonic() < end, command
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Serve labeling and a model behind nginx, with our configuration and a certificate of its own."""
    nginx, openssl = tool("nginx"), tool("openssl")
    folder = tmp_path_factory.mktemp("deploy")
    fp.ListMLE(k=3).fit(fp.Synthetic(queries=20, docs=8, features=2).dataset()).save(
        folder / "model.json"
    )
    subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=firstpage", "-keyout", folder / "labels.key",
            "-out", folder / "labels.pem", "-addext", f"subjectAltName=DNS:{LABELS},DNS:{SEARCH}",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    for suffix in ("pem", "key"):
        shutil.copyfile(folder / f"labels.{suffix}", folder / f"search.{suffix}")
    ports = {number: free_port() for number in (80, 443, 8210, 8220)}
    text = (DEPLOY / "nginx.conf").read_text().replace("/etc/ssl/firstpage", str(folder))
    text = re.sub(r"^ +listen \[::\]:.*\n", "", text, flags=re.M)  # machines without IPv6
    text = re.sub(
        r"(listen |127\.0\.0\.1:)(\d+)",
        lambda m: f"{m[1].replace('listen ', 'listen 127.0.0.1:')}{ports[int(m[2])]}",
        text,
    )
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}{text}}}\n"
    )
    server = [nginx, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    done = subprocess.run([*server, "-t"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr
    code = "from firstpage.cli import main; main()"
    with ExitStack() as stack:
        label = ("label", "serve", folder / "labels", "--proxy", "--allow-host", LABELS)
        for words, port in ((label, ports[8210]), (("serve", folder / "model.json"), ports[8220])):
            started(stack, sys.executable, "-c", code, *words, "--port", str(port), port=port)
        started(stack, *server, port=ports[443])
        trust = ssl.create_default_context(cafile=folder / "labels.pem")
        yield Proxy(ports[80], ports[443], trust, ports[8220])


def test_http_leads_to_https(proxy: Proxy) -> None:
    answer = proxy.ask(LABELS, "/projects?a=b", tls=False)
    assert (answer.status, answer.headers["Location"]) == (308, f"https://{LABELS}/projects?a=b")


def test_the_labeling_application_knows_that_it_is_behind_tls(proxy: Proxy) -> None:
    assert proxy.ask(LABELS, "/health").status == 200
    page = proxy.ask(LABELS, "/login")
    assert page.status == 200
    assert "max-age" in page.headers["Strict-Transport-Security"]


def test_other_hosts_are_refused(proxy: Proxy) -> None:
    answer = proxy.ask("other.example.org", "/login", name=LABELS)
    assert answer.status in (400, 421), answer.body


def test_models_rank_and_only_this_machine_sees_their_metrics(proxy: Proxy) -> None:
    candidates = [{"id": "a", "features": [0, 1]}, {"id": "b", "features": [1, 0]}]
    answer = proxy.ask(SEARCH, "/rank", {"query": "q", "candidates": candidates})
    assert answer.status == 200
    assert sorted(json.loads(answer.body)["order"]) == ["a", "b"]
    for path in ("/metrics", "/drift", "/reload"):
        assert proxy.ask(SEARCH, path).status == 404
    direct = http.client.HTTPConnection("127.0.0.1", proxy.serving, timeout=PATIENCE)
    direct.request("GET", "/metrics")
    response = direct.getresponse()
    assert (response.status, b"firstpage_" in response.read()) == (200, True)
    direct.close()
