#!/usr/bin/env python3
"""Writes the pictures of the documentation, docs/pictures/*.svg.

Usage: tools/site/pictures.py [--check]

With --check it writes nothing, and fails if a picture is out of date. Text stands on filled shapes only, and lines have
a medium grey, so the pictures are readable on light and on dark pages; an image cannot know the theme of its page. They
are narrow, because they are read on telephones, too.
"""

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
GREY = "#7d8590"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# Fill, border and text of each kind of shape.
STYLES = {
    "object": ("#dbeafe", "#2563eb", "#1e3a8a"),
    "policy": ("#fef3c7", "#b45309", "#78350f"),
    "override": ("#ede9fe", "#6d28d9", "#4c1d95"),
    "result": ("#dcfce7", "#15803d", "#14532d"),
    "lost": ("#e5e7eb", "#9ca3af", "#4b5563"),
    "note": ("#f3f4f6", "#d1d5db", "#374151"),
    "code": ("#1f2937", "#1f2937", "#f9fafb"),
}


class Picture:
    """An SVG picture; shapes are drawn in the order of the calls."""

    def __init__(self, name: str, title: str, width: int, height: int):
        self.name, self.title, self.width, self.height = name, title, width, height
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, color: str, size=15, bold=False, anchor="middle", mono=False, strike=False
    ):
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}" font-size="{size}" text-anchor="{anchor}"'
            + (' font-weight="600"' if bold else "")
            + (f' font-family="{escape(MONO)}"' if mono else "")
            + (' text-decoration="line-through"' if strike else "")
            # The width of characters differs between fonts; what points at them must not.
            + (f' xml:space="preserve" textLength="{len(text) * size * 0.602:.1f}"' if mono else "")
            + f">{escape(text)}</text>"
        )

    def box(self, x, y, w, h, lines, style="object", strike=False, dashed=False, mono=False, size=15):
        """A rectangle with lines of text in its middle; the first of several lines is bold."""
        fill, border, color = STYLES[style]
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" fill="{fill}" stroke="{border}" '
            f'stroke-width="1.5"{dash}/>'
        )
        lines = [lines] if isinstance(lines, str) else lines
        step = size + 4
        top = y + h / 2 - (len(lines) - 1) * step / 2 + size * 0.35
        for at, line in enumerate(lines):
            bold = at == 0 and len(lines) > 1
            small = size if at == 0 else size - 1.5
            self.text(x + w / 2, top + at * step, line, color, small, bold, mono=mono, strike=strike)

    def line(self, *points, arrow=False, dotted=False, color=GREY, width=2):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"'
            + (' stroke-dasharray="2 4" stroke-linecap="round"' if dotted else "")
            + (' marker-end="url(#arrow)"' if arrow else "")
            + "/>"
        )

    def svg(self) -> str:
        body = "\n".join(f"  {part}" for part in self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" font-family="{escape(SANS)}">\n'
            f"  <title>{escape(self.title)}</title>\n"
            '  <marker id="arrow" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="{GREY}"/></marker>\n'
            f"{body}\n</svg>\n"
        )


def path() -> Picture:
    """The path of the example in concepts.md, with its policies."""
    p = Picture(
        "path", "A path from a GatewayClass to the port of a Service, with the policies attached to its nodes", 480, 536
    )
    nodes = [
        (["GatewayClass", "example"], []),
        (["Gateway", "infra/web"], ["baseline"]),
        (["Listener", "http"], []),
        (["HTTPRoute", "shop/shop"], ["patient"]),
        (["Rule", "pay"], ["payments", "hasty"]),
        (["Service", "shop/shop"], []),
        (["Port", "80"], []),
    ]
    top, height, step = 10, 46, 70
    for at, (lines, policies) in enumerate(nodes):
        y = top + at * step
        if at + 1 < len(nodes):
            p.line((180, y + height), (180, y + step - 2), arrow=True)
        for number in range(len(policies)):
            x = 290 if len(policies) == 1 else 290 + number * 95
            p.line((x, y + height / 2), (262, y + height / 2), dotted=True)
        for number, policy in enumerate(policies):
            w = 184 if len(policies) == 1 else 89
            p.box(290 + number * 95, y + 5, w, height - 10, policy, "policy")
        p.box(98, y, 164, height, lines)
    # From less to more specific.
    p.line((50, 40), (50, top + 6 * step + height - 30), arrow=True)
    p.box(6, top, 84, 42, ["less", "specific"], "note", size=14)
    p.box(6, top + 6 * step + height - 42, 84, 42, ["more", "specific"], "note", size=14)
    p.box(98, 500, 164, 28, "node of the path", size=13)
    p.box(290, 500, 184, 28, "policy on a node", "policy", size=13)
    return p


def merge() -> Picture:
    """Which value of which policy is in effect, for the rule `pay` of the example."""
    p = Picture(
        "merge",
        "Three fields on four policies: the most specific default and the least specific override are in effect",
        480,
        392,
    )
    columns = [("connect", 158), ("request", 260), ("idle", 362)]
    width = 96
    for name, x in columns:
        p.box(x, 8, width, 30, name, "note", mono=True, size=14)
    rows = [
        ("Gateway", "baseline", [("5s", "default"), ("30s", "default"), ("5m", "override")]),
        ("HTTPRoute", "patient", [None, ("60s", "default"), ("1h", "default")]),
        ("Rule", "payments", [None, ("90s", "default"), None]),
        ("Rule", "hasty", [None, ("10s", "default"), None]),
    ]
    won = {("baseline", 0), ("hasty", 1), ("baseline", 2)}
    top, step, height = 52, 64, 48
    for at, (node, policy, values) in enumerate(rows):
        y = top + at * step
        p.box(8, y, 140, height, [policy, f"on the {node}"], "policy", size=14)
        for column, value in enumerate(values):
            if value:
                x = columns[column][1]
                text, block = value
                lost = (policy, column) not in won
                style = "override" if block == "override" else "lost" if lost else "result"
                p.box(x, y, width, height, [text, block], style, strike=lost, size=14)
    y = top + 4 * step + 30
    # From the value in effect down to the answer.
    for column, row in ((0, 0), (1, 3), (2, 0)):
        x = columns[column][1] + width / 2
        start = top + row * step + height
        if column == 2:
            # Around the default that the override replaces.
            x = columns[2][1] + width
            p.line((x, start - 24), (x + 12, start - 24), (x + 12, y + 24), (x + 2, y + 24), arrow=True)
        else:
            p.line((x, start), (x, y - 2), arrow=True)
    p.box(8, y, 140, height, ["effective policy", "on the path to pay"], "note", size=14)
    for (_, x), value, source in zip(columns, ("5s", "10s", "5m"), ("from baseline", "from hasty", "from baseline")):
        p.box(x, y, width, height, [value, source], "result", size=13)
    return p


def precedence() -> Picture:
    """The order of blocks on three levels."""
    p = Picture(
        "precedence", "Order of precedence: overrides from the Gateway down, then defaults from the rule up", 480, 250
    )
    p.box(120, 8, 160, 30, "overrides", "override", size=14)
    p.box(304, 8, 160, 30, "defaults", "policy", size=14)
    for at, (node, level) in enumerate((("A", "Gateway"), ("B", "Route"), ("C", "Rule"))):
        y = 52 + at * 62
        p.box(8, y, 92, 46, [node, level], "object", size=14)
        p.box(120, y, 160, 46, [f"{at + 1}", f"override of {node}"], "override", size=14)
        p.box(304, y, 160, 46, [f"{6 - at}", f"default of {node}"], "policy", size=14)
    for y in (98, 160):
        p.line((200, y), (200, y + 14), arrow=True)
        p.line((384, y + 16), (384, y + 2), arrow=True)
    p.line((200, 222), (200, 238), (384, 238), (384, 224), arrow=True)
    return p


def origin() -> Picture:
    """The parts of a line that `entail explain` prints."""
    p = Picture(
        "origin",
        "The parts of an explanation: field, value, policy, block, strategy, and what was overridden",
        480,
        262,
    )
    code = STYLES["code"][2]
    p.box(4, 96, 472, 68, "", "code")
    p.text(14, 122, "idle = 5m  <- infra/baseline (overrides, PatchOverrides)", code, 13.5, anchor="start", mono=True)
    p.text(14, 148, "  overrides shop/patient: 1h (less specific override)", code, 13.5, anchor="start", mono=True)
    char = 13.5 * 0.602

    def callout(first, last, text, x, w, above, style, level=0):
        left, right = 14 + first * char, 14 + last * char
        middle = (left + right) / 2
        y = 96 if above else 164
        end = y - 14 - level * 40 if above else y + 14 + level * 40
        line = 106 if above else 154
        p.line((left, line), (right, line), color=STYLES[style][0], width=2)
        p.line((middle, line), (middle, end))
        p.box(x, end - 30 if above else end, w, 30, text, style, size=13)

    callout(0, 4, "field", 4, 52, True, "note")
    callout(7, 9, "value in effect", 4, 118, True, "result", 1)
    callout(14, 28, "policy that sets it", 128, 132, True, "policy", 1)
    callout(30, 39, "block of the policy", 236, 140, True, "override")
    callout(41, 55, "merge strategy", 356, 120, True, "note", 1)
    callout(12, 24, "policy that is overridden", 56, 178, False, "policy")
    callout(26, 28, "value that it offered", 166, 152, False, "lost", 1)
    callout(30, 52, "why", 320, 60, False, "note")
    return p


def overview() -> Picture:
    """What entail reads, and who asks it."""
    p = Picture(
        "overview",
        "entail reads objects and policies, computes the effective policy of each path, and answers callers",
        480,
        300,
    )
    p.box(8, 8, 222, 46, ["cluster or manifests", "Gateways, Routes, Services"], "object", size=14)
    p.box(250, 8, 222, 46, ["policies", "timeouts, auth, retries, ..."], "policy", size=14)
    p.line((119, 54), (180, 84), arrow=True)
    p.line((361, 54), (300, 84), arrow=True)
    p.box(
        90,
        86,
        300,
        64,
        ["entail", "effective policy of every path,", "with the origin of each value"],
        "result",
        size=14,
    )
    for x in (82, 240, 398):
        p.line((240, 150), (240, 176), (x, 176), (x, 200), arrow=True)
    for x, lines in (
        (8, ["commands", "get, explain,", "preview, lint"]),
        (166, ["gRPC", "look-ups and", "changes"]),
        (324, ["ext_authz", "per request,", "for Envoy"]),
    ):
        p.box(x, 202, 148, 64, lines, "note", size=14)
    p.parts.append("")
    for x, who in ((82, "people and CI"), (240, "data planes"), (398, "proxies")):
        p.box(x - 58, 272, 116, 26, who, "object", size=13)
    return p


def architecture() -> Picture:
    """The packages and the imports between their modules."""
    p = Picture(
        "architecture",
        "The packages entail, entail-client and entail-core, and the imports between their modules",
        480,
        916,
    )
    width = 104
    lefts = (28, 172, 316)

    def frame(y, h, label):
        p.parts.append(
            f'<rect x="4" y="{y}" width="440" height="{h}" rx="8" fill="none" stroke="{GREY}" stroke-width="1.5" '
            'stroke-dasharray="6 4"/>'
        )
        p.box(20, y - 13, 408, 26, label, "note", size=13)

    def module(name, column, y):
        p.box(lefts[column], y, width, 28, name, size=13)

    def down(column, y, to):
        x = lefts[column] + width / 2
        p.line((x, y), (x, to - 2), arrow=True)

    left, middle, right = (x + width / 2 for x in lefts)
    frame(20, 418, "entail (src): server and commands")
    chain = ["cli", "app", "config", "telemetry", "server", "subscription", "insight", "snapshot", "api"]
    for at, name in enumerate(chain):
        y = 46 + at * 43
        module(name, 1, y)
        if at:
            down(1, y - 15, y)
    module("verify", 0, 89)
    module("source", 2, 132)
    module("background", 2, 175)
    down(2, 160, 175)
    p.line((276, 232), (right, 232), (right, 205), arrow=True)
    p.line((172, 60), (left, 60), (left, 87), arrow=True)
    p.line((276, 103), (right, 103), (right, 130), arrow=True)
    p.line((left, 117), (left, 404), (170, 404), arrow=True)

    down(1, 438, 466)
    frame(480, 106, "entail-client (crates/client): what a data plane links")
    module("mirror", 1, 506)
    module("stubs", 0, 546)
    module("path", 2, 546)
    p.line((172, 520), (left, 520), (left, 544), arrow=True)
    p.line((276, 520), (right, 520), (right, 544), arrow=True)

    down(1, 586, 614)
    p.box(236, 590, 172, 20, "the model only", "note", size=12)
    p.line((444, 300), (464, 300), (464, 770), (446, 770), arrow=True)
    frame(628, 284, "entail-core (crates/core): the rules; pure")
    for name, column, row in (
        ("engine", 1, 0), ("effective", 1, 1), ("attach", 0, 2), ("routing", 1, 2), ("merge", 2, 2),
        ("topology", 0, 3), ("store", 0, 4), ("profile", 1, 4), ("expr", 2, 4), ("model", 2, 5),
    ):  # fmt: skip
        module(name, column, 654 + row * 43)
    row = [654 + at * 43 for at in range(6)]
    for at in (0, 1):
        down(1, row[at] + 28, row[at + 1])
    p.line((172, row[1] + 14), (left, row[1] + 14), (left, row[2] - 2), arrow=True)
    p.line((276, row[1] + 14), (right, row[1] + 14), (right, row[2] - 2), arrow=True)
    down(0, row[2] + 28, row[3])
    p.line((middle, row[2] + 28), (middle, row[3] + 14), (134, row[3] + 14), arrow=True)
    down(0, row[3] + 28, row[4])
    p.line((132, row[4] + 14), (170, row[4] + 14), arrow=True)
    p.line((276, row[4] + 14), (314, row[4] + 14), arrow=True)
    p.line(
        (right, row[2] + 28), (right, row[3] + 14), (middle + 20, row[3] + 14), (middle + 20, row[4] - 2), arrow=True
    )
    down(2, row[4] + 28, row[5])
    return p


PICTURES = [path, merge, precedence, origin, overview, architecture]


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    texts = {f"{picture.name}.svg": picture.svg() for picture in (make() for make in PICTURES)}
    if not sys.argv[1:]:
        FOLDER.mkdir(exist_ok=True)
        for name, text in texts.items():
            (FOLDER / name).write_text(text)
        return
    found = {file.name: file.read_text() for file in FOLDER.glob("*.svg")}
    differ = sorted(name for name in texts.keys() | found.keys() if texts.get(name) != found.get(name))
    if differ:
        sys.exit(f"out of date in docs/pictures: {', '.join(differ)}: run tools/site/pictures.py")


main()
