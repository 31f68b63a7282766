"""botocore's parser of answers, for answers that are not DynamoDB's.

A proxy, a load balancer or a captive portal may answer instead: with text that is not UTF-8, JSON
that is not an object, members of other types. botocore's parser lets a `UnicodeDecodeError`, a
`TypeError` and more escape for these, and takes some for a success. Here each is an
`HTTPClientError`, as for a reply that was lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import HTTPClientError
from botocore.parsers import JSONParser, ResponseParserError, ResponseParserFactory

#: What reading an answer of another form may raise; the last one is deep nesting.
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


class AnswerParser(JSONParser):
    """Raises `HTTPClientError`, and nothing else, for what it cannot read."""

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        """As botocore's, but `Error.Code` and `Error.Message` and those of reasons are strings."""
        try:
            parsed = super().parse(response, shape)
            if not isinstance(parsed, dict):
                raise ValueError("not an object")
            _check_error(parsed.get("Error", {}))
            for reason in parsed.get("CancellationReasons") or ():
                _check_error(reason)
        except (*UNREADABLE, ResponseParserError) as error:
            raise HTTPClientError(error=error) from error
        return parsed

    def _handle_json_body(self, raw_body: bytes, shape: Any) -> Any:
        # botocore's reads text that is not JSON as an object without members of ours.
        return self._parse_shape(shape, json.loads(raw_body))  # type: ignore[attr-defined]  # absent from the stubs


class AnswerParserFactory(ResponseParserFactory):
    """For a botocore session: `AnswerParser` for DynamoDB, botocore's for all else."""

    def create_parser(self, protocol_name: str) -> Any:
        """The parser of answers in this protocol."""
        return AnswerParser() if protocol_name == "json" else super().create_parser(protocol_name)


def _check_error(told: Any) -> None:
    # The message may be absent or null, the code never.
    message = told.get("Message")
    told["Message"] = "" if message is None else message
    for name in ("Code", "Message"):
        if not isinstance(told.get(name, ""), str):
            raise ValueError(f"{name} is not a string")
