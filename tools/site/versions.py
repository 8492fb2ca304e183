#!/usr/bin/env python3
"""Writes the list of versions of a site, versions.json, and the page that links to them, index.html.

Usage: tools/site/versions.py SITE

Each folder of SITE with an index.html is a version. Releases come first, the newest one at the top.
"""

import json
import re
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>entail documentation</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 18px/1.6 system-ui, sans-serif; max-width: 36em; margin: 3em auto; padding: 0 1em; }}
</style>
</head>
<body>
<h1>entail</h1>
<p>Documentation by version:</p>
<ul>
{items}
</ul>
</body>
</html>
"""


def order(name: str) -> tuple:
    release = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)(-.*)?", name)
    if not release:
        return (1, (), name)
    # A pre-release comes after its release.
    return (0, (*(-int(part) for part in release.groups()[:3]), bool(release[4])), name)


def item(name: str, latest: bool) -> str:
    note = " (latest release)" if latest else ""
    return f'<li><a href="{quote(name)}/index.html">{escape(name)}</a>{note}</li>'


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    site = Path(sys.argv[1])
    versions = sorted((page.parent.name for page in site.glob("*/index.html")), key=order)
    (site / "versions.json").write_text(json.dumps({"versions": versions}, indent=2) + "\n")
    latest = [name for name in versions if order(name)[0] == 0 and "-" not in name][:1]
    items = "\n".join(item(name, name in latest) for name in versions)
    (site / "index.html").write_text(PAGE.format(items=items))


main()
