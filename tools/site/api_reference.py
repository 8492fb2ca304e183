#!/usr/bin/env python3
"""Writes docs/api-reference.md from the comments in proto/entail/v1.

Usage: tools/site/api_reference.py [--check]

With --check it writes nothing, and fails if the file is out of date. It reads the part of proto3 that these files use,
and refuses a line that it does not understand.
"""

import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "proto" / "entail" / "v1"
OUTPUT = ROOT / "docs" / "api-reference.md"
PACKAGE = "entail.v1"
# The services in the order of the page; the messages of `types.proto` follow.
FILES = ["effective_policy.proto", "policy_insight.proto", "types.proto"]

HEAD = f"""# API reference

This page is generated from the comments in `proto/entail/v1`: every method, message and field of the package
`{PACKAGE}`. [api.md](api.md) shows how to call the API, with examples, errors, limits and what stays compatible.

Field names are those of protobuf. In JSON, as `grpcurl` prints it, they are in camelCase: `spec_json` is `specJson`.
"""


@dataclass
class Item:
    """A service, method, message, enum, field, oneof or value."""

    kind: str
    name: str
    comment: str = ""
    # Of a field: its type as written, its label and number.
    type: str = ""
    label: str = ""
    number: int = 0
    oneof: str = ""
    # Of a method.
    request: str = ""
    response: str = ""
    streams: bool = False
    items: list["Item"] = field(default_factory=list)


def fail(path: Path, number: int, line: str) -> None:
    sys.exit(f"{path}:{number}: api_reference.py does not understand: {line}")


def statements(path: Path):
    """Yields (line number, comment, statement). A comment is what stands right above a statement."""
    comment, pending = [], ""
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.strip()
        if line.startswith("//"):
            if pending:
                fail(path, number, raw)
            comment.append(line[2:].strip())
        elif not line:
            comment = []
        else:
            # A statement ends with a semicolon or a brace; a long one has several lines.
            pending = f"{pending} {line}".strip()
            if pending[-1] in ";{}":
                yield number, "\n".join(comment), pending
                comment, pending = [], ""
    if pending:
        fail(path, number, pending)


BLOCK = re.compile(r"(service|message|enum|oneof) (\w+) \{(\})?")
FIELD = re.compile(r"(?:(repeated|optional) )?([\w.]+|map<\w+, [\w.]+>) (\w+) = (\d+);")
VALUE = re.compile(r"(\w+) = (\d+);")
METHOD = re.compile(r"rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);")
IGNORED = re.compile(r'(syntax = "proto3"|package [\w.]+|import "[^"]+"|option go_package = "[^"]+");')


def read(path: Path) -> Item:
    top = Item("file", path.name)
    stack = [top]
    for number, comment, line in statements(path):
        here = stack[-1]
        if line == "}":
            stack.pop()
            continue
        if block := BLOCK.fullmatch(line):
            item = Item(block[1], block[2], comment)
            here.items.append(item)
            if not block[3]:
                stack.append(item)
        elif here.kind == "enum" and (value := VALUE.fullmatch(line)):
            here.items.append(Item("value", value[1], comment, number=int(value[2])))
        elif here.kind == "service" and (rpc := METHOD.fullmatch(line)):
            here.items.append(Item("method", rpc[1], comment, request=rpc[2], response=rpc[4], streams=bool(rpc[3])))
        elif here.kind in ("message", "oneof") and (found := FIELD.fullmatch(line)):
            item = Item("field", found[3], comment, found[2], found[1] or "", int(found[4]))
            if here.kind == "oneof":
                item.oneof = here.name
            here.items.append(item)
        elif here.kind != "file" or not IGNORED.fullmatch(line):
            fail(path, number, line)
    if stack != [top]:
        sys.exit(f"{path}: a block is not closed")
    return top


def types(items: list[Item], prefix: str = ""):
    """Yields (full name, message or enum), nested ones after what contains them."""
    for item in items:
        if item.kind in ("message", "enum"):
            yield prefix + item.name, item
            yield from types(item.items, f"{prefix}{item.name}.")


def anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def link(name: str) -> str:
    return f"[{name}](#{anchor(name)})"


class Page:
    def __init__(self, files: list[Item]):
        self.files = files
        self.known = {name for file in files for name, _ in types(file.items)}
        self.lines: list[str] = []
        self.anchors: set[str] = set()

    def heading(self, level: int, title: str) -> None:
        if anchor(title) in self.anchors:
            sys.exit(f"two headings have the anchor {anchor(title)}")
        self.anchors.add(anchor(title))
        self.lines += [f"{'#' * level} {title}", ""]

    def prose(self, comment: str) -> None:
        for paragraph in comment.split("\n\n"):
            text = " ".join(paragraph.split("\n"))
            if text:
                self.lines += textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False) + [""]

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        for row in [head, ["---"] * len(head), *rows]:
            self.lines.append("| " + " | ".join(row) + " |" if row[0] != "---" else "|" + "|".join(row) + "|")
        self.lines.append("")

    @staticmethod
    def cell(comment: str) -> str:
        # A line that explains one of several values, "`Value`: ...", begins a line here, too.
        comment = re.sub(r"\n(?=`\w+`: )", "\n\n", comment)
        paragraphs = [" ".join(p.split("\n")).strip() for p in comment.split("\n\n")]
        return "<br>".join(paragraphs).replace("|", "\\|")

    def type(self, name: str, within: str) -> str:
        """The type with a link to it. A nested type is found from the message outwards, as protobuf does."""
        if name == "google.protobuf.Timestamp":
            return "Timestamp"
        parts = within.split(".")
        for depth in range(len(parts), -1, -1):
            full = ".".join([*parts[:depth], name])
            if full in self.known:
                return link(full)
        if not name.islower():
            sys.exit(f"{within}: the type {name} is not known")
        return f"`{name}`"

    def service(self, service: Item) -> None:
        self.heading(2, service.name)
        self.prose(service.comment)
        for method in service.items:
            self.heading(3, method.name)
            self.lines += [
                f"{link(method.request)} → {'a stream of ' if method.streams else ''}{link(method.response)}",
                "",
            ]
            self.prose(method.comment)

    def message(self, name: str, message: Item) -> None:
        fields = []
        for item in message.items:
            if item.kind == "oneof":
                fields += [(entry, item.comment) for entry in item.items]
            elif item.kind == "field":
                fields.append((item, ""))
        self.heading(3, name)
        self.prose(message.comment)
        if not fields:
            self.lines += ["No fields.", ""]
            return
        rows = []
        for item, of_oneof in sorted(fields, key=lambda entry: entry[0].number):
            of = self.type(item.type, name)
            if item.label == "repeated":
                of = f"list of {of}"
            if item.label == "optional":
                of += ", optional"
            text = self.cell(item.comment)
            if item.oneof:
                text = " ".join(filter(None, [text, f"One of `{item.oneof}`.", self.cell(of_oneof)]))
            rows.append([str(item.number), f"`{item.name}`", of, text])
        self.table(["No.", "Field", "Type", "Description"], rows)

    def enum(self, name: str, enum: Item) -> None:
        self.heading(3, name)
        self.prose(enum.comment)
        self.table(
            ["No.", "Value", "Description"],
            [[str(v.number), f"`{v.name}`", self.cell(v.comment)] for v in enum.items],
        )

    def text(self) -> str:
        self.lines = [HEAD]
        for file in self.files:
            services = [item for item in file.items if item.kind == "service"]
            for service in services:
                self.service(service)
            title = f"Messages of {services[0].name}" if services else "Messages of both services"
            self.heading(2, title)
            for name, item in types(file.items):
                (self.message if item.kind == "message" else self.enum)(name, item)
        return "\n".join(self.lines).rstrip("\n").replace("\n\n\n", "\n\n") + "\n"


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    found = sorted(path.name for path in PROTOS.glob("*.proto"))
    if found != sorted(FILES):
        sys.exit(f"{PROTOS} has {found}, and the list in api_reference.py is {FILES}")
    text = Page([read(PROTOS / name) for name in FILES]).text()
    if not sys.argv[1:]:
        OUTPUT.write_text(text)
    elif not OUTPUT.exists() or OUTPUT.read_text() != text:
        sys.exit(f"{OUTPUT.relative_to(ROOT)} is out of date: run tools/site/api_reference.py")


main()
