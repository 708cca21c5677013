"""Builds the site of the documentation: `build.py SITE [CRATES]`, with mkdocs-material and mkdocstrings. `cargo xtask site` runs it.

The pages lie as in the repository, so that their links hold: README.md is the first page, and every file that a page links is
copied, notebooks as pages. Then mkdocs builds them with `--strict`, and the HTML is checked: links, anchors, that nothing is fetched from elsewhere, and
that a page has the lists, blocks and tables that it has as CommonMark. CRATES is what `cargo doc` wrote.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
# What is written for the site alone, by its place in the site.
OWN = {"site.css": "site.css", "site.js": "site.js", "python.md": "docs/reference/python.md", "calibration.md": "docs/reference/python-calibration.md",
       "rust.md": "docs/reference/rust.md"}
# The place of the documentation of the crates.
RUST = "rust"
# What a page must have as often as its CommonMark, which other programs show.
COUNTED = ["h1", "h2", "h3", "li", "pre", "table", "tr", "td", "img"]
LINK = re.compile(r"""\]\(([^)\s]+)\)|(?:href|src|srcset)="([^"]+)\"""")
FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.M | re.S)
# Attributes that make a browser fetch something.
FETCHED = {"script": "src", "img": "src", "source": "srcset", "link": "href", "iframe": "src"}


def local_links(page):
    """The files that a page links, from the root of the repository."""
    text = FENCE.sub("", page.read_text())
    for one, other in LINK.findall(text):
        target = urlsplit(one or other)
        if not target.scheme and target.path:
            yield (page.parent / unquote(target.path)).resolve()


def stage(pages):
    """Copies README.md, the pages of docs and all that they link."""
    shutil.rmtree(pages, ignore_errors=True)
    waiting = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    copied = set()
    while waiting:
        source = waiting.pop()
        if source in copied or not source.exists():
            continue  # mkdocs reports a link to nowhere
        copied.add(source)
        target = pages / source.relative_to(ROOT)
        if source.is_dir():
            if (source / "README.md").exists():
                waiting.append(source / "README.md")
                continue
            files = sorted(path for path in source.iterdir() if path.is_file())
            target.mkdir(parents=True, exist_ok=True)
            lines = [f"# {source.relative_to(ROOT)}", "", *(f"- [{path.name}]({path.name})" for path in files)]
            (target / "index.md").write_text("\n".join(lines) + "\n")
            waiting += files
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(for_mkdocs(source.read_text(), source.parent))
            waiting += local_links(source)
        elif source.suffix == ".ipynb":
            target.with_suffix(".md").write_text(for_mkdocs(of_notebook(source), source.parent))
            waiting += local_links(source)
        else:
            shutil.copyfile(source, target)
    for name, place in OWN.items():
        shutil.copyfile(HERE / name, pages / place)


def of_notebook(path):
    """A notebook as CommonMark: its cells and what they printed."""
    blocks = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        blocks.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        printed = "".join(line for output in cell.get("outputs", []) for line in output["text"]).rstrip()
        blocks += [f"```text\n{printed}\n```"] if printed else []
    return "\n\n".join(blocks)


def page_of(folder, link):
    """The page of a folder or notebook that is linked; any other link as it is."""
    target = folder / link
    if target.suffix == ".ipynb":
        return link.removesuffix(".ipynb") + ".md"
    name = "README.md" if (target / "README.md").exists() else "index.md"
    return f"{link}/{name}" if target.is_dir() else link


def for_mkdocs(text, folder):
    """A page of CommonMark as Python-Markdown reads it: what belongs to a numbered item is indented by four spaces instead of
    three, a blank line separates items that contain one, and a link to a folder leads to its page."""
    text = re.sub(r"\]\(([^)\s:#]+)\)", lambda link: f"]({page_of(folder, link[1])})", text)
    lines, is_numbered, has_blank = [], False, False
    for line in text.splitlines():
        line = re.sub(r"^( *```\w+),.*", r"\1", line)  # `rust,ignore` is `rust`
        if re.match(r"\d+\. ", line):
            lines += [""] if is_numbered and has_blank else []
            is_numbered, has_blank = True, False
        elif line and not line.startswith(" "):
            is_numbered, has_blank = False, False
        has_blank |= not line
        lines.append(" " + line if is_numbered and line.startswith("   ") else line)
    return "\n".join(lines) + "\n"


class Page(HTMLParser):
    """The anchors of a page, its links, what a browser fetches for it, and the tags of its article."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.fetched = set(), [], []
        self.tags, self.is_article = Counter(), "<article" not in text
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.is_article |= tag == "article"
        self.tags[tag] += self.is_article
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get(FETCHED.get(tag)) and found.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(found[FETCHED[tag]])

    def handle_endtag(self, tag):
        self.is_article &= tag != "article"


def problems(site):
    """Links and sources of every page that lead nowhere, and sources elsewhere."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if not path.is_relative_to(site / RUST)}
    for path, page in pages.items():
        shown = path.relative_to(site)
        for url in page.fetched:
            if urlsplit(url).scheme not in ("", "data") or url.startswith("//"):
                yield f"{shown} fetches {url}"
        for url in page.links + page.fetched:
            target = urlsplit(url)
            if target.scheme or target.netloc:
                continue
            # 404.html is shown at any address, so its links begin at the root.
            base = site if target.path.startswith("/") else path.parent
            file = (base / unquote(target.path).lstrip("/")).resolve() if target.path else path
            file = file / "index.html" if file.is_dir() else file
            if file.is_relative_to(site / RUST) and not (site / RUST).exists():
                continue
            if not file.exists():
                yield f"{shown} links {url}, which does not exist"
            elif target.fragment and file in pages and unquote(target.fragment) not in pages[file].anchors:
                yield f"{shown} links {url}, but {file.relative_to(site)} has no such anchor"


def lost(pages, site):
    """Pages that have other lists, blocks or tables than their CommonMark."""
    own = {pages / place for place in OWN.values()}
    for source in sorted(set(pages.rglob("*.md")) - own):
        path = (site / source.relative_to(pages)).with_suffix(".html")
        path = path.with_name("index.html") if source.name == "README.md" else path
        original = ROOT / source.relative_to(pages)
        text = (original if original.exists() else source).read_text()
        expected = Page(MarkdownIt("gfm-like", {"linkify": False}).render(text)).tags
        found = Page(path.read_text()).tags
        for tag in COUNTED:
            if expected[tag] != found[tag]:
                yield f"{source.relative_to(pages)} has {expected[tag]} <{tag}> as CommonMark, and {found[tag]} on the site"


def main():
    site = Path(sys.argv[1]).resolve()
    pages = site.with_name(site.name + "-pages")
    stage(pages)
    places = {"CALMIX_SITE_PAGES": pages, "CALMIX_SITE": site, "CALMIX_SITE_PACKAGE": ROOT / "bindings/python/python"}
    environment = os.environ | {name: str(path) for name, path in places.items()} | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-B", "-m", "mkdocs", "build", "--strict", "--config-file", str(HERE / "mkdocs.yml")]
    if subprocess.run(command, env=environment).returncode:
        sys.exit(1)
    for crates in sys.argv[2:]:
        shutil.copytree(crates, site / RUST)
    found = [*problems(site), *lost(pages, site)]
    print("".join(f"{problem}\n" for problem in found), file=sys.stderr, end="")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
