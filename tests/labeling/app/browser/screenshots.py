"""Screenshots for the manual: `python -m tests.labeling.app.browser.screenshots` writes docs/images/label-*.png.

It needs Pillow to make them small: `pip install pillow`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.conftest import ARGS, CHROMIUM
from tests.labeling.app.browser.live import Live, new_live

IMAGES = Path(__file__).parents[4] / "docs" / "images"
MOST = 120_000  # bytes of a picture

TITLES = [
    "How to brew green tea", "Green tea: history and kinds", "Electric kettles compared",
    "Water temperature for tea", "Gyokuro and sencha, step by step", "Tea shop: autumn sale",
    "Why is my green tea bitter?", "Caffeine in tea and coffee",
]  # fmt: skip
BODIES = [
    "Green tea wants water that has cooled a little: 70 to 80 °C. Warm the pot, take a level "
    "teaspoon of leaves for each cup, and pour. Steep for one to two minutes, not longer, then "
    "pour it off to the last drop.\n\nThe second infusion may be hotter and shorter. Good leaves "
    "give three.\n\nIf the tea tastes bitter, the water was too hot or the time too long.",
    "Leaves of Camellia sinensis have been steamed or pan-fired for more than a thousand years. "
    "This page tells how green tea came from China to Japan, how sencha, gyokuro, matcha and "
    "longjing differ, and what the words on a package mean.\n\nBrewing is told elsewhere.",
    "We boiled forty litres of water in eight kettles and timed them. Three of them keep a "
    "temperature that one can choose, which is handy for tea.",
]


def query() -> QueryRecord:
    documents = tuple(
        DocumentRecord(f"d{i}", title, body=BODIES[i % 3]) for i, title in enumerate(TITLES)
    )
    return QueryRecord(
        "q1",
        "how to brew green tea",
        "How hot should the water be, and how long does green tea steep? Shops are not wanted.",
        documents,
    )


def save_both_themes(page: Page, name: str) -> None:
    save_screenshot(page, name)
    page.emulate_media(color_scheme="dark")
    save_screenshot(page, f"{name}-dark")


def save_screenshot(page: Page, name: str) -> None:
    path = IMAGES / f"label-{name}.png"
    page.screenshot(path=path)
    reduce_palette(path)
    size = path.stat().st_size
    print(f"{path.name}: {size:,} bytes")
    assert size < MOST, f"{path.name} is too large"


def reduce_palette(path: Path) -> None:
    """Reduce a screenshot to a palette of colors."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT).save(
            path, optimize=True
        )


def judged_project(live: Live) -> None:
    """Create a project that three people have judged, with the same preferences and some noise."""
    rng = random.Random(7)
    live.project(
        "tea",
        assessors=("ada", "bo", "cy"),
        queries=4,
        documents=8,
        options={"ties": True},
        setting={"k": 3, "strategy": "heap", "repeat_rate": 0.2},
    )

    def better(left: str, right: str) -> int:
        x, y = (int(key[1:]) + rng.gauss(0, 2) for key in (left, right))
        return 1 if x < y else -1

    for number in range(4):
        for name in ("ada", "bo", "cy")[: 3 if number < 3 else 2]:
            client = live.client(name)
            state = client.state(live.task("tea", name, number))
            while state["question"]:
                pair = state["question"]
                span = {"kind": "active", "ms": int(rng.lognormvariate(8.6, 0.5))}
                outcome = better(pair["left"]["key"], pair["right"]["key"])
                state = client.answer(state, outcome, spans=[span]).json()


def judging(live: Live) -> None:
    live.add_project("brewing", [query()], setting={"k": 3}, options={"ties": True})
    path = f"/tasks/{live.task('brewing', 'ada')}"
    page = live.open(path)
    answer(page, "ArrowLeft")
    answer(page, "ArrowRight")
    ready(page)
    page.wait_for_timeout(300)
    save_both_themes(page, "pairs")


def lead(live: Live) -> None:
    judged_project(live)
    for name in ("dashboard", "truth", "setup/assignment"):
        page = live.open(f"/p/tea/{name}", login="lena")
        save_both_themes(page, name.rpartition("/")[2])
    page = live.open("/p/tea/adjudicate", login="lena", viewport={"width": 1280, "height": 1150})
    page.wait_for_timeout(500)
    save_both_themes(page, "adjudicate")


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        store = Store(Path(folder) / "project").prepare()
        live = new_live(store, browser)
        judging(live)
        lead(live)
        live.stop()
        store.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
