"""The sources of the site: pages of docs/ with links as Sphinx wants them, and generated pages.

Pages are plain Markdown that GitHub shows as well.  The sections of docs/README.md become the
sections of the site; a comment `<!-- site: .. -->` lists pages that only the site has.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from firstpage.core import charts
from firstpage.evaluation.measures import measure_classes
from made.commands import command_help, command_pages
from made.markdown import toctree
from made.measure_pages import measure_pages, measure_pictures
from made.notebooks import NOTEBOOKS, notebook_pages
from made.ranker_pictures import ranker_pictures, with_picture
from made.reference import public_names, reference_pages

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
# Pages that have another name on the site.
RENAMED = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "docs/search.md": "searching.md",  # Sphinx writes search.html
    "docs/rankers/README.md": "rankers/index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"(\[[^\]]*\])\(([^)#:\s]+)(#[^)\s]*)?\)")
PICTURE = re.compile(r"^!\[([^\]]*)\]\(([\w./-]+)\)$", re.M)
SECTION = re.compile(r"^## (.*)\n", re.M)
TOCTREE = re.compile(r"^```\{toctree\}.*?^```\n", re.M | re.S)
SITE_ONLY = re.compile(r"^<!-- site:\n(.*?)^-->\n", re.M | re.S)
MEASURES = {f"measures/{cls.__name__.lower()}.md" for cls in measure_classes()}
ABOUT = "# Firstpage\n\n> Learning to rank for the results that people see.\n\n"


def stage(folder: Path) -> None:
    """Write the sources of the site into a folder; what did not change is left as it is."""
    texts = sources()
    for file in folder.rglob("*"):
        name = str(file.relative_to(folder))
        if file.suffix in (".md", ".rst") and name not in texts and not name.startswith("gallery/"):
            file.unlink()
    for name, text in texts.items():
        _write(folder / name, text)
    shutil.copytree(DOCS / "images", folder / "images", dirs_exist_ok=True)
    for kind, pictures in (("measures", measure_pictures()), ("rankers", ranker_pictures())):
        for name, chart in pictures.items():
            _write(folder / "images" / kind / f"{name}.svg", chart)
    for chart in folder.glob("*/**/*.svg"):
        if not (chart.stem.endswith("-dark") or "gallery" in chart.parts):
            _write(chart.with_stem(f"{chart.stem}-dark"), dark(chart.read_text()))
    _copy_linked_files(folder)


def sources() -> dict[str, str]:
    """Return all pages by their names on the site."""
    texts = {name: adapted(page, name) for page, name in pages().items()}
    sections = dict(section_pages())
    texts["index.md"] += sections.pop("index.md") + toctree(sections)
    for name in ranker_pictures():
        texts[f"rankers/{name}.md"] = with_picture(texts[f"rankers/{name}.md"], name)
    texts["rankers/index.md"] += toctree(["*"], ":glob:")
    generated = chain(reference_pages(), command_pages(), measure_pages(), notebook_pages())
    return texts | sections | dict(generated)


def pages() -> dict[Path, str]:
    """Return the pages that are written by hand, with their names on the site."""
    files = [*DOCS.rglob("*.md"), *(ROOT / name for name in RENAMED)]
    relative = {file: str(file.relative_to(ROOT)) for file in files}
    return {
        file: RENAMED.get(name, name.removeprefix("docs/"))
        for file, name in relative.items()
        if RENAMED.get(name) != "index.md" and not name.endswith(".in.md")
    }


def _copy_linked_files(folder: Path) -> None:
    """Copy the files, such as sources, that pages link."""
    for file in NOTEBOOKS.glob("*.ipynb"):
        _write(folder / "files" / file.relative_to(ROOT), file.read_text())
    for page in pages():
        for _, target, _ in LINK.findall(page.read_text()):
            file = (page.parent / target).resolve()
            if file.is_file() and file.suffix not in (".md", ".png", ".svg"):
                _write(folder / "files" / file.relative_to(ROOT), file.read_text())


def write_raw_pages(site: Path) -> None:
    """Write the Markdown of each page for programs, and llms.txt, which lists the pages."""
    raw = {
        name: TOCTREE.sub("", text).replace(".rst)", ".md)")
        for name, text in sources().items()
        if name.endswith(".md")
    }
    raw |= {f"commands/{name}.md": f"```text\n{text}```\n" for name, text in command_help().items()}
    for each in public_names():
        docstring = inspect.getdoc(each.value) or ""
        raw[f"python/{each.path}.md"] = f"# {each.path}\n\n{docstring}\n"
    examples = [file.read_text() for file in sorted(DOCS.glob("gallery/*.py"))]
    raw["gallery/index.md"] = "\n".join(f"```python\n{text}```\n" for text in examples)
    for name, text in raw.items():
        _write(site / name, text)
    _copy_linked_files(site)
    parts = [text for name, text in raw.items() if name.startswith("sections/")]
    _write(site / "llms.txt", ABOUT + "".join(parts).replace("](../", "](").replace("# ", "## "))


def dark(svg: str) -> str:
    """Return a chart in the colors of the dark theme."""
    colors = dict(charts.COLOR.findall(charts.DARK))
    light = {
        value: colors[name] for name, value in charts.COLOR.findall(charts.LIGHT) if name in colors
    }
    return re.sub("|".join(light), lambda match: light[match[0]], svg)


def adapted(page: Path, name: str) -> str:
    """Return a page whose links and pictures are those of the site, where it has this name."""
    up = "../" * name.count("/")

    def link(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        target = (page.parent / path).resolve()
        if target.is_dir():  # the site has no folders
            return text[1:-1]
        name = str(target.relative_to(ROOT))
        inside = name.removeprefix("docs/")
        moved = RENAMED.get(name, inside if inside != name else f"files/{name}")
        own_page = f"measures/{anchor[1:]}.md"  # a section of measures.md
        if moved == "measures.md" and own_page in MEASURES:
            return f"{text}({up}{own_page})"
        return f"{text}({up}{moved}{anchor})"

    def picture(match: re.Match[str]) -> str:
        light = page.parent / match[2]
        other = light.with_stem(light.stem.removesuffix("-light") + "-dark")
        if light.suffix != ".svg" and not other.exists():
            return match[0]
        alt, path = match[1], match[2].replace(light.name, other.name)
        return f"![{alt}]({match[2]}){{.only-light}}\n![{alt}]({path}){{.only-dark}}"

    return LINK.sub(link, PICTURE.sub(picture, page.read_text()))


def section_pages() -> Iterator[tuple[str, str]]:
    """Yield a page per section of docs/README.md that lists pages, and the end of the landing page."""
    _, *parts = SECTION.split(
        SITE_ONLY.sub(r"\1", adapted(DOCS / "README.md", "sections/README.md"))
    )
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        if entries := re.findall(r"^- \[[^\]]*\]\(\.\.(/.*)\.(?:md|rst)\)", body, re.M):
            yield f"sections/{title.lower()}.md", f"# {title}\n{body}\n{toctree(entries)}"
        else:
            yield "index.md", f"\n## {title}\n{body.replace('](../', '](')}"


def _write(file: Path, text: str) -> None:
    """Write a file unless it has this text: Sphinx reads again what is newer."""
    if not file.exists() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
