#!/usr/bin/env python3
"""Writes the sources of the book: the pages of docs/, and those at the top of the repository that SUMMARY.md names.

Usage: tools/site/stage.py FOLDER VERSION [REPOSITORY]

Links to what is not a page of the book lead to REPOSITORY, the address of a repository on the web with the revision,
such as https://HOST/OWNER/entail/blob/v0.1.0. Without it, they lead to copies of the files in the book, and of links to
folders the text remains.
"""

import os
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.M | re.S)
# The text of a link has no brackets but those of one image or code.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
DEFINITION = re.compile(r"^(\[[^\]]+\]: )(\S+)$", re.M)


def pages(summary: str) -> dict[str, str]:
    """The name of each page in the book, by its path from the top of the repository."""
    found = {}
    for _, _, target in LINK.findall(summary):
        source = os.path.normpath(f"docs/{target}")
        found[source] = os.path.relpath(source, "docs") if source.startswith("docs/") else source.lower()
    return found


def outside_code(text: str, change) -> str:
    """Changes the text that is not in a block of code."""
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(text[at:])])


class Stage:
    """The folder of sources that mdBook reads."""

    def __init__(self, out: Path, names: dict[str, str], repository: str):
        self.out, self.names, self.repository = out, names, repository

    def target(self, link: str, source: str) -> str:
        """Where a link of a page leads in the book; empty if nowhere."""
        if re.match(r"[a-z]+:|#", link):
            return link
        file, hash_sign, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(source), file))
        if path in self.names or path.startswith("docs/"):
            # A page that mdBook calls index is named so in links, too.
            to = re.sub(r"README\.md$", "index.md", self.names.get(path, os.path.relpath(path, "docs")))
        elif self.repository:
            return f"{self.repository}/{path}{hash_sign}{anchor}"
        elif (ROOT / path).is_file():
            # As text: browsers would save other files instead of showing them. mdBook changes links with `.md`.
            to, hash_sign, anchor = f"files/{path.removesuffix('.md')}.txt", "", ""
            (self.out / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.out / to)
        else:
            return ""
        return os.path.relpath(to, os.path.dirname(self.names[source]) or ".") + hash_sign + anchor

    def page(self, source: str) -> None:
        """Writes a page with the links that it has in the book."""

        def link(match: re.Match) -> str:
            image, label, target = match.groups()
            to = self.target(target, source)
            return f"{image}[{label}]({to})" if to else label

        def definition(match: re.Match) -> str:
            return match[1] + (self.target(match[2], source) or "#")

        text = (ROOT / source).read_text()
        text = outside_code(text, lambda part: DEFINITION.sub(definition, LINK.sub(link, part)))
        # Highlighting takes the rest of a command after a `#`, as in `httproute/shop/shop#browse`, for a comment.
        text = re.sub(r"^```console$", "```text", text, flags=re.M)
        file = self.out / self.names[source]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder, version = Path(sys.argv[1]), sys.argv[2]
    repository = sys.argv[3].rstrip("/") if len(sys.argv) == 4 else ""
    summary = (DOCS / "SUMMARY.md").read_text()
    names = pages(summary)
    out = folder / "src"
    out.mkdir(parents=True)
    stage = Stage(out, names, repository)
    for source in names:
        stage.page(source)
    # mdBook renames README.md itself.
    (out / "SUMMARY.md").write_text(LINK.sub(lambda m: f"[{m[2]}]({names[os.path.normpath(f'docs/{m[3]}')]})", summary))
    shutil.copytree(DOCS / "pictures", out / "pictures")
    for name in ("site.css", "versions.js"):
        shutil.copy(HERE / name, folder)
    config = (HERE / "book.toml").read_text()
    (folder / "book.toml").write_text(config.replace('title = "entail"', f'title = "entail {version}"'))


main()
