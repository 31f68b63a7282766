"""The bucket for uploads in the CloudFormation template; cfn-lint reads it in tests/dynamo."""

from tests.cloudformation import printed


def test_the_bucket_is_optional_and_closed_and_outlives_its_stack() -> None:
    document = printed()
    bucket = document["Resources"]["UploadsBucket"]

    # Without a name there is no bucket.
    assert document["Parameters"]["UploadsBucketName"]["Default"] == ""
    assert document["Outputs"]["UploadsBucketArn"]["Condition"] == bucket["Condition"]
    assert document["Conditions"][bucket["Condition"]] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "UploadsBucketName"}, ""]}]
    }
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert all(bucket["Properties"]["PublicAccessBlockConfiguration"].values())
    assert bucket["Properties"]["BucketEncryption"]
    [rule] = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == "Enabled"
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
