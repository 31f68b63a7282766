"""What commands about users share."""

from __future__ import annotations

from typing import TextIO

from django.core.exceptions import ValidationError


def read_line(file: TextIO, default: str | None = None) -> str:
    """A line without its end. At the end of the file `default`.

    Raises:
        ValidationError: the line is not in the file's encoding.
        EOFError: the file has ended, and no default is given.
    """
    try:
        line = file.readline()
    except UnicodeDecodeError as error:
        raise ValidationError("This is not valid text.") from error
    if not line and default is None:
        raise EOFError
    return line.rstrip("\r\n") or default or ""
