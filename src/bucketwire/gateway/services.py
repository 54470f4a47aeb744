"""What every operation works with: the parts below the gateway, and the call being answered."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from bucketwire.blobs import Blobs
from bucketwire.config import GatewaySettings
from bucketwire.event.change import ObjectChange, Origin
from bucketwire.event.dialect import Dialect
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.backpressure import Backpressure
from bucketwire.gateway.caller import Caller
from bucketwire.gateway.protocol.serialize import Members
from bucketwire.gateway.push import Pushes, SynchronousTopics
from bucketwire.gateway.request import Request
from bucketwire.gateway.sweep import BlobSweeper
from bucketwire.gateway.user_names import UserNames
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Bucket, Deleted, StoredObject
from bucketwire.metainfo.permission import ANONYMOUS, Permission, check_new_acl, permitted_bucket
from bucketwire.metainfo.test_event import Trials

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", StoredObject, Deleted)


@dataclass(frozen=True, slots=True)
class Services:
    """The parts below the gateway. They block: call them through `run`."""

    settings: GatewaySettings
    dialect: Dialect
    metabase: Metabase
    blobs: Blobs
    sweeper: BlobSweeper
    threads: ThreadPoolExecutor
    copy_threads: ThreadPoolExecutor
    """Apart from the others: a copy may take as long as its bytes need."""
    lanes: asyncio.Semaphore
    """Places for those who delete many: they leave threads for everybody else."""
    strangers: asyncio.Semaphore
    """Places for those who send something to be read before anybody knows who they are."""
    names: UserNames
    synchronous: SynchronousTopics
    pushes: Pushes
    trials: Trials
    backpressure: Backpressure
    host_id: str
    """Names this gateway process in answers and messages."""

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what blocks in a thread."""
        call = (lambda: function(*args, **kwargs)) if kwargs else function
        return await asyncio.get_running_loop().run_in_executor(self.threads, call, *(() if kwargs else args))

    async def run_copy(self, function: Callable[[], T]) -> T:
        """Call what may have to copy bytes in a thread: when all are at work it waits, and nobody else."""
        return await asyncio.get_running_loop().run_in_executor(self.copy_threads, function)

    def display_name(self, user_id: str) -> str:
        """What the user is called. Blocks, the first time."""
        return self.names.of(user_id)

    def owner(self, user_id: str) -> dict[str, str]:
        """The user as documents name an owner. Blocks, the first time."""
        return {"ID": user_id, "DisplayName": self.display_name(user_id)}


@dataclass(frozen=True, slots=True)
class Call:
    """One request for one operation, by a caller who is known, or known to be nobody."""

    services: Services
    request: Request
    caller: Caller
    bucket: str
    key: str
    input: dict[str, Any]
    pushed: list[ObjectChange] = field(default_factory=list)
    """What is to be delivered before the answer."""

    @property
    def user_id(self) -> str:
        """Who calls."""
        credentials = self.caller.credentials
        return credentials.user_id if credentials else ANONYMOUS

    @property
    def tenant(self) -> str:
        """Whose user calls; empty for none."""
        credentials = self.caller.credentials
        return credentials.tenant if credentials else ""

    @property
    def expected_owner(self) -> str | None:
        """Whom the caller believes to be the owner of the bucket."""
        return self.input.get("ExpectedBucketOwner")

    def permit(self, permission: Permission, bucket: str | None = None) -> Bucket:
        """The bucket of the call (or another one), if the caller may do this with it. Blocks.

        To write with an ACL, the bucket must allow that too.
        """
        buckets, name = self.services.metabase.buckets, bucket or self.bucket
        expected = self.expected_owner if bucket is None else None
        permitted = permitted_bucket(buckets, name, self.user_id, permission, expected)
        if permission is Permission.WRITE and "ACL" in self.input:
            check_new_acl(buckets, name, self.input["ACL"])
        return permitted

    def admit(self) -> Origin:
        """What a new object at the key tells of the request; raises like `permit` and `origin`. Blocks."""
        self.permit(Permission.WRITE)
        return self.origin()

    def origin(self, key: str | None = None) -> Origin:
        """What a change of the key tells of the request, for one that is about to be made. Blocks.

        `Unavailable` with SlowDown when there is no room for the message of such a change.
        """
        key = self.key if key is None else key
        self.services.backpressure.check(self.bucket, key, self.request.operation)
        return self.supposed_origin()

    def supposed_origin(self) -> Origin:
        """What any change would tell of the request, and which topics the gateway would take on. Blocks."""
        services = self.services
        return Origin(
            self.user_id,
            self.request.source_ip,
            self.request.id,
            services.host_id,
            services.synchronous.arns(),
        )

    def created(self, operation: Mutation) -> Mutation:
        """What an upload of this kind is called in the server's dialect."""
        return Mutation.PUT if self.services.dialect.creations_are_puts else operation

    def committed(self, result: R) -> R:
        """The result of a mutation; what it leaves to the gateway is noted."""
        self.pushed.extend(result.pushed)
        return result

    async def push(self) -> None:
        """Deliver what was noted, to topics that are not persistent."""
        if self.pushed:
            await self.services.pushes.deliver(self.pushed)


Reply = dict[str, Any] | Members | Answer
"""What an operation gives: its output by the model, or a whole answer."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is built, and the parameters it understands.

    A parameter that is not in `takes`, or has a value other than those listed there, is refused.
    """

    answer: Callable[[Call], Awaitable[Reply]]
    takes: dict[str, frozenset[str] | None]


def takes(*names: str, **only: str) -> dict[str, frozenset[str] | None]:
    """The parameters an operation understands: with any value, or only with the one that says nothing new."""
    accepted: dict[str, frozenset[str] | None] = dict.fromkeys(names)
    return {**accepted, **{name: frozenset({value}) for name, value in only.items()}}
