"""The clients: each does the writes of its lane in turn, and remembers what it was told about each.

Nothing is tried again. A connection that is refused has written nothing; an answer that does not come, or
says that something went wrong inside, leaves the outcome unknown.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import urllib3
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from chaos.history import Outcome, Write
from chaos.plan import Action, Versioning, WriteStep

_NEVER_SENT = (
    EndpointConnectionError,
    ConnectTimeoutError,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
)
_NAMES = {
    Action.PUT: "ObjectCreated:Put",
    Action.COPY: "ObjectCreated:Copy",
    Action.MULTIPART: "ObjectCreated:CompleteMultipartUpload",
    Action.POST: "ObjectCreated:Post",
    Action.DELETE: "ObjectRemoved:Delete",
    Action.DELETE_MANY: "ObjectRemoved:Delete",
    Action.DELETE_VERSION: "ObjectRemoved:Delete",
    Action.TAG: "ObjectTagging:Put",
    Action.UNTAG: "ObjectTagging:Delete",
}
_HIDES = {Action.DELETE, Action.DELETE_MANY}
"""These only hide an object where versions are kept."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the server said: about all keys, and about single ones where it told them apart."""

    outcome: Outcome
    request_id: str | None = None
    answer: dict[str, Any] = field(default_factory=dict)


class Client:
    """One lane."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self._forms = urllib3.PoolManager(retries=False, timeout=s3.meta.config.read_timeout)
        self._versions: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.actions: list[tuple[Action, Outcome]] = []
        """What was asked for, and what became of it."""

    def run(
        self, steps: Iterable[WriteStep], began: float, writes: list[Write], stop: threading.Event
    ) -> None:
        """Do each write at its time, or as soon as those before it are done."""
        for step in steps:
            if stop.wait(max(0.0, began + step.at_seconds - time.time())):
                return
            writes += self._do(step)

    def _do(self, step: WriteStep) -> list[Write]:
        action, send = self._request(step)
        self._before: float = time.time()
        told = _told(send)
        ended = time.time()
        self._remember(step, told)
        self.actions.append((action, told.outcome))
        hidden = action in _HIDES and step.bucket.versioning is not Versioning.NONE
        name = "ObjectRemoved:DeleteMarkerCreated" if hidden else _NAMES[action]
        keys = (step.key, *step.others) if action is Action.DELETE_MANY else (step.key,)
        refused = {each["Key"] for each in told.answer.get("Errors", ())}
        return [
            Write(
                step.bucket.name,
                key,
                name,
                self._before,
                ended,
                Outcome.REFUSED if key in refused else told.outcome,
                told.request_id,
            )
            for key in keys
        ]

    def _request(self, step: WriteStep) -> tuple[Action, Callable[[], dict[str, Any]]]:
        """What is done, and how. Without a version of this lane to delete, there is one made."""
        action, versions = step.action, self._versions[step.bucket.name, step.key]
        if action is Action.DELETE_VERSION and not versions:
            action = Action.PUT
        more = {"VersionId": versions.pop()} if action is Action.DELETE_VERSION else {}
        return action, partial(self._send, action, step, {"Bucket": step.bucket.name, "Key": step.key} | more)

    def _send(self, action: Action, step: WriteStep, place: dict[str, str]) -> dict[str, Any]:
        ways: dict[Action, Callable[[], Any]] = {
            Action.PUT: lambda: self._s3.put_object(**place, Body=_body(step)),
            Action.COPY: lambda: self._s3.copy_object(**place, CopySource=place | {"Key": step.others[0]}),
            Action.MULTIPART: lambda: self._multipart(place, _body(step)),
            Action.POST: lambda: self._post(place, _body(step)),
            Action.DELETE: lambda: self._s3.delete_object(**place),
            Action.DELETE_VERSION: lambda: self._s3.delete_object(**place),
            Action.DELETE_MANY: lambda: self._delete_many(step),
            Action.TAG: lambda: self._s3.put_object_tagging(**place, Tagging=self._fresh_tags()),
            Action.UNTAG: lambda: self._s3.delete_object_tagging(**place),
        }
        answer: dict[str, Any] = ways[action]()
        return answer

    def _multipart(self, place: dict[str, str], body: bytes) -> dict[str, Any]:
        upload = place | {"UploadId": self._s3.create_multipart_upload(**place)["UploadId"]}
        tag = self._s3.upload_part(**upload, PartNumber=1, Body=body)["ETag"]
        parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
        self._before = time.time()
        answer: dict[str, Any] = self._s3.complete_multipart_upload(**upload, MultipartUpload=parts)
        return answer

    def _post(self, place: dict[str, str], body: bytes) -> dict[str, Any]:
        form = self._s3.generate_presigned_post(**place)
        fields = {**form["fields"], "file": ("file", body)}
        answer = self._forms.request("POST", form["url"], fields=fields)
        described = {"HTTPStatusCode": answer.status, "RequestId": answer.headers.get("x-amz-request-id")}
        if answer.status >= 300:
            raise ClientError({"Error": {}, "ResponseMetadata": described}, "PostObject")
        return {"ResponseMetadata": described}

    def _delete_many(self, step: WriteStep) -> dict[str, Any]:
        objects = [{"Key": key} for key in (step.key, *step.others)]
        answer: dict[str, Any] = self._s3.delete_objects(Bucket=step.bucket.name, Delete={"Objects": objects})
        return answer

    def _fresh_tags(self) -> dict[str, Any]:
        return {"TagSet": [{"Key": "number", "Value": str(len(self.actions))}]}

    def _remember(self, step: WriteStep, told: Told) -> None:
        if step.bucket.versioning is Versioning.ENABLED and step.action is Action.PUT:
            version = told.answer.get("VersionId")
            self._versions[step.bucket.name, step.key] += [version] if version else []


def _told(send: Callable[[], dict[str, Any]]) -> Told:
    try:
        answer = send()
    except ClientError as error:
        described = error.response["ResponseMetadata"]
        refused = described["HTTPStatusCode"] < 500
        return Told(Outcome.REFUSED if refused else Outcome.UNKNOWN, described.get("RequestId") or None)
    except _NEVER_SENT:
        return Told(Outcome.REFUSED)
    except (BotoCoreError, urllib3.exceptions.HTTPError):
        return Told(Outcome.UNKNOWN)
    return Told(Outcome.ACKNOWLEDGED, answer["ResponseMetadata"]["RequestId"], answer)


def _body(step: WriteStep) -> bytes:
    return step.key.encode()[:1] * step.size_bytes
