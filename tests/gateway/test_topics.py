"""Topics through the SNS protocol: with boto3, and with requests as Ceph's own clients send them."""

import hmac
import json
import threading
import uuid
from base64 import b64encode
from collections.abc import Iterator
from email.utils import formatdate
from hashlib import sha1
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import boto3
import pytest
import urllib3
from botocore.config import Config
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketwire.access.credentials import Credentials
from bucketwire.config import GatewaySettings
from bucketwire.errors import ConfigError
from bucketwire.gateway.serve import serve
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.users import create_user
from gateway.in_process import HOST, Answered, InProcess, signed_headers
from gateway.refused import refusal, refused
from gateway.running import OTHER, ROOT, RunningGateway, run_gateway
from services.certificates import make_certificates

ENDPOINT = {"push-endpoint": "http://127.0.0.1:1/"}
FORM = "application/x-www-form-urlencoded; charset=utf-8"
KEY = "whsec_" + b64encode(b"k" * 32).decode()
fuzzed = settings(max_examples=150)


@pytest.fixture(scope="module")
def ceph_sns(ceph_gateway: RunningGateway) -> Iterator[Any]:
    client = ceph_gateway.client("sns")
    yield client
    client.close()


@pytest.fixture(scope="module")
def storj_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("storj"), "storj")


@pytest.fixture(scope="module")
def cleartext_sns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    for gateway in run_gateway(tmp_path_factory.mktemp("cleartext"), "aws", secrets_in_cleartext=True):
        client = gateway.client("sns")
        yield client
        client.close()


@pytest.fixture(scope="module", params=["aws", "ceph"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    app = InProcess(tmp_path_factory.mktemp("app"), request.param, trusted_proxies=frozenset({"192.0.2.7"}))
    yield app
    app.close()


def new_topic(sns: Any, **attributes: str) -> str:
    named = {name.replace("__", "-"): text for name, text in attributes.items()}
    name = f"topic-{uuid.uuid4().hex}"
    return str(sns.create_topic(Name=name, Attributes={**ENDPOINT, **named})["TopicArn"])


def attributes_of(sns: Any, arn: str) -> dict[str, str]:
    return dict(sns.get_topic_attributes(TopicArn=arn)["Attributes"])


def new_user(metabase: Metabase, tenant: str) -> Credentials:
    user, key = create_user(metabase.users, f"user-{uuid.uuid4().hex[:8]}", tenant)
    return Credentials(key.access_key, key.secret_key, user.id, user.name, user.tenant)


def policy(effect: str, principal: str, *actions: str) -> str:
    statement = {"Effect": effect, "Principal": {"AWS": principal}, "Action": actions, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def test_a_topic_may_have_no_endpoint_yet(sns: Any) -> None:
    for attributes in ({}, {"push-endpoint": ""}):
        arn = sns.create_topic(Name=f"t-{uuid.uuid4().hex}", Attributes=attributes)["TopicArn"]
        assert "push-endpoint" not in attributes_of(sns, arn)


def test_sns_clients_see_what_they_look_for(sns: Any) -> None:
    arn = new_topic(sns, OpaqueData="<mine & yours>", max_retries="3")
    shown = attributes_of(sns, arn)
    default = json.loads(shown.pop("Policy"))
    (statement,) = default["Statement"]
    assert (default["Version"], default["Id"]) == ("2008-10-17", "__default_policy_ID")
    assert statement["Condition"] == {"StringEquals": {"AWS:SourceOwner": ROOT.user_id}}
    assert shown == {
        "TopicArn": arn,
        "Owner": ROOT.user_id,
        "Name": arn.rpartition(":")[2],
        **ENDPOINT,
        "OpaqueData": "<mine & yours>",
        "max_retries": "3",
        "DisplayName": "",
        "SignatureVersion": "1",
        "TracingConfig": "PassThrough",
        "SubscriptionsConfirmed": "0",
        "SubscriptionsPending": "0",
        "SubscriptionsDeleted": "0",
    }


def test_a_policy_is_taken_away_as_terraform_does_it(gateway: RunningGateway, sns: Any) -> None:
    """It cannot unset a policy in AWS, so it sets the default one, written by itself."""
    arn, other = new_topic(sns), gateway.client("sns", OTHER)
    opened = policy("Allow", "*", "sns:GetTopicAttributes")
    sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=opened)
    assert attributes_of(other, arn)["Policy"] == opened
    default = json.loads(attributes_of(sns, new_topic(sns))["Policy"])
    default["Statement"][0]["Resource"] = arn
    default["Statement"][0]["Action"].append("SNS:Receive")
    written = json.dumps(default, indent=2) + "\n"
    sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=written)
    assert attributes_of(sns, arn)["Policy"] == written
    assert refusal(other.get_topic_attributes, TopicArn=arn) == ("AuthorizationError", 403)
    other.close()


def test_the_arguments_of_terraform_that_say_nothing_are_taken(sns: Any) -> None:
    arn = sns.create_topic(Name=f"t-{uuid.uuid4().hex}", Attributes={"FifoTopic": "false"})["TopicArn"]
    for name, value in (
        ("DisplayName", "Our videos"),
        ("SignatureVersion", "1"),
        ("TracingConfig", "PassThrough"),
        ("LambdaSuccessFeedbackSampleRate", "0"),
        ("KmsMasterKeyId", ""),
    ):
        sns.set_topic_attributes(TopicArn=arn, AttributeName=name, AttributeValue=value)
    shown = attributes_of(sns, arn)
    assert (shown["DisplayName"], shown["SignatureVersion"], shown["TracingConfig"]) == (
        "Our videos",
        "1",
        "PassThrough",
    )


def test_each_attribute_is_set_alone_and_an_empty_value_unsets_it(sns: Any) -> None:
    arn = new_topic(sns)
    for name, value in (("OpaqueData", "x"), ("format", "cos"), ("time_to_live", "30")):
        sns.set_topic_attributes(TopicArn=arn, AttributeName=name, AttributeValue=value)
        assert attributes_of(sns, arn)[name] == value
    assert attributes_of(sns, arn)["push-endpoint"] == ENDPOINT["push-endpoint"]
    sns.set_topic_attributes(TopicArn=arn, AttributeName="format", AttributeValue="")
    sns.set_topic_attributes(TopicArn=arn, AttributeName="OpaqueData")
    assert not {"format", "OpaqueData"} & attributes_of(sns, arn).keys()


def test_attributes_that_are_set_at_once_are_all_kept(sns: Any) -> None:
    arn = new_topic(sns)
    values = {"OpaqueData": "x", "format": "cos", "time_to_live": "1", "max_retries": "2", "ordering": "key"}
    threads = [
        threading.Thread(
            target=sns.set_topic_attributes,
            kwargs={"TopicArn": arn, "AttributeName": name, "AttributeValue": value},
        )
        for name, value in values.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values.items() <= attributes_of(sns, arn).items()


def test_what_cannot_be_set_is_named_and_changes_nothing(sns: Any) -> None:
    arn = new_topic(sns)
    before = attributes_of(sns, arn)
    for name, value in (
        ("color", "red"),
        ("persistent", "maybe"),
        ("push-endpoint", "ftp://host/"),
        ("push-endpoint", "amqp://host/"),
        ("Policy", "{}"),
        ("KmsMasterKeyId", "alias/aws/sns"),
        ("SignatureVersion", "2"),
        ("SQSFailureFeedbackRoleArn", "arn:aws:iam::1:role/r"),
    ):
        given_ = {"TopicArn": arn, "AttributeName": name, "AttributeValue": value}
        answer = refused(sns.set_topic_attributes, **given_)
        assert answer["Error"]["Code"] == "InvalidParameter"
        assert ("amqp-exchange" if value == "amqp://host/" else name) in answer["Error"]["Message"]
        assert refusal(sns.create_topic, Name="refused", Attributes={name: value}) == (
            "InvalidParameter",
            400,
        )
    assert attributes_of(sns, arn) == before
    assert refusal(sns.get_topic_attributes, TopicArn=arn.rpartition(":")[0] + ":refused")[1] == 404


def test_creating_again_is_no_change_in_aws(sns: Any) -> None:
    arn = new_topic(sns, OpaqueData="x")
    name = arn.rpartition(":")[2]
    assert sns.create_topic(Name=name, Attributes={"FifoTopic": "false"})["TopicArn"] == arn
    answer = refused(sns.create_topic, Name=name, Attributes={"OpaqueData": "y"})
    assert answer["Error"] == {
        "Type": "Sender",
        "Code": "InvalidParameter",
        "Message": "Invalid parameter: Attributes Reason: Topic already exists with different attributes",
    }


def test_tags_live_with_the_topic(sns: Any) -> None:
    name = f"t-{uuid.uuid4().hex}"
    arn = sns.create_topic(Name=name, Tags=[{"Key": "a", "Value": "1"}])["TopicArn"]
    sns.tag_resource(ResourceArn=arn, Tags=[{"Key": "b", "Value": "ü"}, {"Key": "a", "Value": "2"}])
    listed = sns.list_tags_for_resource(ResourceArn=arn)["Tags"]
    assert sorted((tag["Key"], tag["Value"]) for tag in listed) == [("a", "2"), ("b", "ü")]
    sns.untag_resource(ResourceArn=arn, TagKeys=["a", "none"])
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": "ü"}]
    assert refusal(sns.list_tags_for_resource, ResourceArn=arn + "x") == ("NotFound", 404)


def test_an_arn_has_the_tenant_of_the_user(gateway: RunningGateway, ceph_gateway: RunningGateway) -> None:
    for each in (gateway, ceph_gateway):
        sns = each.client("sns", new_user(each.metabase, "acme"))
        assert sns.create_topic(Name="t")["TopicArn"] == "arn:aws:sns:us-east-1:acme:t"
        assert [topic["TopicArn"] for topic in sns.list_topics()["Topics"]] == [
            "arn:aws:sns:us-east-1:acme:t"
        ]
        sns.close()


@pytest.mark.parametrize("tenant", ["", "boom"])
def test_a_policy_decides_what_another_user_may_do(
    ceph_gateway: RunningGateway, ceph_sns: Any, tenant: str
) -> None:
    user = new_user(ceph_gateway.metabase, tenant)
    other = ceph_gateway.client("sns", user)
    arn_of_user = f"arn:aws:iam::{tenant}:user/{user.display_name}"
    actions = [f"sns:{each}Topic{more}" for each, more in (("Get", "Attributes"), ("Set", "Attributes"))]
    actions += ["sns:DeleteTopic", "sns:CreateTopic", "sns:Publish"]
    arn = new_topic(ceph_sns, Policy=policy("Deny", arn_of_user, *actions))
    setting = {"TopicArn": arn, "AttributeName": "persistent", "AttributeValue": "false"}
    for call, named in (
        (other.get_topic_attributes, {"TopicArn": arn}),
        (other.set_topic_attributes, setting),
        (other.delete_topic, {"TopicArn": arn}),
    ):
        assert refusal(call, **named) == ("AuthorizationError", 403)
    opened = {"AttributeName": "Policy", "AttributeValue": policy("Allow", arn_of_user, *actions)}
    ceph_sns.set_topic_attributes(TopicArn=arn, **opened)
    other.set_topic_attributes(**setting)
    shown = attributes_of(other, arn)
    assert (shown["User"], json.loads(shown["EndPoint"])["Persistent"]) == (ROOT.user_id, "false")
    other.delete_topic(TopicArn=arn)
    assert refusal(ceph_sns.get_topic_attributes, TopicArn=arn)[1] == 404
    other.close()


def test_another_users_name_is_denied_in_its_tenant(gateway: RunningGateway, sns: Any) -> None:
    name = new_topic(sns).rpartition(":")[2]
    other = gateway.client("sns", OTHER)
    assert refusal(other.create_topic, Name=name) == ("AuthorizationError", 403)
    other.close()


def test_a_deleted_topics_name_stays_its_owners_and_may_be_used_again_by_it(
    gateway: RunningGateway, sns: Any
) -> None:
    arn = new_topic(sns)
    name = arn.rpartition(":")[2]
    sns.delete_topic(TopicArn=arn)
    other = gateway.client("sns", OTHER)
    assert refusal(other.create_topic, Name=name) == ("AuthorizationError", 403)
    assert sns.create_topic(Name=name, Attributes={"OpaqueData": "new"})["TopicArn"] == arn
    shown = attributes_of(sns, arn)
    assert (shown["Owner"], shown["OpaqueData"]) == (ROOT.user_id, "new")
    other.close()


def test_a_field_that_would_be_lost_is_named(app: InProcess) -> None:
    lost = "Attributes.entry.99999999.key"
    answer = app.signed("POST", "/", f"Action=CreateTopic&Name=lost&{lost}=x".encode(), service="sns")
    assert (answer.status, answer.code) == (400, "InvalidParameter")
    assert lost in (answer.field("Message") or "")


@pytest.mark.parametrize(
    "attributes",
    [
        {"push-endpoint": "http://user:hush-hush@host/"},
        {"password": "hush-hush"},
        {"user-name": "hush-hush"},
        {"signing-secret": KEY},
    ],
)
def test_secrets_are_not_taken_in_clear_text_and_never_shown(
    sns: Any, cleartext_sns: Any, attributes: dict[str, str]
) -> None:
    name, value = next(iter(attributes.items()))
    answer = refused(sns.create_topic, Name="secret", Attributes=attributes)
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (
        "InvalidParameter",
        400,
    )
    for word in (name, "--allow-secrets-in-cleartext"):
        assert word in answer["Error"]["Message"]
    given_ = {"TopicArn": new_topic(sns), "AttributeName": name, "AttributeValue": value}
    assert refusal(sns.set_topic_attributes, **given_) == ("InvalidParameter", 400)
    taken = new_topic(cleartext_sns, **{name.replace("-", "__"): value})
    shown = attributes_of(cleartext_sns, taken)
    assert "****" in shown[name]
    assert "hush" not in json.dumps(shown)
    assert KEY not in json.dumps(shown)


def ceph_signed(action: str, gateway: RunningGateway, **more: str) -> tuple[int, ET.Element]:
    """As Ceph's own clients call: Signature Version 2 in the header, over the date and the content type."""
    date = formatdate()
    told = f"POST\n\n{FORM}\n{date}\n/".encode()
    signature = b64encode(hmac.new(ROOT.secret_key.encode(), told, sha1).digest()).decode()
    headers = {
        "Authorization": f"AWS {ROOT.access_key}:{signature}",
        "Date": date,
        "Content-Type": FORM,
    }
    with urllib3.PoolManager() as pool:
        body = urlencode({"Action": action, **more})
        answer = pool.request("POST", f"{gateway.url}/", body=body, headers=headers)
    return answer.status, ET.fromstring(answer.data)


def text_of(document: ET.Element, path: str) -> str | None:
    """The text at a path, whatever the namespace."""
    return document.findtext("/".join(f"{{*}}{name}" for name in path.split("/")))


def test_cephs_own_clients_get_and_list_topics(ceph_gateway: RunningGateway, ceph_sns: Any) -> None:
    arn = new_topic(ceph_sns, persistent="true", OpaqueData="x", verify__ssl="false")
    status, document = ceph_signed("GetTopic", ceph_gateway, TopicArn=arn)
    assert (status, document.tag.rpartition("}")[2]) == (200, "GetTopicResponse")
    topic = "GetTopicResult/Topic"
    assert text_of(document, f"{topic}/TopicArn") == arn
    assert text_of(document, f"{topic}/OpaqueData") == "x"
    assert text_of(document, f"{topic}/EndPoint/EndpointAddress") == ENDPOINT["push-endpoint"]
    assert text_of(document, f"{topic}/EndPoint/Persistent") == "True"
    status, listed = ceph_signed("ListTopics", ceph_gateway)
    members = listed.findall("{*}ListTopicsResult/{*}Topics/{*}member")
    found = [member for member in members if text_of(member, "TopicArn") == arn]
    assert [text_of(member, "EndPoint/EndpointTopic") for member in found] == [arn.rpartition(":")[2]]
    ceph_sns.delete_topic(TopicArn=arn)
    assert ceph_signed("GetTopic", ceph_gateway, TopicArn=arn)[0] == 404


def test_ceph_sets_a_topic_anew_by_creating_it(ceph_sns: Any) -> None:
    arn = new_topic(ceph_sns, OpaqueData="x")
    name = arn.rpartition(":")[2]
    ceph_sns.create_topic(Name=name, Attributes={"push-endpoint": "http://two/", "max_retries": "None"})
    shown = attributes_of(ceph_sns, arn)
    endpoint = json.loads(shown["EndPoint"])
    assert (endpoint["EndpointAddress"], endpoint["MaxRetries"], shown["OpaqueData"]) == (
        "http://two/",
        "None",
        "",
    )
    assert refusal(ceph_sns.create_topic, Name="a+b") == ("InvalidInput", 400)


def test_boto3_may_sign_topics_with_version_2(gateway: RunningGateway) -> None:
    old = boto3.client(
        "sns",
        endpoint_url=gateway.url,
        region_name="us-east-1",
        aws_access_key_id=ROOT.access_key,
        aws_secret_access_key=ROOT.secret_key,
        config=Config(signature_version="s3"),
    )
    assert attributes_of(old, new_topic(old))["Owner"] == ROOT.user_id
    old.close()


def test_a_request_that_is_not_signed_or_presigned_with_version_2_is_refused(app: InProcess) -> None:
    body = b"Action=ListTopics"
    headers = [("Host", HOST), ("Content-Length", str(len(body)))]
    assert (app.send("POST", "/", headers, body).status, app.send("POST", "/", headers, body).code) == (
        403,
        "AuthorizationError",
    )
    presigned = f"/?AWSAccessKeyId={ROOT.access_key}&Signature=x&Expires=9999999999"
    assert app.send("POST", presigned, headers, body).status == 400


def test_a_dialect_without_topics_says_what_there_is(storj_gateway: RunningGateway) -> None:
    sns = storj_gateway.client("sns")
    for call, named in ((sns.create_topic, {"Name": "t"}), (sns.list_topics, {})):
        answer = refused(call, **named)
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert "arn:gcp:pubsub::PROJECT:TOPIC" in answer["Error"]["Message"]
    sns.close()


def test_a_proxy_that_is_trusted_may_say_that_a_request_came_over_tls(app: InProcess, tmp_path: Path) -> None:
    body = urlencode(
        {
            "Action": "CreateTopic",
            "Name": "behind-a-proxy",
            "Attributes.entry.1.key": "push-endpoint",
            "Attributes.entry.1.value": "https://user:hush@host/",
        }
    ).encode()

    def answered(by: InProcess, *told: tuple[str, str]) -> int:
        headers = [*signed_headers("POST", "/", body, (), "sns"), *told]
        return by.send("POST", "/", headers, body).status

    https = ("X-Forwarded-Proto", "https")
    assert [answered(app), answered(app, ("X-Forwarded-Proto", "http")), answered(app, https)] == [
        400,
        400,
        200,
    ]
    assert answered(app, https, ("X-Forwarded-Proto", "http")) == 400
    stranger = InProcess(tmp_path)
    assert answered(stranger, https) == 400
    stranger.close()


names = st.sampled_from(
    [
        "Name",
        "TopicArn",
        "ResourceArn",
        "NextToken",
        "AttributeName",
        "AttributeValue",
        "Attributes.entry.1.key",
        "Attributes.entry.1.value",
        "Attributes.entry.2.value",
        "Attributes.entry.2",
        "Attributes.entry.99999999.key",
        "Attributes.entry.\x00.key",
        "Attributes",
        "Tags.member.1.Key",
        "Tags.member.1.Value",
        "Tags.member.1.Other",
        "Tags.member.2",
        "TagKeys.member.1",
        "TagKeys.member.1.x",
        "DataProtectionPolicy",
        "Version",
    ]
)
actions = st.sampled_from(
    [
        *("CreateTopic", "SetTopicAttributes", "GetTopicAttributes", "GetTopic", "ListTopics", "DeleteTopic"),
        *("TagResource", "UntagResource", "ListTagsForResource", "Publish", "", "x"),
    ]
)
texts = st.text(max_size=12) | st.sampled_from(
    [
        *(
            "t",
            "arn:aws:sns:us-east-1:000000000000:t",
            "arn:aws:sns:us-east-1::t",
            "arn:aws:sns:::\0",
            "Policy",
        ),
        *(
            "push-endpoint",
            "http://h/",
            "kafka://u:p@h",
            "amqp://h",
            "pubsub://a/b",
            "http://[",
            "\0",
            "YXJu",
        ),
        *(
            "time_to_live",
            "-1",
            "9" * 30,
            "signing-secret",
            KEY,
            '{"Statement": [{}]}',
            "[[[[",
            "None",
            "true",
        ),
    ]
)


@fuzzed
@given(action=actions, fields=st.dictionaries(names, texts, max_size=6))
def test_whatever_a_form_holds_the_answer_is_no_fault_of_ours(
    app: InProcess, action: str, fields: dict[str, str]
) -> None:
    body = urlencode({"Action": action, **fields}, errors="replace").encode()
    answer = app.signed("POST", "/", body, service="sns")
    assert answer.status in {200, 400, 403, 404, 501}
    assert_well_formed(answer)


@fuzzed
@given(st.binary(max_size=60))
def test_whatever_bytes_a_form_is_the_answer_is_no_fault_of_ours(app: InProcess, body: bytes) -> None:
    answer = app.signed("POST", "/", b"Action=CreateTopic&Name=t&" + body, service="sns")
    assert answer.status in {200, 400, 403, 501}
    assert_well_formed(answer)


def assert_well_formed(answer: Answered) -> None:
    ET.fromstring(answer.body)


def test_over_tls_secrets_are_taken_and_clear_text_is_not_understood(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates")
    for gateway in run_gateway(tmp_path, "aws", tls_certificate=made.server_cert, tls_key=made.server_key):
        sns = boto3.client(
            "sns",
            endpoint_url=f"https://localhost:{gateway.port}",
            verify=str(made.ca),
            region_name="us-east-1",
            aws_access_key_id=ROOT.access_key,
            aws_secret_access_key=ROOT.secret_key,
        )
        shown = attributes_of(sns, new_topic(sns, push__endpoint="https://user:hush@host/"))
        assert shown["push-endpoint"] == "https://user:****@host/"
        sns.close()
        with urllib3.PoolManager(retries=False) as pool, pytest.raises(urllib3.exceptions.ProtocolError):
            pool.request("GET", f"{gateway.url}/-/live")


def test_tls_needs_a_certificate_and_its_key(tmp_path: Path) -> None:
    nothing: Any = None
    for certificate, key in ((tmp_path / "c.pem", None), (tmp_path / "c.pem", tmp_path / "k.pem")):
        settings_ = GatewaySettings(
            "127.0.0.1", 0, tmp_path, "", "aws", "us-east-1", tls_certificate=certificate, tls_key=key
        )
        with pytest.raises(ConfigError, match="--tls-certificate and --tls-key"):
            serve(settings_, nothing, nothing, nothing, nothing)
