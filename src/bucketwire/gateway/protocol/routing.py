"""Which operation an HTTP request means.

The index is built from the model once. Operations that share a method and a level (service, bucket or
key) are told apart by what they require: fixed parameters such as `?notification` or `?list-type=2`,
parameters such as `uploadId`, headers such as `x-amz-copy-source`. The one that requires most, and
has it all, is meant.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.protocol.address import Address
from bucketwire.gateway.protocol.model import OperationModel, location

_LEVELS = {"/": 0, "/{Bucket}": 1, "/{Bucket}/{Key+}": 2}
_ELSEWHERE = frozenset({"ListDirectoryBuckets"})
"""Operations that another service endpoint tells apart, and nothing in the request does."""
_FORM_UPLOAD = "PostObject"
"""The upload of a browser's form: an operation of S3 that no model has."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation and what a request must have to mean it."""

    name: str
    fixed: Mapping[str, str]
    parameters: frozenset[str]
    headers: frozenset[str]
    known: frozenset[str]
    """All parameters that mean something to the operation."""

    @property
    def weight(self) -> int:
        """How much it requires."""
        return len(self.fixed) + len(self.parameters) + len(self.headers)

    def meant_by(self, parameters: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        """Whether the request has all that the operation requires."""
        return (
            all(name in parameters and value in ("", parameters[name]) for name, value in self.fixed.items())
            and self.parameters <= parameters.keys()
            and self.headers <= headers.keys()
        )


class Routes:
    """The index of a rest-xml service's operations."""

    def __init__(self, service: object) -> None:
        self._candidates: dict[tuple[str, int], list[Candidate]] = {}
        self._plain: dict[tuple[str, int], list[Candidate]] = {}
        """Those of the candidates that a request without parameters can mean."""
        self._elsewhere: dict[tuple[str, str | None], str] = {}
        self._markers: set[str] = set()
        for name in service.operation_names:  # type: ignore[attr-defined]
            self._add(service.operation_model(name))  # type: ignore[attr-defined]
        self._candidates["POST", 1].append(Candidate(_FORM_UPLOAD, {}, frozenset(), frozenset(), frozenset()))
        for place, candidates in self._candidates.items():
            candidates.sort(key=lambda candidate: -candidate.weight)
            self._plain[place] = [each for each in candidates if not each.fixed and not each.parameters]

    def operation(
        self, method: str, address: Address, parameters: Mapping[str, str], headers: Mapping[str, str]
    ) -> str:
        """The name of the operation; `InvalidRequest` with MethodNotAllowed when there is none."""
        if (elsewhere := self._elsewhere.get((method, address.bucket))) is not None:
            return elsewhere
        level = (address.bucket is not None) + (address.key is not None)
        candidates = self._candidates if parameters else self._plain
        for candidate in candidates.get((method, level), ()):
            if candidate.meant_by(parameters, headers):
                return self._unless_astray(candidate, parameters)
        raise _method_not_allowed()

    def _unless_astray(self, candidate: Candidate, parameters: Mapping[str, str]) -> str:
        """A parameter that picks another operation is not passed over in silence."""
        if parameters and not self._markers.isdisjoint(parameters.keys() - candidate.known):
            raise _method_not_allowed()
        return candidate.name

    def _add(self, operation: OperationModel) -> None:
        path, _, query = operation.http["requestUri"].partition("?")
        if operation.deprecated or operation.name in _ELSEWHERE:
            return
        if path not in _LEVELS:
            self._elsewhere[operation.http["method"], path[1:]] = operation.name
            return
        candidate = _candidate(operation, dict(parse_qsl(query, keep_blank_values=True)))
        self._candidates.setdefault((operation.http["method"], _LEVELS[path]), []).append(candidate)
        self._markers.update(candidate.fixed)
        if _LEVELS[path] == _LEVELS["/{Bucket}/{Key+}"]:
            self._markers.update(candidate.parameters)


def _candidate(operation: OperationModel, fixed: dict[str, str]) -> Candidate:
    members = operation.input_shape.members
    placed = [
        (location(shape), shape.serialization.get("name", name), name) for name, shape in members.items()
    ]
    required = set(operation.input_shape.required_members)
    return Candidate(
        name=operation.name,
        fixed=fixed,
        parameters=frozenset(
            wire for place, wire, name in placed if place == "querystring" and name in required
        ),
        headers=frozenset(
            wire.lower() for place, wire, name in placed if place == "header" and name in required
        ),
        known=frozenset(fixed) | {wire for place, wire, _ in placed if place == "querystring"},
    )


def _method_not_allowed() -> InvalidRequest:
    return InvalidRequest(
        "The specified method is not allowed against this resource.", code="MethodNotAllowed"
    )
