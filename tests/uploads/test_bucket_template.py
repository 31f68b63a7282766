"""The bucket for uploads in the CloudFormation template; cfn-lint reads it in tests/dynamo."""

from tests.cloudformation import printed


def test_the_template_creates_a_bucket_only_if_it_has_a_name() -> None:
    document = printed()

    condition = document["Resources"]["UploadsBucket"]["Condition"]
    assert document["Parameters"]["UploadsBucketName"]["Default"] == ""
    assert document["Outputs"]["UploadsBucketArn"]["Condition"] == condition
    assert document["Conditions"][condition] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "UploadsBucketName"}, ""]}]
    }


def test_the_bucket_is_closed_and_outlives_its_stack_and_old_parts_are_deleted() -> None:
    bucket = printed()["Resources"]["UploadsBucket"]

    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert all(bucket["Properties"]["PublicAccessBlockConfiguration"].values())
    assert bucket["Properties"]["BucketEncryption"]
    [rule] = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == "Enabled"
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
