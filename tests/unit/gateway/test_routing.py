"""Which operation a request means."""

import pytest

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.protocol.address import Address, locate
from bucketwire.gateway.protocol.model import load_service
from bucketwire.gateway.protocol.routing import Routes

ROUTES = Routes(load_service("s3"))
COPY = {"x-amz-copy-source": "/other/key"}


@pytest.mark.parametrize(
    ("method", "path", "parameters", "headers", "operation"),
    [
        ("GET", "/", {}, {}, "ListBuckets"),
        ("PUT", "/b", {}, {}, "CreateBucket"),
        ("GET", "/b", {}, {}, "ListObjects"),
        ("GET", "/b", {"list-type": "2"}, {}, "ListObjectsV2"),
        ("GET", "/b", {"notification": ""}, {}, "GetBucketNotificationConfiguration"),
        ("GET", "/b", {"notification": "rule-1"}, {}, "GetBucketNotificationConfiguration"),
        ("DELETE", "/b", {"notification": "rule-1"}, {}, "DeleteBucketNotificationConfiguration"),
        ("PUT", "/b", {"notification": ""}, {}, "PutBucketNotificationConfiguration"),
        ("GET", "/b", {"analytics": ""}, {}, "ListBucketAnalyticsConfigurations"),
        ("GET", "/b", {"analytics": "", "id": "1"}, {}, "GetBucketAnalyticsConfiguration"),
        ("PUT", "/b/k", {}, {}, "PutObject"),
        ("PUT", "/b/k", {"x-id": "PutObject"}, {}, "PutObject"),
        ("PUT", "/b/k", {}, COPY, "CopyObject"),
        ("PUT", "/b/k", {"partNumber": "1", "uploadId": "u"}, {}, "UploadPart"),
        ("PUT", "/b/k", {"partNumber": "1", "uploadId": "u"}, COPY, "UploadPartCopy"),
        ("POST", "/b/k", {"uploads": ""}, {}, "CreateMultipartUpload"),
        ("POST", "/b/k", {"uploadId": "u"}, {}, "CompleteMultipartUpload"),
        ("DELETE", "/b/k", {"tagging": ""}, {}, "DeleteObjectTagging"),
        ("POST", "/b", {"delete": ""}, {}, "DeleteObjects"),
        ("POST", "/b", {}, {}, "PostObject"),
        ("POST", "/WriteGetObjectResponse", {}, {}, "WriteGetObjectResponse"),
        ("HEAD", "/b//", {}, {}, "HeadObject"),
    ],
)
def test_a_request_means_the_operation_that_requires_most_of_what_it_has(
    method: str, path: str, parameters: dict[str, str], headers: dict[str, str], operation: str
) -> None:
    assert ROUTES.operation(method, locate(path), parameters, headers) == operation


@pytest.mark.parametrize(
    ("method", "path", "parameters"),
    [
        ("PUT", "/b/k", {"partNumber": "1"}),
        ("PUT", "/b/k", {"uploads": ""}),
        ("PUT", "/b/k", {"notification": ""}),
        ("DELETE", "/b", {"accelerate": ""}),
        ("PATCH", "/b/k", {}),
        ("OPTIONS", "/b", {}),
        ("PUT", "/", {}),
    ],
)
def test_a_parameter_that_picks_another_operation_is_never_passed_over(
    method: str, path: str, parameters: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        ROUTES.operation(method, locate(path), parameters, {})
    assert raised.value.code == "MethodNotAllowed"


def test_every_operation_of_the_model_that_is_not_deprecated_can_be_meant() -> None:
    model = load_service("s3")
    meant = {each.name for candidates in ROUTES._candidates.values() for each in candidates}
    meant |= set(ROUTES._elsewhere.values())
    wanted = {name for name in model.operation_names if not model.operation_model(name).deprecated}
    assert wanted - meant == {"ListDirectoryBuckets"}


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/", Address()),
        ("/b", Address("b")),
        ("/b/", Address("b")),
        ("/b//", Address("b", "/")),
        ("/b/../x/./y", Address("b", "../x/./y")),
        ("/b/a%2Fb%20c+d", Address("b", "a/b c+d")),
        ("/b/%C3%BC", Address("b", "ü")),
        ("/b/" + "k" * 1024, Address("b", "k" * 1024)),
    ],
)
def test_the_key_is_what_stands_behind_the_bucket(path: str, address: Address) -> None:
    assert locate(path) == address


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/b/%FF", "InvalidURI"),
        ("/b/a%00b", "InvalidURI"),
        ("/b/100%", "InvalidURI"),
        ("/b/a%2", "InvalidURI"),
        ("/b/a%zz", "InvalidURI"),
        ("/b/a%+1", "InvalidURI"),
        ("//key", "InvalidBucketName"),
        ("/b/" + "%C3%BC" * 513, "KeyTooLongError"),
    ],
)
def test_a_key_that_cannot_be_one_is_refused(path: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        locate(path)
    assert raised.value.code == code
