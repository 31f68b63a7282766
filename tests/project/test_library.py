"""The library's wheel works in other projects, and the lock file is what production installs.

Tests marked slow fetch packages from the index that pip is configured for (`make test-library`).
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from django import VERSION

from tests import ownapp
from tests.commands import ROOT
from tests.environment import clean_environment
from tests.production import PRODUCTION, checkout_in
from tests.project.test_examples import PAGE, RECIPES, REGISTRATION
from tests.tutorial import CHAPTERS, type_session

LIBRARY = ("dynamo", "locks", "sequences")
#: With the apps that need an extra.
PACKAGES = (*LIBRARY, "accounts", "outbox", "uploads")
#: The library's dependencies, and what these always install.
INSTALLED_WITH_IT = {"asgiref", "boto3", "botocore", "django", "pynamodb", "urllib3"}

#: Only pytest imports it.
PYTEST_PLUGIN = ROOT / "dynamo" / "pytest_plugin.py"
#: Modules that import the package of an extra when it is needed.
OF_EXTRAS = {
    PYTEST_PLUGIN: {"pytest"},
    ROOT / "dynamo" / "auth" / "addresses.py": {"idna"},
    ROOT / "dynamo" / "management" / "progress.py": {"tqdm"},
    ROOT / "dynamo" / "otel.py": {"opentelemetry"},
    **{module: {"rest_framework"} for module in (ROOT / "dynamo" / "rest").glob("*.py")},
    ROOT / "accounts" / "attributes.py": {"phonenumbers"},
    ROOT / "accounts" / "management" / "commands" / "importusers.py": {"tqdm"},
    ROOT / "outbox" / "framework.py": {"django_tasks"},
    ROOT / "outbox" / "schedules.py": {"cronsim"},
    ROOT / "uploads" / "management" / "commands" / "uploadfiles.py": {"tqdm"},
}
#: Modules that import, for the type checker alone, what it brings.
OF_TYPES = {ROOT / "dynamo" / name: {"typing_extensions"} for name in ("forms.py", "views.py")}

MOST_BYTES = 100_000_000

#: Each Python on which the library's tests run, and the Django.
VERSIONS = {"3.11": "5.2", "3.12": "6.0", "3.13": "6.1", "3.14": "6.1"}
#: What the library's tests need.
TOOLS = ("hypothesis", "pytest", "pytest-django", "pytest-randomly", "pytest-xdist")

# The name of a locked distribution, and its extras.
PIN = r"^([\w.-]+)(?:\[[\w,-]+\])?"
LOCK = ROOT / "requirements.lock"
DEVELOPMENT_LOCK = ROOT / "requirements-dev.lock"

fetches_packages = pytest.mark.slow


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def pins(lock: Path) -> dict[str, set[str]]:
    """The locked versions of each distribution; some depend on Python's version."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(PIN + r"==([^\s;]+)", lock.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def test_the_library_imports_nothing_but_its_dependencies() -> None:
    allowed = INSTALLED_WITH_IT | set(PACKAGES) | sys.stdlib_module_names
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found = {name.partition(".")[0] for name in names}
            assert found <= allowed | (OF_EXTRAS | OF_TYPES).get(file, set()), file


@pytest.mark.parametrize("lock", [LOCK, DEVELOPMENT_LOCK], ids=lambda lock: lock.name)
def test_each_locked_version_has_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text()

    assert len(re.findall(PIN + r"==.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(
        re.findall(r"^[^\s#]", text, re.MULTILINE)
    )
    assert "://" not in text


def test_production_installs_the_versions_of_development_without_its_tools() -> None:
    production = pins(LOCK)
    development = pins(DEVELOPMENT_LOCK)

    assert production.items() <= development.items()
    assert {"boto3", "django", "granian", "pynamodb"} <= production.keys()
    tools = {"hypothesis", "ministack", "moto", "mypy", "playwright", "pytest", "ruff"}
    assert tools <= development.keys() - production.keys()


@dataclass(frozen=True)
class Environment:
    """A virtual environment; `size_bytes` counts what pip installed into it."""

    programs: Path
    size_bytes: int

    def run(self, program: str, *arguments: str, folder: Path, **env: str) -> str:
        """What a program prints on stdout; it must exit with 0."""
        return subprocess.run(
            [self.programs / program, *arguments],
            cwd=folder,
            env=clean_environment(**env),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=600,
        ).stdout


def new_environment(
    folder: Path, *arguments: str, python: str | Path = sys.executable
) -> Environment:
    """A new environment of `python` with what `pip install` makes of the arguments."""
    subprocess.run([python, "-m", "venv", folder], check=True, timeout=120)
    [packages] = folder.glob("lib/python*/site-packages")
    before = size_of(packages)
    empty = Environment(folder / "bin", 0)
    empty.run("pip", "--quiet", "--disable-pip-version-check", "install", *arguments, folder=folder)
    return Environment(folder / "bin", size_of(packages) - before)


def locked(lock: Path, folder: Path, *, without: str = "") -> list[str]:
    """Arguments by which pip installs the locked versions, except of one distribution.

    Pip refuses constraints with extras.
    """
    versions = folder / "versions.txt"
    pinned = re.findall(PIN + r"(==[^\\\n]+)", lock.read_text(), re.MULTILINE)
    versions.write_text("\n".join(name + pin for name, pin in pinned if name != without))
    return ["--constraint", str(versions)]


def size_of(folder: Path) -> int:
    """What a folder takes on disk, as `du` counts it."""
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because setuptools leaves files in the source folder."""
    folder = tmp_path_factory.mktemp("wheel")
    made = (".*", "__pycache__", "node_modules", "var", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, folder / "checkout", ignore=shutil.ignore_patterns(*made))
    build = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, *offline, "./checkout"], cwd=folder, check=True, timeout=120)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel and what it and its tasks need, in the locked versions, and the local engine."""
    folder = tmp_path_factory.mktemp("environment")
    made = new_environment(folder / "venv", *locked(LOCK, folder), f"{wheel}[tasks]")
    if not take_engine(made):
        [ministack] = pins(DEVELOPMENT_LOCK)["ministack"]
        made.run("pip", "--quiet", "install", f"ministack=={ministack}", folder=folder)
    return made


def take_engine(environment: Environment) -> bool:
    """Let programs of the environment find the dynoxide of this one. False if there is none."""
    installed = Path(sys.prefix, "node_modules")
    if installed.exists():
        (environment.programs.parent / "node_modules").symlink_to(installed)
    return installed.exists()


@fetches_packages
def test_the_wheel_has_the_library_and_nothing_else(wheel: Path) -> None:
    typing = {ROOT / package / "py.typed" for package in PACKAGES}
    typing |= {stub for package in PACKAGES for stub in (ROOT / package).rglob("*.pyi")}
    texts = set(ROOT.glob("[ad]*/locale/*/LC_MESSAGES/django.[mp]o"))
    names = ("auth/usernames.txt", "guide.md")
    tables = {ROOT / "uploads/cloudformation.json", *(ROOT / "dynamo" / name for name in names)}
    for folder in ("dynamo/templates", "accounts/templates", "accounts/static"):
        tables |= {file for file in (ROOT / folder).rglob("*") if file.is_file()}
    wanted = {str(file.relative_to(ROOT)) for file in {*modules(), *typing, *texts, *tables}}

    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        told = Parser().parsestr(archive.read(metadata).decode())

    about = metadata.partition("/")[0]
    assert {name for name in names if not name.startswith(f"{about}/")} == wanted
    packages = told.get_all("Requires-Dist", [])
    needed = {re.sub(r"[<>=][^;]*", "", package, count=1) for package in packages}
    extras = {
        'argon2-cffi; extra == "accounts"',
        'django-tasks; extra == "accounts"',
        'cronsim; extra == "tasks"',
        'django-tasks; extra == "tasks"',
        'djangorestframework; extra == "rest"',
        'idna; extra == "accounts"',
        'idna; extra == "idna"',
        'ministack; extra == "local"',
        'opentelemetry-api; extra == "otel"',
        'phonenumbers; extra == "phone"',
        'tqdm; extra == "accounts"',
        'tqdm; extra == "uploads"',
    }
    assert needed == {"boto3", "django", "pynamodb"} | extras


@fetches_packages
@pytest.mark.parametrize("project", CHAPTERS)
def test_the_tutorial_works_with_the_wheel_alone_in_less_than_100_mb(
    project: str, environment: Environment, tmp_path: Path
) -> None:
    told, shown = type_session(project, tmp_path, environment.programs)

    assert shown == told
    assert 0 < environment.size_bytes < MOST_BYTES


@fetches_packages
def test_the_recipes_pass_with_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    versions = locked(DEVELOPMENT_LOCK, tmp_path)
    made = new_environment(tmp_path / "venv", *versions, f"{wheel}[accounts,rest,local]")
    take_engine(made)
    for project in RECIPES:
        folder = shutil.copytree(ROOT / "examples" / project, tmp_path / project)
        for command in (["check", "--fail-level=WARNING"], ["test"]):
            made.run("python", "manage.py", *command, folder=folder)


@fetches_packages
def test_the_tests_of_a_project_run_on_the_engine_that_the_extra_brings(
    wheel: Path, tmp_path: Path
) -> None:
    packages = [f"{wheel}[local]", "pytest", "pytest-django", "pytest-randomly"]
    environment = new_environment(tmp_path / "venv", *locked(DEVELOPMENT_LOCK, tmp_path), *packages)
    path = [part for part in os.get_exec_path() if not Path(part, "dynoxide").exists()]
    project = ownapp.make(tmp_path / "project")

    def run(*command: str) -> tuple[int, str]:
        return ownapp.outcome(
            project, *command, programs=environment.programs, PATH=os.pathsep.join(path)
        )

    with_pytest, printed = run("pytest", "-q", "--ds=club.settings")
    assert with_pytest == 0, printed
    assert re.search(r"[1-9] passed", printed)
    with_runner, printed = run("python", "manage.py", "test", "members.tests")
    assert with_runner == 0, printed
    assert re.search(r"Ran [1-9] tests?", printed)


@fetches_packages
def test_the_types_of_apps_that_use_the_library_pass_strict_checks(
    wheel: Path, tmp_path: Path
) -> None:
    """Those of the tutorial, and what else the docs show."""
    tools = ["mypy", "django-stubs[compatible-mypy]"]
    versions = locked(DEVELOPMENT_LOCK, tmp_path)
    made = new_environment(tmp_path / "venv", *versions, f"{wheel}[accounts,rest]", *tools)
    library = ROOT / "tests" / "library"
    examples = shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(library / "documented.py", examples / "admin")
    for project in examples.iterdir():
        [settings] = project.glob("*/settings.py")
        module = f"{settings.parent.name}.settings"
        ended = subprocess.run(
            [made.programs / "mypy", "--config-file", library / "mypy.ini", "."],
            cwd=project,
            env=clean_environment(PYTHONPATH=str(project), DJANGO_SETTINGS_MODULE=module),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=600,
        )
        assert ended.stdout.startswith("Success"), ended.stdout


@fetches_packages
@pytest.mark.parametrize(("python", "django"), VERSIONS.items())
def test_the_tests_of_the_library_pass_without_the_site(
    python: str, django: str, wheel: Path, tmp_path: Path
) -> None:
    """In the project `tests/library`. Tests that import the site are skipped there."""
    if (python, django) == (_two(sys.version_info), _two(VERSION)):
        pytest.skip("`make test` runs them on these versions.")
    if not (program := find_python(python)):
        pytest.skip(f"There is no Python {python} on this machine.")
    others = locked(DEVELOPMENT_LOCK, tmp_path, without="django")
    wanted = [f"{wheel}[tasks]", f"django~={django}.0", *TOOLS]
    made = new_environment(tmp_path / "venv", *others, *wanted, python=program)

    project = copied(tmp_path, ROOT / "tests" / "library")
    run_tests(made, project, "without_site", "not stress", *LIBRARY, "outbox")


@fetches_packages
@pytest.mark.parametrize(
    ("python", "django"),
    [
        ("3.11", "5.2"),
        # Only in `make test-slow`: CI would take longer than 20 minutes.
        pytest.param("3.12", "6.0", marks=pytest.mark.stress),
        ("3.13", "6.1"),
    ],
)
def test_accounts_and_the_tutorial_work_with_the_wheel_on_each_django(
    python: str, django: str, wheel: Path, tmp_path: Path
) -> None:
    """In a new project, as docs/registration.md says, and in `examples/ownuser`."""
    if not (program := find_python(python)):
        pytest.skip(f"There is no Python {python} on this machine.")
    others = locked(DEVELOPMENT_LOCK, tmp_path, without="django")
    wanted = [f"{wheel}[accounts,phone]", f"django~={django}.0", *TOOLS]
    made = new_environment(tmp_path / "venv", *others, *wanted, python=program)
    example = ROOT / "examples" / "ownuser"
    copy = copied(tmp_path, example)
    shutil.copytree(example, copy / "examples" / "ownuser")

    run_tests(made, copy, "tests.own_user", "not slow", "accounts")

    made.run("django-admin", "startproject", "club", folder=tmp_path)
    append_registration(tmp_path / "club" / "club", since_61=django == "6.1")
    for command in (["check", "--fail-level=WARNING"], ["test", "--testrunner=dynamo.test.Runner"]):
        made.run("python", "manage.py", *command, folder=tmp_path / "club")

    for project in CHAPTERS:
        (tmp_path / "tutorial" / project).mkdir(parents=True)
        told, shown = type_session(project, tmp_path / "tutorial" / project, made.programs)
        assert shown == told


def append_registration(package: Path, *, since_61: bool) -> None:
    """Change the files of `startproject` as the page says, and add the tests of the example."""
    [before_61] = re.findall("^EMAIL_BACKEND = .+$", REGISTRATION, re.MULTILINE)
    with (package / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(f"\n{PAGE['club/settings.py']}\n{'' if since_61 else before_61}\n")
    (package / "urls.py").write_text(PAGE["club/urls.py"], encoding="utf-8")
    shutil.copy(ROOT / "examples" / "registration" / "club" / "tests.py", package)


def copied(folder: Path, project: Path) -> Path:
    """A copy of the project, with the tests and what they read."""
    copy = shutil.copytree(project, folder / "project")
    unread = shutil.ignore_patterns("__pycache__", "library")
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=unread)
    shutil.copytree(ROOT / "docs", copy / "docs", ignore=shutil.ignore_patterns("samples"))
    for example in ("admin", "users"):
        shutil.copytree(ROOT / "examples" / example, copy / "examples" / example)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def run_tests(made: Environment, project: Path, plugin: str, chosen: str, *apps: str) -> None:
    """Run the `chosen` tests of apps in the project, which does not have the site."""
    if not take_engine(made):
        pytest.skip("There is no dynoxide on this machine.")
    run = ["-m", "pytest", "-q", "-p", plugin, "-n", "4", "--dist", "worksteal"]
    folders = [f"tests/{app}" for app in apps]
    ended = subprocess.run(
        [made.programs / "python", *run, "-m", f"not slow and not site and {chosen}", *folders],
        cwd=project,
        check=False,
        timeout=1800,
    )

    assert ended.returncode == 0


def _two(version: Sequence[object]) -> str:
    return f"{version[0]}.{version[1]}"


def find_python(version: str) -> Path | None:
    """A Python of this version that makes environments: on PATH, or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for program in filter(None, found):
        # A program of pyenv on PATH may only say that it is not chosen.
        probe = [program, "-c", "import ensurepip, ssl"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return Path(program)
    return None


@fetches_packages
def test_the_site_starts_with_the_packages_of_production(tmp_path: Path) -> None:
    production = new_environment(tmp_path / "venv", "--require-hashes", "--requirement", str(LOCK))
    site = tmp_path / "site"
    site.mkdir()
    checkout_in(site)

    def run(*arguments: str) -> str:
        return production.run("python", *arguments, folder=site, **PRODUCTION)

    run("manage.py", "collectstatic", "--no-input")
    checked = run("manage.py", "check")
    loaded = run("-c", "import project.wsgi; print(project.wsgi.application)")

    assert checked == "System check identified no issues (0 silenced).\n"
    assert "WsgiApplication" in loaded
