"""Screenshots for the manual.

`python -m tests.serving.browser.screenshots` writes docs/images/serve-*.png, and with the folder of
a finished demo (`.. screenshots firstpage-demo`) docs/images/demo-*.png, the pictures of the README.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from urllib.parse import quote_plus

from playwright.sync_api import Browser, sync_playwright

import firstpage as fp
from firstpage.data.runs import Qrels
from firstpage.demo.labeling import DEPTH
from firstpage.demo.loop import TYPED
from firstpage.demo.output import INDEX
from firstpage.serving.app import Serving
from tests.labeling.app.browser.conftest import ARGS, CHROMIUM
from tests.labeling.app.browser.screenshots import IMAGES, MOST, reduce_palette
from tests.serving.browser.conftest import LivePage
from tests.serving.texts import application

TEXTS = {
    "How to brew green tea": "Let the water cool to 70 or 80 degrees. Take a teaspoon of leaves "
    "per cup, pour, and steep for one to two minutes. Longer makes green tea bitter.",
    "Green tea: history and kinds": "Leaves have been steamed or pan-fired for a thousand years. "
    "How green tea came from China to Japan, and how sencha, gyokuro and matcha differ.",
    "Electric kettles compared": "We boiled forty liters of water in eight kettles and timed them. "
    "Three of them keep a temperature, which is handy for tea.",
    "Water temperature for tea": "Black tea wants boiling water, oolong 90 degrees, green tea 75. "
    "Too hot, and the leaves give bitterness before they give taste.",
    "Gyokuro and sencha, step by step": "Gyokuro: 50 degrees, two minutes, a small pot. Sencha: 75 "
    "degrees, one minute. How to brew the second and third infusion.",
    "Tea shop: autumn sale": "Green tea, black tea, herbal tea: tea for everyone, now at half the "
    "price. Tea pots, tea cups and tea towels. Order green tea today.",
    "Why is my green tea bitter?": "Bitter green tea was brewed too hot or too long. Use cooler "
    "water, and take the leaves out after ninety seconds.",
    "Caffeine in tea and coffee": "A cup of green tea has 30 milligrams of caffeine, coffee about "
    "95. How long it was brewed matters more than the kind of leaf.",
    "Cold brew in the fridge": "Put ten grams of leaves into a liter of cold water and wait for "
    "six hours. Cold brewing makes a sweet tea without bitterness.",
    "Green houses and how to heat them": "A small greenhouse needs ten kilowatts in winter. Green "
    "roofs, green walls and green paint do not help.",
    "Brewing beer at home": "How to brew ale with one kettle: mash at 66 degrees, boil with hops, "
    "cool, and wait two weeks.",
    "Matcha whisking": "Sift two grams of matcha into a bowl, add water of 80 degrees, and whisk "
    "until there is foam.",
}
GRADES = {
    "how to brew green tea": (3, 1, 1, 2, 3, 0, 2, 0, 1, 0, 0, 1),
    "bitter tea": (1, 0, 0, 2, 0, 0, 3, 0, 2, 0, 0, 0),
    "water temperature": (2, 0, 1, 3, 2, 0, 1, 0, 0, 0, 0, 1),
    "kinds of green tea": (0, 3, 0, 1, 2, 1, 0, 0, 0, 0, 0, 1),
}


def build(folder: Path) -> tuple[Path, Path]:
    ids = [f"tea-{i:02}" for i in range(len(TEXTS))]
    documents = [
        {"id": name, "title": title, "text": text}
        for name, (title, text) in zip(ids, TEXTS.items(), strict=True)
    ]
    index = fp.Index.from_documents(documents, folder / "tea.index", latent=4)
    queries = [(text, text) for text in GRADES]
    qrels = Qrels.from_dict(
        {q: dict(zip(ids, map(float, grades), strict=True)) for q, grades in GRADES.items()}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = fp.TextFeatures(index, "short").dataset(queries, index.candidates(queries), qrels)
    fp.ListNet(normalize="minmax").fit(data).save(folder / "model.json")
    return folder / "tea.index", folder / "model.json"


def shoot(
    browser: Browser, app: Serving, name: str, query: str, height: int, scheme: str, *keys: str
) -> None:
    """Search, press keys, and write the picture."""
    live = LivePage(app, browser)
    page = live.open(
        f"/?q={quote_plus(query)}",
        color_scheme=scheme,
        viewport={"width": 1000, "height": height},
    )
    for key in keys:
        page.keyboard.press(key)
    path = IMAGES / f"{name}.png"
    page.wait_for_timeout(300)
    page.screenshot(path=path)
    reduce_palette(path)
    live.stop()
    assert path.stat().st_size < MOST, f"{path.name} is too large"
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def shoot_demo(browser: Browser, demo: Path) -> None:
    """BM25 and the demo's model side by side."""
    for scheme in ("light", "dark"):
        app = application(demo / INDEX, demo / "model.json", candidates=DEPTH, against="bm25")
        shoot(browser, app, f"demo-{scheme}", TYPED, 880, scheme)


def shoot_tea(browser: Browser, folder: Path) -> None:
    """The reasons of a result, and the two questions to people who search."""
    paths, query = build(folder), "how to brew green tea"
    shoot(browser, application(*paths), "serve-search", query, 640, "light", "j", "Enter")
    asking = application(*paths, feedback=folder / "feedback")
    shoot(browser, asking, "serve-feedback-dark", query, 640, "dark")


def main(args: list[str]) -> int:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        if args:
            shoot_demo(browser, Path(args[0]))
        else:
            shoot_tea(browser, Path(name))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
