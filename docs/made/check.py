"""Check the built site: links inside it lead somewhere, and it loads nothing from other sites."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

EXTERNAL = "external-links.txt"  # links that lead out of the site, which are not followed


class _Links(HTMLParser):
    """The links of a page, and the names that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.loaded: set[str] = set()  # scripts, styles, pictures
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and (key == "src" or (key == "href" and tag == "link")):
                self.loaded.add(value)
            elif value and key == "href":
                self.links.add(value)
            elif value and key in ("id", "name"):
                self.names.add(value)


def check(site: Path) -> list[str]:
    """Return what is wrong with the links of a site; write those that lead out of the site to a file."""
    pages = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]
    found = {page: _Links(page.read_text()) for page in pages}
    problems, external = list[str](), set[str]()
    for page, parsed in found.items():
        for link in sorted(parsed.links | parsed.loaded):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                external.add(link)
                if url.scheme == "mailto":  # the project has no address: it is a text such as P@10
                    problems.append(f"{page.relative_to(site)}: {link} is not an address")
                if link in parsed.loaded and url.scheme != "data":
                    problems.append(f"{page.relative_to(site)}: {link} is loaded from elsewhere")
                continue
            target = (page.parent / unquote(url.path)).resolve() if url.path else page
            names = found[target].names if target in found else set()
            if not target.exists() or (
                url.fragment and names and unquote(url.fragment) not in names
            ):
                problems.append(f"{page.relative_to(site)}: {link} leads nowhere")
    (site / EXTERNAL).write_text("".join(f"{link}\n" for link in sorted(external)))
    return problems
