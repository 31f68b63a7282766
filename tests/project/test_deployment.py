"""docs/configuration.md has every variable; the server is started as docs/deployment.md says."""

from __future__ import annotations

import ast
import re
import shlex

from accounts.limits.windows import DEFAULTS
from tests.commands import ROOT
from tests.served import documented_options

#: Read by AWS's own library; no setting of ours.
OF_AWS = {"AWS_PROFILE"}


def test_the_table_of_settings_has_every_variable_that_is_read_and_no_other() -> None:
    settings = (ROOT / "project" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', settings))
    assert '"ACCOUNTS_LIMIT_{name.upper()}"' in settings
    read |= {f"ACCOUNTS_LIMIT_{name.upper()}" for name in DEFAULTS}
    [services] = re.findall(
        r"for _service in (\(.+\)):\n +env\.read\(f\"AWS_ENDPOINT_URL_", settings
    )
    read |= {f"AWS_ENDPOINT_URL_{service}" for service in ast.literal_eval(services)}

    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \| (.+?) \| (.+?) \|$", page, re.MULTILINE)

    assert sorted(name for name, _default, _meaning in rows) == sorted(read | OF_AWS)


def test_the_table_has_the_limits_as_they_are() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    for name, default in DEFAULTS.items():
        assert f"| `ACCOUNTS_LIMIT_{name.upper()}` | `{default}` |" in page


def test_the_unit_starts_the_server_as_it_is_documented() -> None:
    unit = (ROOT / "deploy" / "site.service").read_text(encoding="utf-8")
    found = re.search(r"^ExecStart=\S+/granian ((?:.*\\\n)*.*)$", unit, re.MULTILINE)
    assert found is not None

    words = shlex.split(found[1].replace("\\\n", " "))

    assert words == [*documented_options(8000), "project.wsgi:application"]


#: What the site believes of a request, and what each may be set to: nothing that a client sent.
BELIEVED = {
    "Host": "$host",
    "X-Forwarded-For": "$remote_addr",
    "X-Forwarded-Proto": "$scheme",
    "X-Request-ID": "$request_id",
}


def test_the_proxy_sets_the_headers_that_the_site_trusts_for_all_locations() -> None:
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")

    before, *locations = re.split(r"^    location ", text, flags=re.MULTILINE)

    said = dict(re.findall(r"^    proxy_set_header (\S+) (\S+);$", before, re.MULTILINE))
    assert said.items() >= BELIEVED.items()
    # One header of its own, and a location would have none of these.
    assert not [each for each in locations if "proxy_set_header" in each]
