"""The names of browsers and operating systems, from what browsers send.

Only for people to recognize a session: a browser can send anything.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

# In this order, because a browser also names those that it is compatible with.
_BROWSERS = [
    ("Edge", r"\bEdg(e|A|iOS)?/"),
    ("Opera", r"\b(OPR|OPT|Opera)\b"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Vivaldi", r"\bVivaldi/"),
    ("Firefox", r"\b(Firefox|FxiOS)/"),
    ("Chrome", r"\b(Chrome|CriOS|Chromium|HeadlessChrome)/"),
    ("Safari", r"\bVersion/[\d.]+ .*Safari/"),
    ("Internet Explorer", r"\b(MSIE |Trident/)"),
    ("curl", r"^curl/"),
]
_SYSTEMS = [
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("Android", r"\bAndroid\b"),
    ("Windows", r"\bWindows\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("macOS", r"\bMac OS X\b|\bMacintosh\b"),
    ("Linux", r"\bLinux\b|\bX11\b"),
]


def readable(user_agent: str) -> str:
    """The browser and its system, as far as they are known, in the language of the page."""
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("Unknown browser")


def _first(names: list[tuple[str, str]], text: str) -> str:
    return next((name for name, pattern in names if re.search(pattern, text)), "")
