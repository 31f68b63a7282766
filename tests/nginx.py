"""Runs nginx with deploy/nginx.conf before a server on this machine.

with nginx(server.port, folder) as port:
    …                                # https://127.0.0.1:{port}/
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.engines import free_port
from tests.production import HOST
from tests.waiting import wait_until

_MAIN = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{limits}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def program() -> str:
    """The path of nginx; skips the test without it, but fails in CI."""
    # On Debian it is not on the PATH of users.
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        missing = "nginx is not installed"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@contextmanager
def nginx(server_port: int, folder: Path) -> Iterator[int]:
    """Serve HTTPS in the block; yields the port."""
    path, port = program(), free_port()
    _certify(folder)
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    # Its first comment lists the settings of the main file.
    limits = re.findall(r"^#     (\w.*)$", text, re.MULTILINE)
    for old, new in {
        "127.0.0.1:8000": f"127.0.0.1:{server_port}",
        "/etc/ssl/site": str(folder),
        "www.example.com": HOST,
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80": f"listen 127.0.0.1:{free_port()}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"^ *listen \[::\].*$", "", text, flags=re.MULTILINE)
    (folder / "site.conf").write_text(text)
    main = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    main.write_text(_MAIN.format(folder=folder, user=user, limits="\n".join(limits)))
    with subprocess.Popen([path, "-p", folder, "-c", main, "-e", folder / "error.log"]) as process:
        try:
            wait_until(lambda: process.poll() is not None or _answers(port))
            assert process.poll() is None, (folder / "error.log").read_text()
            yield port
        finally:
            process.terminate()
            process.wait(60)


def _certify(folder: Path) -> None:
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"),
            *("-keyout", folder / "key.pem", "-out", folder / "fullchain.pem"),
        ],
        check=True,
        capture_output=True,
    )


def _answers(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
