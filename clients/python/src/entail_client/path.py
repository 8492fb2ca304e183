"""Path names: parse them, and compare them with prefixes.

A path name is that of docs/api.md, for example `gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/#0`.
"""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = (
    "GatewayClass",
    "Namespace",
    "Gateway",
    "ListenerSet",
    "Listener",
    "Route",
    "RouteRule",
    "Backend",
    "BackendPort",
)
"""The levels that a path can end at."""

_MAX_BYTES = 8192
_MAX_DELEGATIONS = 8
_MAX_RULE_INDEX = 2**32 - 1


class PathSyntaxError(ValueError):
    """A text is not a path name."""

    offset: int
    """Byte offset of the first part that is not expected there."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at byte {offset}")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class PathName:
    """A parsed path name."""

    text: str
    """The name."""
    level: str
    """The level that the path ends at. A mesh root has the level of a Gateway, its port that of a Listener."""
    rules: tuple[str, ...]
    """The rules on the path, from the root down: the name of each, or `#` and its index."""
    skeleton: str
    """The name without the names and indexes of rules."""


def parse(text: str) -> PathName:
    """Parse a path name; raises PathSyntaxError with the offset of the first mistake."""
    return _Parser(text).path_name()


def covers(prefix: str, path: str) -> bool:
    """Report whether a path is that of the prefix or below it. Prefixes match whole steps."""
    return path.startswith(prefix) and (len(path) == len(prefix) or path[len(prefix)] == "/")


class _Parser:
    """A cursor over the parts between slashes."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > _MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > _MAX_BYTES:
            raise PathSyntaxError("path name is longer than 8192 bytes", _MAX_BYTES)
        self.parts = text.split("/")
        self.at = 0
        self.rules: list[str] = []
        self.rule_positions: list[int] = []

    def path_name(self) -> PathName:
        match self.parts[0]:
            case "gatewayclasses" | "namespaces" as kind:
                self.at = 1
                self.name()
                level = "GatewayClass" if kind == "gatewayclasses" else "Namespace"
            case "gateways":
                level = self.gateway()
            case "mesh":
                level = self.mesh()
            case _:
                raise self.error("expected `gateways`, `mesh`, `gatewayclasses` or `namespaces`")
        if self.at < len(self.parts):
            raise self.error("unexpected part; levels cannot be skipped or repeated")
        if not self.rules:
            return PathName(self.text, level, (), self.text)
        parts = self.parts.copy()
        for position in self.rule_positions:
            parts[position] = ""
        return PathName(self.text, level, tuple(self.rules), "/".join(parts))

    def error(self, message: str, at: int | None = None) -> PathSyntaxError:
        before = self.parts[: self.at if at is None else at]
        offset = sum(len(part.encode("utf-8", "surrogatepass")) + 1 for part in before)
        return PathSyntaxError(message, min(offset, len(self.text.encode("utf-8", "surrogatepass"))))

    def keyword(self, word: str) -> bool:
        matches = self.at < len(self.parts) and self.parts[self.at] == word
        self.at += matches
        return matches

    def name(self) -> str:
        if self.at == len(self.parts):
            raise self.error("path name ends too early")
        part = self.parts[self.at]
        if not part:
            raise self.error("empty part")
        self.at += 1
        return part

    def names(self, count: int) -> None:
        for _ in range(count):
            self.name()

    def port(self) -> None:
        start = self.at
        text = self.name()
        # Only the canonical spelling is valid, so that a path has one name.
        if not _is_canonical_number(text, 65535) or text == "0":
            raise self.error("expected a port number from 1 to 65535", start)

    def gateway(self) -> str:
        self.at = 1
        self.names(2)
        level = "Gateway"
        if self.keyword("listenersets"):
            self.names(2)
            level = "ListenerSet"
        if self.keyword("listeners"):
            self.name()
            level = self.below_root("Listener")
        return level

    def mesh(self) -> str:
        self.at = 1
        self.name()
        if not self.keyword("services"):
            raise self.error("expected `services`")
        self.names(2)
        level = "Gateway"
        if self.keyword("ports"):
            self.port()
            level = "Listener"
        return self.below_root(level)

    def below_root(self, level: str) -> str:
        depth = 0
        while True:
            start = self.at
            if not self.keyword("routes"):
                break
            if depth > _MAX_DELEGATIONS:
                raise self.error("more than 8 rules delegate", start)
            depth += 1
            self.names(3)
            if not self.keyword("rules"):
                return "Route"
            self.rule()
            level = "RouteRule"
        if depth == 0 or not self.keyword("backends"):
            return level
        self.names(3)
        if self.keyword("ports"):
            self.port()
            return "BackendPort"
        return "Backend"

    def rule(self) -> None:
        start = self.at
        text = self.name()
        if text.startswith("#") and not _is_canonical_number(text[1:], _MAX_RULE_INDEX):
            raise self.error("expected a rule index such as `#0`", start)
        self.rules.append(text)
        self.rule_positions.append(start)


def _is_canonical_number(text: str, maximum: int) -> bool:
    # Longer texts are larger than any maximum, and Python refuses to read the longest ones.
    is_number = text.isascii() and text.isdigit() and len(text) <= 10
    return is_number and (text == "0" or text[0] != "0") and int(text) <= maximum
