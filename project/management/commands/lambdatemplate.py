"""`lambdatemplate`: the site on AWS Lambda and its tables as one SAM template. See docs/lambda.md.

While nobody uses the site, what it creates costs nothing, except what docs/lambda.md names.

Sources:
https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-resource-function.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_ApiGatewayV2.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_CloudFront.html
"""

from __future__ import annotations

import json
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError

from accounts.emails import mails
from dynamo.extending import Part, all_tables, template
from dynamo.management.base import DynamoCommand
from invoices.sending import views as sending
from staff.reports import KINDS, Kind
from uploads.apps import PRIVATE_BUCKET

#: How long the bucket keeps an export.
EXPORT_DAYS = 1


class Command(DynamoCommand):
    help = "Print a SAM template of the site on AWS Lambda, with its tables, as JSON."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = lambda_template()
        except OSError as error:
            # The function's own zip lacks them.
            raise CommandError(f"The policies cannot be read: {error}") from error
        self.stdout.write(json.dumps(made, indent=1))


def lambda_template() -> dict[str, Any]:
    """What `cloudformation` prints, with the site. The tables can also be those of another stack.

    Raises:
        OSError: the policies in deploy/ cannot be read.
    """
    parts = (getattr(config, "cloudformation", None) for config in apps.get_app_configs())
    site: tuple[Part, ...] = (
        _PARAMETERS,
        _ADDRESS,
        _STATIC,
        _EXPORTS,
        {"Resources": _roles()},
        _functions(),
        _schedules(),
        _ALARMS,
    )
    made = template(all_tables(), [*filter(None, parts), *site])
    for name, resource in made["Resources"].items():
        if resource["Type"] == "AWS::DynamoDB::Table":
            for each in (resource, made["Outputs"][f"{name}Name"], made["Outputs"][f"{name}Arn"]):
                each["Condition"] = "CreatesTables"
    return made | {
        "Transform": "AWS::Serverless-2016-10-31",
        "Description": "The site on AWS Lambda, printed by manage.py lambdatemplate",
    }


def _sub(text: str) -> dict[str, str]:
    return {"Fn::Sub": text}


def _if(condition: str, then: Any, otherwise: Any = None) -> dict[str, Any]:
    """Without `otherwise` the property is left out."""
    return {"Fn::If": [condition, then, otherwise or {"Ref": "AWS::NoValue"}]}


def _is_given(parameter: str) -> dict[str, Any]:
    return {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}


def _text(description: str, default: str | None = None, **more: Any) -> dict[str, Any]:
    given = {} if default is None else {"Default": default}
    return {"Type": "String", "Description": description, **given, **more}


def _number(description: str, default: int, least: int, most: int) -> dict[str, Any]:
    return {
        "Type": "Number",
        "Description": description,
        "Default": default,
        "MinValue": least,
        "MaxValue": most,
    }


_CONCURRENCY = (
    "Empty, or the number of processes that AWS keeps free for it and that it cannot exceed"
)

_PARAMETERS: Part = {
    "Parameters": {
        "CodeBucket": _text("The bucket that has the function's zip"),
        "CodeKey": _text(
            "The key of the zip. A new version needs a new key, and so do new settings of the pages"
        ),
        "Architecture": _text(
            "Of the zip. arm64 costs a fifth less", "arm64", AllowedValues=["arm64", "x86_64"]
        ),
        "SecretKeyParameter": _text(
            "The name of the SecureString in SSM that has the secret keys",
            "/site/secret-keys",
            AllowedPattern="^/[a-zA-Z0-9_./-]+$",
        ),
        "EmailUrl": _text(
            "smtp+tls://user:password@host:587. With the default, mails fail",
            "smtp://localhost:25",
            NoEcho=True,
        ),
        "FromEmail": _text("The sender of mails", "webmaster@localhost"),
        "TimeZone": _text("Decides the day of an invoice", "UTC"),
        "DomainName": _text("The site's own domain; empty: the API's", ""),
        "CertificateId": _text(
            "The last part of the ARN of its certificate in ACM, in the stack's region", "none"
        ),
        "Tables": _text(
            "existing: tables with the same names are already there",
            "create",
            AllowedValues=["create", "existing"],
        ),
        "SiteMemory": _number(
            "MB of the pages' function. 1769 MB are one vCPU, and less is a part of one. A process "
            "needs 100 MB, its PDFs 100 MB more, and two password hashes 38 MB",
            *(1024, 512, 10240),
        ),
        "SiteSeconds": _number(
            "Time-out of a page. It gives up on DynamoDB within 10 seconds, and the API waits for "
            "30 at most",
            *(15, 10, 29),
        ),
        "SiteConcurrency": _text(_CONCURRENCY, "", AllowedPattern="^[0-9]*$"),
        "WorkMemory": _number("MB of the functions of commands and exports", *(1024, 512, 10240)),
        "WorkSeconds": _number(
            "Time-out of a command or an export. 900 is AWS's maximum, as commands read whole "
            "tables",
            *(900, 60, 900),
        ),
        "CommandsConcurrency": _text(_CONCURRENCY, "", AllowedPattern="^[0-9]*$"),
        "ExportsConcurrency": _text(_CONCURRENCY, "", AllowedPattern="^[0-9]*$"),
        "RequestsPerSecond": _number(
            "The API answers more with 429, which limits the bill of an attack", *(50, 1, 5000)
        ),
        "SnapStart": _text(
            "on: cold starts restore a snapshot. AWS bills it all the time, for each version",
            "off",
            AllowedValues=["on", "off"],
        ),
        "DeploymentType": _text(
            "How a new version gets its visitors; AllAtOnce ignores alarms",
            "Canary10Percent5Minutes",
            AllowedValues=[
                "AllAtOnce",
                "Canary10Percent5Minutes",
                "Canary10Percent30Minutes",
                "Linear10PercentEvery1Minute",
                "Linear10PercentEvery10Minutes",
            ],
        ),
        "LogDays": {
            "Type": "Number",
            "Description": "How long logs are kept",
            "Default": 30,
            "AllowedValues": [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731],
        },
        "AlarmEmail": _text("Gets a mail for each alarm, once its link is confirmed", ""),
    },
    "Conditions": {
        "CreatesTables": {"Fn::Equals": [{"Ref": "Tables"}, "create"]},
        "HasDomain": _is_given("DomainName"),
        "HasAlarmEmail": _is_given("AlarmEmail"),
        "IsSiteReserved": _is_given("SiteConcurrency"),
        "AreCommandsReserved": _is_given("CommandsConcurrency"),
        "AreExportsReserved": _is_given("ExportsConcurrency"),
        "UsesSnapStart": {"Fn::Equals": [{"Ref": "SnapStart"}, "on"]},
        "IsGradual": {"Fn::Not": [{"Fn::Equals": [{"Ref": "DeploymentType"}, "AllAtOnce"]}]},
    },
}

# The address ------------------------------------------------------------------------------------

_API_HOST = _sub("${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}")
_HOST = _if("HasDomain", {"Ref": "DomainName"}, _API_HOST)

# An HTTP API and not a function URL, which has no domain of its own: behind CloudFront the client's
# address would be CloudFront's, and CloudFront's signature does not cover the body of a POST.
_ADDRESS: Part = {
    "Resources": {
        "Api": {
            "Type": "AWS::ApiGatewayV2::Api",
            "Properties": {
                "Name": _sub("${AWS::StackName}"),
                "ProtocolType": "HTTP",
                # One address: the limits of an attack on the other would not be seen.
                "DisableExecuteApiEndpoint": _if("HasDomain", True, False),
            },
        },
        "ApiIntegration": {
            "Type": "AWS::ApiGatewayV2::Integration",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "IntegrationType": "AWS_PROXY",
                "IntegrationUri": {
                    "Fn::Sub": [
                        "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31"
                        "/functions/${Live}/invocations",
                        {"Live": {"Ref": "Site.Alias"}},
                    ]
                },
                "PayloadFormatVersion": "2.0",
            },
        },
        "ApiRoute": {
            "Type": "AWS::ApiGatewayV2::Route",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "RouteKey": "$default",
                "Target": _sub("integrations/${ApiIntegration}"),
            },
        },
        "ApiStage": {
            "Type": "AWS::ApiGatewayV2::Stage",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                # Not part of the path, as other names are.
                "StageName": "$default",
                "AutoDeploy": True,
                "DefaultRouteSettings": {
                    "ThrottlingRateLimit": {"Ref": "RequestsPerSecond"},
                    "ThrottlingBurstLimit": {"Ref": "RequestsPerSecond"},
                },
            },
        },
        "ApiPermission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "Action": "lambda:InvokeFunction",
                "FunctionName": {"Ref": "Site.Alias"},
                "Principal": "apigateway.amazonaws.com",
                "SourceArn": _sub(
                    "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*"
                ),
            },
        },
        "Domain": {
            "Type": "AWS::ApiGatewayV2::DomainName",
            "Condition": "HasDomain",
            "Properties": {
                "DomainName": {"Ref": "DomainName"},
                "DomainNameConfigurations": [
                    {
                        "CertificateArn": _sub(
                            "arn:${AWS::Partition}:acm:${AWS::Region}:${AWS::AccountId}"
                            ":certificate/${CertificateId}"
                        ),
                        "EndpointType": "REGIONAL",
                        "SecurityPolicy": "TLS_1_2",
                    }
                ],
            },
        },
        "DomainMapping": {
            "Type": "AWS::ApiGatewayV2::ApiMapping",
            "Condition": "HasDomain",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "DomainName": {"Ref": "Domain"},
                "Stage": {"Ref": "ApiStage"},
            },
        },
    },
    "Outputs": {
        "Address": {"Value": {"Fn::Join": ["", ["https://", _HOST]]}},
        "DomainTarget": {
            "Condition": "HasDomain",
            "Value": {"Fn::GetAtt": ["Domain", "RegionalDomainName"]},
        },
    },
}

# Static files -----------------------------------------------------------------------------------

# CloudFront must not pass on pages: their clients would all have its addresses, and limits by
# address would fail.
_REFUSE = """\
function handler(event) {
    return {statusCode: 404, statusDescription: 'Not Found'};
}
"""

# Cache policies that AWS manages. The first one follows the headers of the site.
# Source: AmazonCloudFront/latest/DeveloperGuide/using-managed-cache-policies.html
_CACHING_OPTIMIZED = "658327ea-f89d-4fab-a63d-7e88639e58f6"
_CACHING_DISABLED = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"

_BEHAVIOR = {"TargetOriginId": "site", "ViewerProtocolPolicy": "https-only"}

_STATIC: Part = {
    "Resources": {
        "RefusePages": {
            "Type": "AWS::CloudFront::Function",
            "Properties": {
                "Name": _sub("${AWS::StackName}-${AWS::Region}"),
                "AutoPublish": True,
                "FunctionConfig": {
                    "Comment": "Only static files are served here",
                    "Runtime": "cloudfront-js-2.0",
                },
                "FunctionCode": _REFUSE,
            },
        },
        "StaticFiles": {
            "Type": "AWS::CloudFront::Distribution",
            "Properties": {
                "DistributionConfig": {
                    "Enabled": True,
                    "Comment": _sub("Static files of ${AWS::StackName}"),
                    "HttpVersion": "http2and3",
                    "IPV6Enabled": True,
                    "PriceClass": "PriceClass_100",
                    "Origins": [
                        {
                            "Id": "site",
                            "DomainName": _HOST,
                            "CustomOriginConfig": {
                                "OriginProtocolPolicy": "https-only",
                                "OriginSSLProtocols": ["TLSv1.2"],
                            },
                        }
                    ],
                    "DefaultCacheBehavior": {
                        **_BEHAVIOR,
                        "CachePolicyId": _CACHING_DISABLED,
                        "FunctionAssociations": [
                            {
                                "EventType": "viewer-request",
                                "FunctionARN": {"Fn::GetAtt": ["RefusePages", "FunctionARN"]},
                            }
                        ],
                    },
                    "CacheBehaviors": [
                        {
                            **_BEHAVIOR,
                            "PathPattern": "/static/*",
                            "CachePolicyId": _CACHING_OPTIMIZED,
                            "Compress": True,
                        }
                    ],
                    # A file of the new version may be asked of the old one during a deployment.
                    "CustomErrorResponses": [{"ErrorCode": 404, "ErrorCachingMinTTL": 0}],
                }
            },
        },
    },
    "Outputs": {"StaticHost": {"Value": _sub("https://${StaticFiles.DomainName}")}},
}

# Exports ----------------------------------------------------------------------------------------

_EXPORTS: Part = {
    "Resources": {
        "ExportsBucket": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                **PRIVATE_BUCKET,
                "LifecycleConfiguration": {
                    "Rules": [
                        {
                            "Id": "DeleteOldExports",
                            "Status": "Enabled",
                            "ExpirationInDays": EXPORT_DAYS,
                            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": EXPORT_DAYS},
                        }
                    ]
                },
            },
        }
    },
    "Outputs": {"ExportsBucketName": {"Value": {"Ref": "ExportsBucket"}}},
}

# Rights -----------------------------------------------------------------------------------------

# By its name: its role and its own environment have it, which the function refers to.
_EXPORTS_NAME = _sub("${AWS::StackName}-exports")

_SECRET_KEY_ARN = _sub(
    "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter${SecretKeyParameter}"
)

_READ_SECRET_KEY = [
    {"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": _SECRET_KEY_ARN},
    {
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": _sub("arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"),
        "Condition": {
            "StringEquals": {
                "kms:ViaService": _sub("ssm.${AWS::Region}.amazonaws.com"),
                "kms:EncryptionContext:PARAMETER_ARN": _SECRET_KEY_ARN,
            }
        },
    },
]


def _roles() -> dict[str, Any]:
    site = {"Site": _statements("site"), "SecretKey": _READ_SECRET_KEY}
    return {
        "SiteRole": _role(
            "lambda", {**site, "Exports": _statements("exports"), "Log": _write_log("SiteLog")}
        ),
        "CommandsRole": _role(
            "lambda",
            {**site, "Reports": _statements("reports"), "Log": _write_log("CommandsLog")},
        ),
        "SchedulesRole": _role(
            "scheduler",
            {
                "Commands": [
                    {
                        "Effect": "Allow",
                        "Action": "lambda:InvokeFunction",
                        "Resource": {"Fn::GetAtt": ["Commands", "Arn"]},
                    }
                ]
            },
        ),
    }


def _role(service: str, policies: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": f"{service}.amazonaws.com"},
                        "Action": "sts:AssumeRole",
                    }
                ],
            },
            "Policies": [
                {
                    "PolicyName": name,
                    "PolicyDocument": {"Version": "2012-10-17", "Statement": statements},
                }
                for name, statements in policies.items()
            ],
        },
    }


def _statements(policy: str) -> list[dict[str, Any]]:
    """The statements of deploy/iam-<policy>.json, for the resources of this template."""
    text = (settings.BASE_DIR / "deploy" / f"iam-{policy}.json").read_text(encoding="utf-8")
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    for statement in statements:
        found = statement["Resource"]
        arns = [found] if isinstance(found, str) else found
        statement["Resource"] = [_sub(_of_this_stack(arn)) for arn in arns]
    return statements


def _of_this_stack(arn: str) -> str:
    for written, meant in {
        "arn:aws:": "arn:${AWS::Partition}:",
        "REGION": "${AWS::Region}",
        "ACCOUNT": "${AWS::AccountId}",
        "BUCKET": "${ExportsBucket}",
        "FUNCTION": _EXPORTS_NAME["Fn::Sub"],
        "PREFIX": settings.DYNAMODB_TABLE_PREFIX,
    }.items():
        arn = arn.replace(written, meant)
    return arn


def _write_log(log: str) -> list[dict[str, Any]]:
    return [
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": {"Fn::GetAtt": [log, "Arn"]},
        }
    ]


# Functions --------------------------------------------------------------------------------------


def _functions() -> Part:
    environment = {
        "DJANGO_ALLOWED_HOSTS": _HOST,
        "DJANGO_SECRET_KEY_PARAMETER": {"Ref": "SecretKeyParameter"},
        "DJANGO_STATIC_HOST": _sub("https://${StaticFiles.DomainName}"),
        "DJANGO_TIME_ZONE": {"Ref": "TimeZone"},
        "DJANGO_FROM_EMAIL": {"Ref": "FromEmail"},
        "EMAIL_URL": {"Ref": "EmailUrl"},
        "ACCOUNTS_PREVENT_ENUMERATION": "on",
        "ACCOUNTS_EMAIL_CHANGE": "confirm",
        "DYNAMODB_TABLE_PREFIX": settings.DYNAMODB_TABLE_PREFIX,
        # The metric filter reads JSON.
        "DJANGO_LOG_FORMAT": "json",
        "DJANGO_LOG_COMMANDS": "on",
        "EXPORTS_BUCKET": {"Ref": "ExportsBucket"},
        "EXPORTS_FUNCTION": _EXPORTS_NAME,
    }
    made_of: dict[str, Any] = {
        "Runtime": "python3.13",
        "Architectures": [{"Ref": "Architecture"}],
        "CodeUri": {"Bucket": {"Ref": "CodeBucket"}, "Key": {"Ref": "CodeKey"}},
        "Environment": {"Variables": environment},
    }
    for_work = {
        "MemorySize": {"Ref": "WorkMemory"},
        "Timeout": {"Ref": "WorkSeconds"},
    }
    as_site = {
        "Role": {"Fn::GetAtt": ["SiteRole", "Arn"]},
        "LoggingConfig": {"LogGroup": {"Ref": "SiteLog"}},
    }
    properties: dict[str, dict[str, Any]] = {
        "Site": {
            "Description": "Pages",
            "Handler": "project.serverless.handler",
            **as_site,
            "MemorySize": {"Ref": "SiteMemory"},
            "Timeout": {"Ref": "SiteSeconds"},
            "ReservedConcurrentExecutions": _if("IsSiteReserved", {"Ref": "SiteConcurrency"}),
            "SnapStart": {"ApplyOn": _if("UsesSnapStart", "PublishedVersions", "None")},
            "AutoPublishAlias": "live",
            # What changes in this template makes a new version, too, and not only a new zip. Values
            # of parameters do not: SAM knows them in `CodeUri` only.
            # Source: https://github.com/aws/serverless-application-model/issues/3820
            "AutoPublishAliasAllProperties": True,
            "DeploymentPreference": {
                "Type": {"Ref": "DeploymentType"},
                # AllAtOnce also brings the fix of a version that raises them.
                "Alarms": _if(
                    "IsGradual",
                    [{"Ref": "SiteErrors"}, {"Ref": "PageErrors"}],
                    [{"Ref": "AWS::NoValue"}],
                ),
            },
        },
        "Exports": {
            "Description": "Exports that pages ask for",
            "FunctionName": _EXPORTS_NAME,
            "Handler": "project.serverless.export_handler",
            **as_site,
            **for_work,
            "ReservedConcurrentExecutions": _if(
                "AreExportsReserved", {"Ref": "ExportsConcurrency"}
            ),
        },
        "Commands": {
            "Description": "Scheduled and one-off commands",
            "FunctionName": _sub("${AWS::StackName}-commands"),
            "Handler": "project.serverless.run_command",
            "Role": {"Fn::GetAtt": ["CommandsRole", "Arn"]},
            "LoggingConfig": {"LogGroup": {"Ref": "CommandsLog"}},
            **for_work,
            # What failed may have done a part of its work: people decide whether to repeat it.
            "EventInvokeConfig": {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 3600},
            "ReservedConcurrentExecutions": _if(
                "AreCommandsReserved", {"Ref": "CommandsConcurrency"}
            ),
        },
    }
    return {
        "Resources": {
            **{
                name: {"Type": "AWS::Serverless::Function", "Properties": made_of | others}
                for name, others in properties.items()
            },
            "SiteLog": _log_group(),
            "CommandsLog": _log_group(),
        },
        "Outputs": {f"{name}Name": {"Value": {"Ref": name}} for name in properties},
    }


def _log_group() -> dict[str, Any]:
    return {
        "Type": "AWS::Logs::LogGroup",
        "DeletionPolicy": "Delete",
        "UpdateReplacePolicy": "Delete",
        "Properties": {"RetentionInDays": {"Ref": "LogDays"}},
    }


# Schedules --------------------------------------------------------------------------------------


def _schedules() -> Part:
    group = {
        "Type": "AWS::Scheduler::ScheduleGroup",
        "Properties": {"Name": _sub("${AWS::StackName}")},
    }
    schedules = {f"Store{name.title()}": _schedule(kind) for name, kind in KINDS.items()}
    return {"Resources": {"Schedules": group} | schedules}


def _schedule(kind: Kind) -> dict[str, Any]:
    minute, hour, *_every_day = kind.schedule.split()
    event = {"command": "storereport", "arguments": [kind.name]}
    return {
        "Type": "AWS::Scheduler::Schedule",
        "Properties": {
            "Description": f"manage.py storereport {kind.name}",
            "GroupName": {"Ref": "Schedules"},
            # AWS wants a year, and a ? for the day of the week.
            "ScheduleExpression": f"cron({minute} {hour} * * ? *)",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {
                "Arn": {"Fn::GetAtt": ["Commands", "Arn"]},
                "RoleArn": {"Fn::GetAtt": ["SchedulesRole", "Arn"]},
                "Input": json.dumps(event),
                "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 3600},
            },
        },
    }


# Alarms -----------------------------------------------------------------------------------------


def _alarm(
    description: str,
    namespace: str,
    metric: str,
    dimensions: dict[str, Any],
    *,
    threshold: int = 1,
    periods: int = 1,
    statistic: dict[str, str] | None = None,
) -> dict[str, Any]:
    """An alarm that goes off when `metric` reaches `threshold` in `periods` of five minutes."""
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmDescription": description,
            "Namespace": namespace,
            "MetricName": metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            **(statistic or {"Statistic": "Sum"}),
            "Period": 300,
            "EvaluationPeriods": periods,
            "Threshold": threshold,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            # Nobody uses the site.
            "TreatMissingData": "notBreaching",
            "AlarmActions": [{"Ref": "AlarmTopic"}],
            "OKActions": [{"Ref": "AlarmTopic"}],
        },
    }


# These two log a line for each mail that could not be sent, and nothing else.
_FAILED_MAILS = " || ".join(f'($.logger = "{each.logger.name}")' for each in (mails, sending))

_OF_SITE = {"FunctionName": {"Ref": "Site"}}
_NAMESPACE: Any = _sub("${AWS::StackName}")

# CloudWatch has ten alarms for nothing in each account.
_ALARMS: Part = {
    "Resources": {
        "AlarmTopic": {"Type": "AWS::SNS::Topic"},
        "AlarmSubscription": {
            "Type": "AWS::SNS::Subscription",
            "Condition": "HasAlarmEmail",
            "Properties": {
                "TopicArn": {"Ref": "AlarmTopic"},
                "Protocol": "email",
                "Endpoint": {"Ref": "AlarmEmail"},
            },
        },
        "FailedMailsFilter": {
            "Type": "AWS::Logs::MetricFilter",
            "Properties": {
                "LogGroupName": {"Ref": "SiteLog"},
                "FilterPattern": f"{{ {_FAILED_MAILS} }}",
                "MetricTransformations": [
                    {
                        "MetricName": "FailedMails",
                        "MetricNamespace": _NAMESPACE,
                        "MetricValue": "1",
                    }
                ],
            },
        },
        "SiteErrors": _alarm(
            "The pages' function did not start, crashed or ran out of time",
            *("AWS/Lambda", "Errors", _OF_SITE),
        ),
        "SiteThrottles": _alarm(
            "Pages were refused, because too many processes ran",
            *("AWS/Lambda", "Throttles", _OF_SITE),
        ),
        "SiteDuration": _alarm(
            "One page in twenty took five seconds for ten minutes",
            *("AWS/Lambda", "Duration", _OF_SITE),
            threshold=5000,
            periods=2,
            statistic={"ExtendedStatistic": "p95"},
        ),
        "PageErrors": _alarm(
            "Pages were answered with 500, 502, 503 or 504",
            *("AWS/ApiGateway", "5xx", {"ApiId": {"Ref": "Api"}}),
        ),
        "FailedMails": _alarm(
            "Mails could not be sent; the log of the pages' function says why",
            *(_NAMESPACE, "FailedMails", {}),
        ),
        "CommandErrors": _alarm(
            "A scheduled or one-off command failed or ran out of time",
            *("AWS/Lambda", "Errors", {"FunctionName": {"Ref": "Commands"}}),
        ),
        "ExportErrors": _alarm(
            "An export failed or ran out of time",
            *("AWS/Lambda", "Errors", {"FunctionName": {"Ref": "Exports"}}),
        ),
        "SchedulesDropped": _alarm(
            "A scheduled command was not started",
            *("AWS/Scheduler", "InvocationDroppedCount", {"ScheduleGroup": {"Ref": "Schedules"}}),
        ),
    },
    "Outputs": {"AlarmTopicArn": {"Value": {"Ref": "AlarmTopic"}}},
}
