"""What every answer tells the browser that shows it: nothing from elsewhere, nothing unasked."""

from __future__ import annotations

from csp.constants import NONE, SELF

# There is no script, style or handler within a page, so none has to be let through there.
CONTENT = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [NONE],
        "connect-src": [NONE],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}


def with_toolbar(content: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    """The policy `content`, which also lets the debug toolbar's script ask for its panels."""
    return {"DIRECTIVES": content["DIRECTIVES"] | {"connect-src": [SELF]}}


# What browsers ask about; of a name that they do not know they complain on their console.
PERMISSIONS: dict[str, list[str]] = {
    name: []
    for name in (
        "accelerometer",
        "autoplay",
        "browsing-topics",
        "camera",
        "clipboard-read",
        "clipboard-write",
        "display-capture",
        "encrypted-media",
        "fullscreen",
        "gamepad",
        "geolocation",
        "gyroscope",
        "hid",
        "identity-credentials-get",
        "idle-detection",
        "keyboard-map",
        "local-fonts",
        "magnetometer",
        "microphone",
        "midi",
        "otp-credentials",
        "payment",
        "picture-in-picture",
        "publickey-credentials-create",
        "publickey-credentials-get",
        "screen-wake-lock",
        "serial",
        "storage-access",
        "sync-xhr",
        "usb",
        "window-management",
        "xr-spatial-tracking",
    )
}

# By `project.middleware.HeadersMiddleware`.
ANSWER = {
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not "no-referrer": with that browsers hide where a form comes from, and Django refuses it.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
