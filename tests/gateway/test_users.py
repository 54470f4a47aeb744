"""Several users on one gateway, through boto3."""

import threading
import uuid
from typing import Any

import pytest

from bucketwire.access.credentials import Credentials
from bucketwire.metainfo.users import create_user
from gateway.running import RunningGateway
from gateway.test_configuration import code_of
from wire import until


def new_user(gateway: RunningGateway) -> Credentials:
    user, key = create_user(gateway.metabase.users, f"user-{uuid.uuid4().hex}", "")
    return Credentials(key.access_key, key.secret_key, user.id, user.name)


def test_a_new_user_works_at_once_and_sees_its_own_buckets(gateway: RunningGateway, s3: Any) -> None:
    user = new_user(gateway)
    client = gateway.client("s3", user)
    name = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name)
    client.put_object(Bucket=name, Key="k", Body=b"mine")
    seen = client.list_buckets()
    assert [each["Name"] for each in seen["Buckets"]] == [name]
    assert seen["Owner"] == {"ID": user.user_id, "DisplayName": user.display_name}
    assert name not in [each["Name"] for each in s3.list_buckets()["Buckets"]]
    client.close()


def test_the_buckets_of_others_are_closed(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    client = gateway.client("s3", new_user(gateway))
    denied = ("AccessDenied", 403)
    assert code_of(lambda: client.list_objects_v2(Bucket=bucket)) == denied
    assert code_of(lambda: client.get_object(Bucket=bucket, Key="k")) == denied
    assert code_of(lambda: client.put_object(Bucket=bucket, Key="k", Body=b"")) == denied
    assert code_of(lambda: client.delete_object(Bucket=bucket, Key="k")) == denied
    assert code_of(lambda: client.delete_bucket(Bucket=bucket)) == denied
    assert code_of(lambda: client.create_bucket(Bucket=bucket)) == ("BucketAlreadyExists", 409)
    client.close()


@pytest.mark.parametrize(("service", "call"), [("s3", "list_buckets"), ("sns", "list_topics")])
def test_a_key_is_looked_up_where_no_other_request_waits_for_it(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch, service: str, call: str
) -> None:
    users, threads = gateway.metabase.users, []
    find_key = users.find_key

    def noted(access_key: str) -> Any:
        threads.append(threading.current_thread().name)
        return find_key(access_key)

    monkeypatch.setattr(users, "find_key", noted)
    nobody = gateway.client(service, Credentials(f"AK{uuid.uuid4().hex}", "wrong-secret", "", ""))
    somebody = gateway.client(service, new_user(gateway))
    assert code_of(getattr(nobody, call))[1] == 403
    getattr(somebody, call)()
    assert [name.startswith("gateway") for name in threads] == [True, True]
    nobody.close()
    somebody.close()


def test_a_removed_user_is_refused_within_two_seconds(gateway: RunningGateway) -> None:
    user = new_user(gateway)
    client = gateway.client("s3", user)
    client.list_buckets()
    gateway.metabase.users.remove(user.user_id)

    def refused() -> bool:
        try:
            client.list_buckets()
        except client.exceptions.ClientError as error:
            return bool(error.response["Error"]["Code"] == "InvalidAccessKeyId")
        return False

    until(refused, 2.0, lambda: "still let in")
    client.close()
