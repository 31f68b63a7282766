"""The uploads app, and its bucket in the CloudFormation template, created if it has a name.

The bucket's lifecycle rule removes the parts of multipart uploads that are never completed: S3
stores and bills them until they are aborted.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-s3-bucket.html
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig

#: An interrupted upload can be continued for this many days; then it starts again.
ABORT_AFTER_DAYS = 7

_CONDITION = "HasUploadsBucket"
_NAME = {"Ref": "UploadsBucketName"}

CLOUDFORMATION: dict[str, dict[str, Any]] = {
    "Parameters": {
        "UploadsBucketName": {
            "Type": "String",
            "Default": "",
            "AllowedPattern": "^$|^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
            "Description": "Name of the bucket to create for uploads; empty for no bucket",
        }
    },
    "Conditions": {_CONDITION: {"Fn::Not": [{"Fn::Equals": [_NAME, ""]}]}},
    "Resources": {
        "UploadsBucket": {
            "Type": "AWS::S3::Bucket",
            "Condition": _CONDITION,
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BucketName": _NAME,
                # Encrypted, and no policy can open it to the public.
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [
                        {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
                    ]
                },
                "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                "PublicAccessBlockConfiguration": {
                    "BlockPublicAcls": True,
                    "BlockPublicPolicy": True,
                    "IgnorePublicAcls": True,
                    "RestrictPublicBuckets": True,
                },
                "LifecycleConfiguration": {
                    "Rules": [
                        {
                            "Id": "AbortOldMultipartUploads",
                            "Status": "Enabled",
                            "AbortIncompleteMultipartUpload": {
                                "DaysAfterInitiation": ABORT_AFTER_DAYS
                            },
                        }
                    ]
                },
            },
        }
    },
    "Outputs": {
        "UploadsBucketArn": {
            "Condition": _CONDITION,
            "Value": {"Fn::GetAtt": ["UploadsBucket", "Arn"]},
        }
    },
}


class UploadsConfig(AppConfig):
    name = "uploads"
    cloudformation = CLOUDFORMATION
