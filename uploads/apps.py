"""The uploads app, and its bucket in the CloudFormation template, created if it has a name.

No policy can open the bucket to the public. An interrupted upload can be continued for seven days:
then a rule of the bucket removes its parts, which S3 stores and bills until they are aborted.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-s3-bucket.html
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.apps import AppConfig


class UploadsConfig(AppConfig):
    name = "uploads"

    @property
    def cloudformation(self) -> dict[str, dict[str, Any]]:
        """What the app adds to the template: `cloudformation.json`."""
        text = Path(self.path, "cloudformation.json").read_text(encoding="utf-8")
        template: dict[str, dict[str, Any]] = json.loads(text)
        return template
