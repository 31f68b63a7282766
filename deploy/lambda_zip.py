"""Makes the zip of the AWS Lambda function: the site, its static files and production's packages.

    python deploy/lambda_zip.py --arch arm64 dist/lambda-arm64.zip

Wheels are chosen for the function's platform, whatever machine this runs on; nothing is built from
source. Python's own compiled files are added where a Python 3.13 is at hand: in a zip without them
the function compiles every module at each cold start, because it cannot write to its own folder.

Source: https://docs.aws.amazon.com/lambda/latest/dg/python-package.html
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PYTHONS = ("3.13", "3.12", "3.11")
#: The function's platforms, as AWS and as wheels call them. Amazon Linux 2023 has glibc 2.34.
PLATFORMS = {"arm64": "aarch64", "x86_64": "x86_64"}
_GLIBCS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")

#: The site's code, its templates and its translations.
SITE = (
    *("accounts", "dynamo", "invoices", "locale", "locks", "outbox", "project"),
    *("sequences", "staff", "templates", "uploads"),
)

#: A web server, which Lambda has in itself, and what only that needs.
PACKAGES_LEFT_OUT = ("granian", "granian-*", "click", "click-*", "bin")
#: Data of packages that the site never reads.
DATA_LEFT_OUT = ("boto3/examples", "phonenumbers/carrierdata", "phonenumbers/geodata")
#: The services of AWS that are called; botocore describes 400 more.
SERVICES = ("dynamodb", "lambda", "s3", "sso", "sso-oidc", "sts")
#: The locales of the languages of pages and invoices. Babel formats numbers and money by them.
LOCALES = ("de", "de_DE", "en", "en_GB", "en_US", "fr", "fr_FR", "ja", "ja_JP", "root")

#: AWS's limit for the unpacked zip.
MOST_BYTES = 250 * 1024 * 1024
#: The time of every file in the zip: equal contents give an equal zip.
_TIME = (1980, 1, 1, 0, 0, 0)


def main() -> int:
    """Make the zip and print its size; 1 if it is larger than AWS takes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arch", choices=PLATFORMS, default="arm64")
    parser.add_argument("--python", choices=PYTHONS, default=PYTHONS[0])
    parser.add_argument("zip", type=Path, help="the file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_packages(folder, options.arch, options.python)
        remove_unread(folder)
        copy_site(folder)
        compile_modules(folder, options.python)
        total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{_megabytes(total)} MB unpacked")
        if total > MOST_BYTES:
            print(f"AWS takes at most {_megabytes(MOST_BYTES)} MB unpacked.", file=sys.stderr)
            return 1
        options.zip.parent.mkdir(parents=True, exist_ok=True)
        pack(folder, options.zip)
    print(f"{options.zip}: {_megabytes(options.zip.stat().st_size)} MB")
    return 0


def install_packages(folder: Path, arch: str, python: str) -> None:
    """Install production's packages, checked against the hashes of the lock file."""
    platforms = [f"--platform={glibc}_{PLATFORMS[arch]}" for glibc in _GLIBCS]
    _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--require-hashes", "--no-deps", "--no-compile", "--only-binary=:all:"),
        *(f"--python-version={python}", "--implementation=cp", *platforms),
        *(f"--target={folder}", f"--requirement={ROOT / 'requirements.lock'}"),
    )


def remove_unread(folder: Path) -> None:
    """Remove packages and data that the function does not use."""
    for pattern in PACKAGES_LEFT_OUT:
        for path in folder.glob(pattern):
            shutil.rmtree(path)
    for name in DATA_LEFT_OUT:
        shutil.rmtree(folder / name)
    for path in (folder / "botocore" / "data").iterdir():
        if path.is_dir() and path.name not in SERVICES:
            shutil.rmtree(path)
    for path in (folder / "babel" / "locale-data").iterdir():
        if path.stem not in LOCALES:
            path.unlink()


def copy_site(folder: Path) -> None:
    """Copy the site and collect its static files, as production names them."""
    for name in SITE:
        ignored = shutil.ignore_patterns("__pycache__", "*.po")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "manage.py", folder)
    _run(
        *(sys.executable, "-B", "manage.py", "collectstatic", "--no-input", "--verbosity=0"),
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            # The packages in the folder are not used, because they are for another machine.
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]]),
            "DJANGO_SECRET_KEY": "of-the-build-only",
            "DJANGO_ALLOWED_HOSTS": "localhost",
            "AWS_REGION": "us-east-1",
        },
    )


def compile_modules(folder: Path, python: str) -> None:
    """Compile every module for the function's Python, if this machine has it."""
    for program in (sys.executable, f"python{python}"):
        asked = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if shutil.which(program) is None:
            continue
        found = subprocess.run(asked, check=False, capture_output=True, text=True)
        if found.stdout.strip() == python:
            _run(
                *(program, "-m", "compileall", "-q", "-j", "0"),
                *("--invalidation-mode=unchecked-hash", "-s", str(folder), "-p", "/var/task"),
                str(folder),
            )
            return
    print(f"Not compiled, because there is no python{python}: cold starts take seconds longer.")


def pack(folder: Path, target: Path) -> None:
    """Write the zip: the files in the order of their names, all with one time."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o755 if path.stat().st_mode & 0o100 else 0o644) << 16
                packed.writestr(entry, path.read_bytes())


def _megabytes(size: int) -> str:
    return f"{size / 1024 / 1024:.1f}"


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=True)


if __name__ == "__main__":
    sys.exit(main())
