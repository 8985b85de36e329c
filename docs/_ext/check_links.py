"""Follow every link between the pages of a built site: the page must be there, and the place on it.

python docs/_ext/check_links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag


class _Page(HTMLParser):
    """The links of a page and the places that a link can name."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def broken(folder):
    """Each link that leads nowhere, as (page, link)."""
    pages = {path.resolve(): _Page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    for path, page in pages.items():
        for link in page.links:
            if "://" in link or link.startswith(("data:", "mailto:", "javascript:", "//")):
                continue
            target, place = urldefrag(link)
            file = (path.parent / unquote(target.split("?")[0])).resolve() if target else path
            if not file.is_file() or (file in pages and unquote(place) not in pages[file].places):
                yield path, link


def main():
    folder = Path(sys.argv[1])
    found = list(broken(folder))
    for path, link in found:
        print(f"{path.relative_to(folder.resolve())}: {link} leads nowhere")
    pages = len(list(folder.rglob("*.html")))
    if pages == 0:
        sys.exit(f"no pages in {folder}")
    print(f"{pages} pages, every link between them leads somewhere" if not found else f"{len(found)} broken links")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
