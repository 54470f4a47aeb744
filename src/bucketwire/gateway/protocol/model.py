"""The service models of S3 and SNS, as botocore ships them."""

from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel

Shape = Any
"""A botocore shape."""

OperationModel = Any
"""A botocore operation model."""


def load_service(name: str) -> Any:
    """Botocore's model of the service, with nothing read from the environment or the home folder."""
    loader = Loader(include_default_search_paths=False, extra_search_paths=[Loader.BUILTIN_DATA_PATH])
    return ServiceModel(loader.load_service_model(name, "service-2"), service_name=name)


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
