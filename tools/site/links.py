#!/usr/bin/env python3
"""Checks links, without any request to the network.

Usage: tools/site/links.py sources             links and anchors in the Markdown files of the repository
       tools/site/links.py summary             each page of docs/ is in SUMMARY.md, under its own title
       tools/site/links.py book FOLDER         links and anchors in a built book
       tools/site/links.py assets FOLDER       no script, style, font or image of a built book is loaded from elsewhere
       tools/site/links.py search FOLDER       each page of a built book is in its search index

Each problem is a line; the exit code is 1 if there is one.
"""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?\s*$", re.M)
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$", re.M)
ATTRIBUTE = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)=\"([^\"]+)\"", re.I)
REFERENCE = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"", re.I)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)


# Sources


def blank(match: re.Match) -> str:
    """What replaces text that has no links: as many lines."""
    return "\n" * match[0].count("\n")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"<[^>]+>", "", heading)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
    text = re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)", "", text)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


class Page:
    def __init__(self, path: Path):
        text = COMMENT.sub(blank, FENCE.sub(blank, path.read_text()))
        self.anchors, seen = set(ATTRIBUTE.findall(text)), {}
        self.title = ""
        for level, heading in HEADING.findall(text):
            name = slug(heading)
            number = seen.get(name, -1) + 1
            seen[name] = number
            self.anchors.add(f"{name}-{number}" if number else name)
            if len(level) == 1 and not self.title:
                self.title = heading
        self.links = []
        text = CODE.sub(lambda match: "`" + blank(match) + "`", text)
        for pattern in (LINK, DEFINITION, REFERENCE):
            for found in pattern.finditer(text):
                self.links.append((text.count("\n", 0, found.start()) + 1, found[1]))


def markdown_files() -> list[Path]:
    # Files that are not committed yet count, too; those that git ignores do not.
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists())


def sources() -> tuple[list[str], int]:
    pages = {path: Page(path) for path in markdown_files()}
    problems, count = [], 0
    for path, page in pages.items():
        for line, link in page.links:
            if ELSEWHERE.match(link):
                continue
            count += 1
            file, _, anchor = link.partition("#")
            target = Path(os.path.normpath(path.parent / unquote(file))) if file else path
            where = f"{path.relative_to(ROOT)}:{line}: {link}"
            if not target.exists():
                problems.append(f"{where}: there is no such file")
            elif ROOT not in target.parents:
                problems.append(f"{where}: outside of the repository")
            elif anchor and (target.suffix != ".md" or anchor not in (pages.get(target) or Page(target)).anchors):
                problems.append(f"{where}: there is no such anchor")
    return problems, count


def summary() -> tuple[list[str], int]:
    docs = ROOT / "docs"
    text = (docs / "SUMMARY.md").read_text()
    entries: dict[Path, str] = {}
    problems = []
    for found in re.finditer(r"\[([^\]]+)\]\(([^)]+)\)", text):
        path = Path(os.path.normpath(docs / found[2]))
        if path in entries:
            problems.append(f"docs/SUMMARY.md: {found[2]} is there twice")
        entries[path] = found[1]
    for path in sorted(docs.rglob("*.md")):
        if path not in entries and path.name != "SUMMARY.md":
            title = Page(path).title.partition(":")[0]
            problems.append(f"docs/SUMMARY.md lacks a line: - [{title}]({path.relative_to(docs)})")
    for path, title in entries.items():
        if not path.exists():
            problems.append(f"docs/SUMMARY.md: {path.relative_to(ROOT)} does not exist")
            continue
        # The title of a finding ends with its meaning, which is too long for a list.
        heading = Page(path).title.replace("`", "")
        if title not in (heading, heading.partition(":")[0]):
            problems.append(f"docs/SUMMARY.md: `{title}` has the title `{heading}`")
    return problems, len(entries)


# The book


class Html(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.twice: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.styles: list[str] = []
        self.inside = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        values = {name: value or "" for name, value in attributes}
        if anchor := values.get("id"):
            (self.twice if anchor in self.anchors else self.anchors).add(anchor)
        if tag == "a":
            if "name" in values:
                self.anchors.add(values["name"])
            if "href" in values:
                self.links.append(values["href"])
        elif tag == "link":
            self.loaded.append(values.get("href", ""))
        elif tag != "base":
            for name in ("src", "srcset", "data", "poster", "xlink:href", "href"):
                if name in values:
                    self.loaded.append(values[name])
        if "style" in values:
            self.styles.append(values["style"])

    def handle_data(self, data):
        if self.inside == "style":
            self.styles.append(data)

    def handle_endtag(self, tag):
        self.inside = ""


def html_pages(folder: Path) -> dict[Path, Html]:
    return {path: Html(path) for path in sorted(folder.rglob("*.html"))}


def book(folder: Path) -> tuple[list[str], int]:
    pages = html_pages(folder)
    problems, count = [], 0
    for path, page in pages.items():
        name = path.relative_to(folder)
        problems += [f"{name}: the anchor {anchor} is there twice" for anchor in sorted(page.twice)]
        for link in page.links + page.loaded:
            if ELSEWHERE.match(link) or not link:
                continue
            count += 1
            file, _, anchor = link.partition("#")
            # The address of the page, and of what is in other versions of the book, is not known.
            target = Path(os.path.normpath(path.parent / unquote(file.partition("?")[0]))) if file else path
            if folder not in target.parents:
                problems.append(f"{name}: {link}: outside of the book")
            elif not target.is_file():
                problems.append(f"{name}: {link}: there is no such file")
            elif anchor and (target not in pages or unquote(anchor) not in pages[target].anchors):
                problems.append(f"{name}: {link}: there is no such anchor")
    return problems, count


def assets(folder: Path) -> tuple[list[str], int]:
    problems, count = [], 0
    urls = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")

    def check(where: Path, value: str) -> None:
        nonlocal count
        count += 1
        if re.match(r"https?:|//", value.strip(), re.I):
            problems.append(f"{where.relative_to(folder)} loads {value}")

    for path, page in html_pages(folder).items():
        for value in page.loaded:
            check(path, value)
        for style in page.styles:
            for found in urls.finditer(style):
                check(path, found[1] or found[2])
    for path in sorted(folder.rglob("*.css")) + sorted(folder.rglob("*.svg")):
        text = path.read_text()
        for found in urls.finditer(text):
            check(path, found[1] or found[2])
        for found in re.finditer(r"\b(?:xlink:href|href|src)=['\"]([^'\"]+)", text):
            check(path, found[1])
    for path in sorted(folder.rglob("*.js")):
        # What a script asks for while it runs: only with a constant address, but others would come from the pages.
        for found in re.finditer(
            r"(?:\bfetch|\bimport|importScripts|new Worker)\(\s*['\"`]([^'\"`]+)", path.read_text()
        ):
            check(path, found[1])
    return problems, count


def search(folder: Path) -> tuple[list[str], int]:
    found = list(folder.glob("searchindex*.js"))
    if len(found) != 1:
        return [f"{len(found)} files searchindex*.js"], 0
    text = found[0].read_text()
    # The script has the index as the JSON text of a string.
    match = re.search(r"JSON\.parse\('(.*)'\)", text, re.S)
    if not match:
        return [f"{found[0].name}: the index was not found in it"], 0
    raw = re.sub(r"\\(['\\])", r"\1", match[1])
    index = json.loads(raw)
    indexed = {url.partition("#")[0] for url in index["doc_urls"]}
    pages = {str(path.relative_to(folder)) for path in folder.rglob("*.html")} - {"toc.html"}
    return [f"{page} is not in the search index" for page in sorted(pages - indexed)], len(indexed)


def main() -> None:
    checks = {"sources": sources, "summary": summary, "book": book, "assets": assets, "search": search}
    if (
        len(sys.argv) < 2
        or sys.argv[1] not in checks
        or len(sys.argv) != (2 if sys.argv[1] in ("sources", "summary") else 3)
    ):
        sys.exit(__doc__)
    problems, count = checks[sys.argv[1]](*[Path(name).resolve() for name in sys.argv[2:]])
    print("\n".join([*problems, f"{sys.argv[1]}: {count} checked, {len(problems)} problems"]))
    # A check that has found nothing to check is broken.
    sys.exit(1 if problems or not count else 0)


main()
