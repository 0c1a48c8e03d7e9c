"""Guidelines as leads write them, in Markdown, for our own pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from firstpage.web.clean import cleaned_for_page

LAST_HEADING = 6
MAX_BRACKETS = 2000  # the time to look for links grows with the square of these


@lru_cache(maxsize=64)
def rendered(text: str, under: int = 1) -> Markup:
    """Return a text in Markdown as harmless HTML; its headings come below those of level `under`.

    Raw HTML is shown as the text that it is; a picture that would be loaded from elsewhere, which
    the pages' policy forbids, becomes a link to it.  Beyond `MAX_BRACKETS` links stay text.
    """
    parser = _parser(links=text.count("[") <= MAX_BRACKETS)
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + under, LAST_HEADING)}"
    return Markup(cleaned_for_page(parser.renderer.render(tokens, parser.options, {})))


@cache
def _parser(links: bool) -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False})
    parser.add_render_rule("image", _image)
    return parser if links else parser.disable(["link", "image", "reference"])


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    token = tokens[index]
    source = str(token.attrs["src"])
    if source.startswith("data:"):
        return renderer.image(tokens, index, options, env)
    words = renderer.renderInlineAsText(token.children, options, env) or source
    return str(Markup('<a href="{}">{}</a>').format(source, words))
