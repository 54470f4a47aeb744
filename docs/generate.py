"""Writes docs/reference and the tables of docs/dialects.md from the code.

With --check it writes nothing, and fails if a page is not what it would write.
"""

import ast
import dataclasses
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import click
from docs.asyncapi import asyncapi
from docs.messages import schemas

from bucketwire.cli.main import bucketwire
from bucketwire.config import GatewaySettings, PipelineSettings
from bucketwire.event.dialect import DIALECTS, Dialect
from bucketwire.gateway.protocol.model import load_service, location
from bucketwire.gateway.s3 import OPERATIONS
from bucketwire.gateway.services import Operation

FOLDER = Path(__file__).parent / "reference"
DIALECT_PAGE = Path(__file__).parent / "dialects.md"
TABLE = re.compile(r"<!-- dialects:(.*?)-->\n(.*?)<!-- end -->", re.DOTALL)
MADE = "<!-- Written by `make docs` from the code. -->\n\n"


def cli() -> str:
    """Each command and its options."""
    root = click.Context(bucketwire, info_name="bucketwire", terminal_width=100)
    page = f"# Command line\n\n```text\n{bucketwire.get_help(root)}\n```\n"
    for name in bucketwire.list_commands(root):
        command = bucketwire.get_command(root, name)
        assert command is not None
        page += _help(name, command, root)
    return page


def _help(name: str, command: click.Command, parent: click.Context) -> str:
    """The help of a command and of those below it."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100)
    page = f"\n## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below, subcommand in command.commands.items():
            page += _help(below, subcommand, context)
    return page


def configuration() -> str:
    """Each setting of each part, with its default."""
    page = "# Settings of the parts\n\nThe command line fills these; what has no flag keeps its default.\n"
    for settings in (GatewaySettings, PipelineSettings):
        page += f"\n## {settings.__name__}\n\n{settings.__doc__}\n\n"
        page += "| setting | default | meaning |\n|---|---|---|\n"
        meanings = field_docstrings(settings)
        for field in dataclasses.fields(settings):
            missing = field.default is dataclasses.MISSING
            default = "" if missing else f"`{field.default}`"
            page += f"| `{field.name}` | {default} | {meanings.get(field.name, '')} |\n"
    return page


def with_dialect_tables(page: str) -> str:
    """The page about dialects with its tables written anew; what is around them is written by hand.

    A table stands behind a comment that names its fields; every field of `Dialect` must be in one.
    """
    shown = {name for names in TABLE.findall(page) for name in names[0].split()}
    missing = {field.name for field in dataclasses.fields(Dialect)} - shown
    if missing:
        sys.exit(
            f"docs/dialects.md has no table for {', '.join(sorted(missing))}: name it in a comment there"
        )
    return TABLE.sub(_table, page)


def _table(found: re.Match[str]) -> str:
    names = found[1].split()
    rows = _event_names() if names == ["event_names"] else "".join(map(_dialect_row, names))
    columns = " | ".join(DIALECTS)
    head = f"| | {columns} |\n|---|{'---|' * len(DIALECTS)}\n"
    return f"<!-- dialects:{found[1]}-->\n\n{head}{rows}\n<!-- end -->"


def _dialect_row(name: str) -> str:
    values = " | ".join(_value(getattr(dialect, name)) for dialect in DIALECTS.values())
    return f"| `{name}`: {field_docstrings(Dialect)[name]} | {values} |\n"


def _event_names() -> str:
    """One row for each name, those that all dialects know first."""
    names = set().union(*(dialect.event_names for dialect in DIALECTS.values()))
    known = {name: [name in dialect.event_names for dialect in DIALECTS.values()] for name in names}
    order = sorted(names, key=lambda name: (-sum(known[name]), name))
    return "".join(f"| `{name}` | {' | '.join(map(_value, known[name]))} |\n" for name in order)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value != "" else "none"


def s3() -> str:
    """What the gateway answers of S3, and what with 501."""
    model = load_service("s3")
    modelled = {
        name: operation
        for name in model.operation_names
        if not (operation := model.operation_model(name)).deprecated
    }
    page = "# Operations of S3\n\n"
    page += "What is not built answers 501 NotImplemented, and so does a parameter that is not taken.\n"
    page += "A request that is no operation of S3 answers 405 MethodNotAllowed.\n"
    page += "\n| operation | parameters that are not taken |\n|---|---|\n"
    for name in sorted(OPERATIONS):
        page += f"| `{name}` | {_not_taken(modelled[name], OPERATIONS[name])} |\n"
    page += "\nForms can be uploaded too: `PostObject`, which AWS documents apart.\n"
    page += "\n## Not built\n\n"
    return page + "".join(f"- `{name}`\n" for name in sorted(modelled.keys() - OPERATIONS.keys()))


def _not_taken(modelled: Any, operation: Operation) -> str:
    members = modelled.input_shape.members.items() if modelled.input_shape else ()
    names = [
        shape.serialization.get("name", member)
        for member, shape in members
        if location(shape) in {"header", "headers", "querystring"} and member not in operation.takes
    ]
    only = [
        f"`{member}` other than {', '.join(sorted(values))}"
        for member, values in operation.takes.items()
        if values
    ]
    return ", ".join([*(f"`{name}`" for name in names), *only])


def field_docstrings(settings: type) -> dict[str, str]:
    """The text that stands under each field of a dataclass."""
    (declared,) = ast.parse(inspect.getsource(settings)).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for field, after in zip(declared.body, declared.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return found


PAGES = {"cli.md": cli, "configuration.md": configuration, "s3.md": s3}


def pages() -> dict[Path, str]:
    """Each page, as it should be."""
    found = {FOLDER / name: MADE + write() for name, write in PAGES.items()}
    documents = {**schemas(), "asyncapi.json": asyncapi()}
    found |= {FOLDER / name: _json(document) for name, document in documents.items()}
    return {**found, DIALECT_PAGE: with_dialect_tables(DIALECT_PAGE.read_text())}


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the pages, or check them."""
    stale = []
    for path, text in pages().items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"these pages are not up to date ({', '.join(stale)}): run `make docs`")


if __name__ == "__main__":
    main()
