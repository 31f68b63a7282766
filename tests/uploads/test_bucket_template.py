"""The bucket for uploads in the CloudFormation template; cfn-lint reads it in tests/dynamo."""

from __future__ import annotations

from tests.cloudformation import printed


def test_the_template_creates_a_bucket_only_if_it_has_a_name() -> None:
    document = printed()

    condition = document["Resources"]["UploadsBucket"]["Condition"]
    assert document["Parameters"]["UploadsBucketName"]["Default"] == ""
    assert document["Outputs"]["UploadsBucketArn"]["Condition"] == condition
    assert document["Conditions"][condition] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "UploadsBucketName"}, ""]}]
    }


def test_old_multipart_uploads_are_aborted_after_a_week() -> None:
    properties = printed()["Resources"]["UploadsBucket"]["Properties"]

    assert properties["LifecycleConfiguration"]["Rules"] == [
        {
            "Id": "AbortOldMultipartUploads",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        }
    ]


def test_the_bucket_is_encrypted_closed_to_the_public_and_outlives_its_stack() -> None:
    bucket = printed()["Resources"]["UploadsBucket"]

    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert all(bucket["Properties"]["PublicAccessBlockConfiguration"].values())
    assert bucket["Properties"]["BucketEncryption"]
