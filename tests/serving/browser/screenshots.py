"""Screenshots for the manual: `python -m tests.serving.browser.screenshots` writes docs/images/serve-*.png."""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

from playwright.sync_api import sync_playwright

import firstpage as fp
from firstpage.data.runs import Qrels
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


def main() -> int:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        paths = build(Path(name))
        for shot, scheme, feedback, keys in (
            ("search", "light", None, ("j", "Enter")),
            ("feedback-dark", "dark", Path(name) / "feedback", ()),
        ):
            live = LivePage(application(*paths, feedback=feedback), browser)
            page = live.open(
                "/?q=how+to+brew+green+tea",
                color_scheme=scheme,
                viewport={"width": 1000, "height": 640},
            )
            for key in keys:
                page.keyboard.press(key)
            path = IMAGES / f"serve-{shot}.png"
            page.wait_for_timeout(300)
            page.screenshot(path=path)
            reduce_palette(path)
            live.stop()
            assert path.stat().st_size < MOST, f"{path.name} is too large"
            print(f"{path.name}: {path.stat().st_size:,} bytes")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
