"""Sphinx makes a site of docs/ (`make docs`). The pages are plain Markdown."""

import os
import re
from importlib import import_module
from pathlib import Path

os.environ |= {
    "DJANGO_DEBUG": "on",
    "DJANGO_SECRET_KEY": "read by sphinx only",
    "DJANGO_SETTINGS_MODULE": "project.settings",
}

import django

django.setup()

# Packages load their names at first use, and autodoc lists only what is loaded.
for package in map(import_module, ("dynamo", "dynamo.auth", "locks", "outbox", "sequences")):
    vars(package).update({name: getattr(package, name) for name in package.__all__})

HERE = Path(__file__).parent

project = "Django on DynamoDB"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = project
html_copy_source = False

# Headings have the anchors that a repository gives them.
myst_heading_anchors = 4
# Docstrings write code in single backticks.
default_role = "code"
# Each model has the errors as attributes. A name without its module has several targets.
suppress_warnings = ["ref.python"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Consoles, .env files and mixed blocks have no lexer.
highlight_language = "none"


def setup(app):
    app.connect("source-read", _adapt)
    app.connect("autodoc-process-docstring", _show_code, priority=100)


def _adapt(_app, name, source):
    """Name what is outside of docs/ without a link, and make the menu from the index."""

    def link(found):
        text, target = found.groups()
        path = (HERE / target.partition("#")[0]).resolve()
        return found[0] if path.is_relative_to(HERE) and path.is_file() else text

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)", link, source[0])
    if name == "index":
        source[0] = re.sub(r"^## (.+)\n\n((?:- .+\n(?:  .+\n)*)+)", _menu, source[0], flags=re.M)


def _menu(found):
    pages = "\n".join(re.findall(r"\]\(([\w/]+)\.(?:md|rst)\)", found[2]))
    return f"{found[0]}\n```{{toctree}}\n:hidden:\n:caption: {found[1]}\n\n{pages}\n```\n"


def _show_code(_app, _what, _name, _thing, _options, lines):
    """An indented block after an empty line is code."""
    for place in reversed(range(1, len(lines))):
        last = next((line for line in reversed(lines[:place]) if line), "")
        if lines[place][:4] == "    " and not lines[place - 1] and last[:1] not in ("", " "):
            lines[place:place] = ["::", ""]
