"""Everything that README and docs name exists: links, files, commands, options, settings, names.

docs/configuration.md lists every variable. The systemd unit starts the server as docs/deployment.md
says.
"""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from accounts.conf import LIMITS
from benchmarks import chart
from dynamo.exceptions import DynamoError, ErrorWithValues, Refused
from dynamo.tables.definitions import all_tables
from tests.commands import ROOT
from tests.served import documented_options

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(ROOT / name for name in ("benchmarks/README.md", "dynamo/guide.md")),
    *sorted(ROOT.glob("docs/*.md")),
]
APPS = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """The page without its blocks of code, in which a line with # is not a heading."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def code(page: Path) -> Iterator[str]:
    """Everything that the page shows as code: blocks line by line, and words in backticks."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def _is_file(page: Path, name: str) -> bool:
    shown = re.findall(r"^`([\w/]+\.py)`\n\n```py(?:thon)?$", page.read_text(), re.MULTILINE)
    example = [*(ROOT / "examples").iterdir()] if page.name == "tutorial.md" else []
    return name in shown or any((root / name).exists() for root in (ROOT, *example))


def _is_command(page: Path, name: str, rest: str) -> bool:
    commands = get_commands()
    if page.name == "tutorial.md":  # it brings its own, and is typed by a test
        return True
    ours = rest.split(" -- ")[0].split(">")[0].split("|")[0]
    parser = load_command_class(commands[name], name).create_parser("manage.py", name)
    known = {option for action in parser._actions for option in action.option_strings}
    words = shlex.split(ours, comments=True)
    return {word for word in words if re.match(r"--?[a-z]", word)} <= known


def _is_variable(_page: Path, name: str) -> bool:
    read = (ROOT / "project" / "settings.py").read_text(encoding="utf-8")
    limits = {limit.upper() for limit in LIMITS}
    return name in read or name.removeprefix("ACCOUNTS_LIMIT_") in limits


def _is_target(_page: Path, name: str) -> bool:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.search(rf"^{name}:", makefile, re.MULTILINE) is not None


def _is_importable(page: Path, name: str) -> bool:
    # The tutorial writes its own modules. project.E001 is the id of a check.
    parts = name.split(".")
    return (
        page.name == "tutorial.md"
        or re.search(r"\.[EIW]\d{3}$", name) is not None
        or any(_resolves(parts, modules) for modules in range(len(parts), 0, -1))
    )


#: The kinds of things that code on a page names, and how to find out whether one exists.
NAMED: dict[str, tuple[str, Callable[..., bool]]] = {
    "files": (r"^([\w.-]+(?:/[\w.-]+)+\.(?:py|json|md|yml|toml))$", _is_file),
    "commands with their options": (r"manage\.py (\w+)(.*)", _is_command),
    "variables": (r"^((?:ACCOUNTS|DJANGO|DYNAMODB)_[A-Z_]+)$", _is_variable),
    "make targets": (r"^make ([a-z-]+)", _is_target),
    "dotted names": (rf"^((?:{'|'.join(sorted(APPS))})(?:\.\w+)+)(?:\(.*)?$", _is_importable),
}


@every_page
def test_everything_that_code_names_exists(page: Path) -> None:
    for line in code(page):
        for pattern, is_there in NAMED.values():
            if found := re.search(pattern, line):
                assert is_there(page, *found.groups()), line


@every_page
def test_every_import_of_ours_in_a_python_block_works(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```py(?:thon)?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for statement in ast.walk(ast.parse(block)):
            if isinstance(statement, ast.ImportFrom):
                parts = (statement.module or "").split(".")
                for name in statement.names:
                    assert parts[0] not in APPS or _resolves([*parts, name.name], len(parts))


def _resolves(parts: list[str], modules: int) -> bool:
    """Whether the first so many parts are a module that has the others."""
    try:
        thing = import_module(".".join(parts[:modules]))
    except ModuleNotFoundError:
        return False
    for part in parts[modules:]:
        thing = getattr(thing, part, None)
    # A package does not have its submodules before they are imported.
    return thing is not None or (len(parts) > modules and _resolves(parts, len(parts)))


def test_the_picture_names_every_app_in_its_layer() -> None:
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    names = re.findall(r'<text class="name" x="\d+" y="(\d+)">(\w+)</text>', picture)
    heights = {name: int(y) for y, name in names}

    assert heights.keys() >= APPS
    order = ("project", "staff", "invoices", "accounts", "uploads", "outbox")
    order = (*order, "sequences", "locks", "dynamo")
    assert sorted(order, key=heights.__getitem__) == list(order)
    assert heights["accounts"] == heights["uploads"] < heights["outbox"]
    assert heights["sequences"] == heights["locks"]


def test_every_page_of_docs_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((\w+\.md)\)", index))

    assert {page.name for page in ROOT.glob("docs/*.md")} - {"index.md"} == linked


def test_the_drawn_structure_has_every_package() -> None:
    developers = (ROOT / "docs" / "developers.md").read_text(encoding="utf-8")
    drawn, outer = set(), ""
    for inner, name in re.findall(r"^(  )?([\w/]+)/ ", developers, re.MULTILINE):
        outer = outer if inner else name
        drawn.add(f"{outer}/{name}" if inner else name)
    packages = {
        str(file.parent.relative_to(ROOT))
        for app in APPS
        for file in (ROOT / app).rglob("__init__.py")
    }

    helpers = ("management", "templatetags", "migrations", "formats", "static")
    assert drawn == {name for name in packages if not set(Path(name).parts) & set(helpers)}


def test_the_files_that_decide_a_rule_define_the_names_that_are_listed() -> None:
    developers = (ROOT / "docs" / "developers.md").read_text(encoding="utf-8")
    rules = developers.split("\n## Where each rule is decided\n")[1].split("\n## ")[0]
    for path, about in re.findall(r"`([\w/]+\.py)`([^;|]*)", rules):
        text = (ROOT / path).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", about):
            assert re.search(rf"\b(def|class) {name}\b", text), (path, name)


def test_the_page_of_errors_lists_every_error_of_the_library_and_all_have_one_base() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^- `(\w+)`: ", page, re.MULTILINE))
    errors = {
        name: thing
        for package in ("dynamo", "sequences", "locks", "outbox")
        for name, thing in vars(import_module(f"{package}.exceptions")).items()
        if isinstance(thing, type)
        and issubclass(thing, BaseException)
        and thing.__module__ == f"{package}.exceptions"
        and thing is not ErrorWithValues
    }

    assert listed == errors.keys()
    assert all(issubclass(error, (DynamoError, Refused)) for error in errors.values())


def test_the_reference_has_every_package_that_exports_names() -> None:
    page, reference, conf = (
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("stable.md", "reference/api.rst", "conf.py")
    )
    for package in ("dynamo", "dynamo.auth", "sequences", "locks", "outbox"):
        assert f"`{package}`" in page
        assert f'"{package}"' in conf
        assert f".. automodule:: {package}\n   :members:\n   :imported-members:" in reference


def test_the_chart_shows_the_table_of_the_benchmark() -> None:
    latencies = chart.latencies_of((chart.HERE / "README.md").read_text(encoding="utf-8"))

    assert len(latencies) == 12
    assert chart.CHART.read_text(encoding="utf-8") == chart.drawn(latencies)


# Settings and deployment -----------------------------------------------------------------------

#: Variables that only AWS's own library reads.
OF_AWS = {"AWS_PROFILE"}


def test_the_table_of_settings_has_every_variable_that_is_read_and_no_other() -> None:
    settings = (ROOT / "project" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', settings))
    assert '"ACCOUNTS_LIMIT_{name.upper()}"' in settings
    read |= {f"ACCOUNTS_LIMIT_{name.upper()}" for name in LIMITS}
    [services] = re.findall(
        r"for _service in (\(.+\)):\n +env\.read\(f\"AWS_ENDPOINT_URL_", settings
    )
    read |= {f"AWS_ENDPOINT_URL_{service}" for service in ast.literal_eval(services)}

    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \| (.+?) \| (.+?) \|$", page, re.MULTILINE)

    assert sorted(name for name, _default, _meaning in rows) == sorted(read | OF_AWS)


def test_the_table_of_settings_has_the_defaults_of_the_limits() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    for name, default in LIMITS.items():
        assert f"| `ACCOUNTS_LIMIT_{name.upper()}` | `{default}` |" in page


def test_the_systemd_unit_starts_the_server_as_the_docs_do() -> None:
    unit = (ROOT / "deploy" / "site.service").read_text(encoding="utf-8")
    found = re.search(r"^ExecStart=\S+/granian ((?:.*\\\n)*.*)$", unit, re.MULTILINE)
    assert found is not None

    words = shlex.split(found[1].replace("\\\n", " "))

    assert words == [*documented_options(8000), "project.wsgi:application"]


#: The headers that the site trusts. The proxy sets each to a value that the client did not send.
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
    # A location with one `proxy_set_header` of its own would have none of these.
    assert not [location for location in locations if "proxy_set_header" in location]


def test_the_page_about_restoring_names_every_table() -> None:
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    [restored] = re.findall(r"^for table in (.+); do$", page, re.MULTILINE)
    [made_empty] = re.findall(r"invoices have\. (.+?) are created empty", page, re.DOTALL)

    named = ["users", *restored.split(), *re.findall(r"`(\w+)`", made_empty)]
    tables = [table.base_name for table in all_tables()]
    assert sorted(named) == sorted(name for name in tables if not name.startswith("test"))
