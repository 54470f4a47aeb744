"""The service models of S3 and SNS, as botocore ships them, and what Bucketwire and Ceph add to them.

Additions stand in `extensions/<service>.json`, in the form of botocore's own models: operations and shapes
that are merged into the model.
"""

import json
from importlib.resources import files
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel

Shape = Any
"""A botocore shape."""

OperationModel = Any
"""A botocore operation model."""


def load_service(name: str) -> Any:
    """The model of the service, with nothing read from the environment or the home folder."""
    loader = Loader(include_default_search_paths=False, extra_search_paths=[Loader.BUILTIN_DATA_PATH])
    shipped = loader.load_service_model(name, "service-2")
    added = json.loads((files("bucketwire.gateway.protocol") / "extensions" / f"{name}.json").read_text())
    return ServiceModel(_merged(shipped, added), service_name=name)


def _merged(shipped: Any, added: Any) -> Any:
    """Objects are merged, member by member; anything else is replaced."""
    if not isinstance(shipped, dict) or not isinstance(added, dict):
        return added
    return {**shipped, **{key: _merged(shipped.get(key), value) for key, value in added.items()}}


def element_name(member: str, shape: Shape) -> str:
    """The XML element of a member: the name in the model, or the member's own."""
    return str(shape.serialization.get("name", member))


def attributes(shape: Shape) -> dict[str, str]:
    """The members of a structure that are attributes of its element, with their names, prefix and all."""
    members = shape.members if shape.type_name == "structure" else {}
    return {
        member: element_name(member, member_shape)
        for member, member_shape in members.items()
        if member_shape.serialization.get("xmlAttribute")
    }


def location(shape: Shape) -> str | None:
    """Where in HTTP a member travels: `uri`, `querystring`, `header`, `headers`; None is the body."""
    place: str | None = shape.serialization.get("location")
    return place
