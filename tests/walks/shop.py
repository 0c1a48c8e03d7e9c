"""A small shop: products, queries, what people think of them, and files in every form.

`taste.py` is written into the folder of a walk: it is the assessor of `firstpage label judge`.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

GOODS = {  # what is sold: the word people type, and other words of the description
    "shoe": ("footwear", "sole laces walking running"), "coat": ("jacket", "warm rain winter hood"),
    "lamp": ("light", "bulb desk bedroom shade"), "knife": ("blade", "kitchen steel sharp cutting"),
    "bag": ("backpack", "strap pocket travel school"), "chair": ("seat", "legs table dining garden"),
    "watch": ("timepiece", "wrist hands strap minutes"), "mug": ("cup", "coffee tea handle kitchen"),
}  # fmt: skip
COLORS = ("red", "blue", "green", "black", "white")
MATERIALS = ("leather", "wooden", "plastic", "woolen")
QUERIES = 15
TASTE = '''
import json, pathlib

KNOWN = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())


def grade(query, key):
    return KNOWN[query.key].get(key, 0)


def assess(query, left, right):
    """Prefer the higher grade, and the smaller key among equals; grade a single document."""
    if right is None:
        return grade(query, left.key)
    a, b = grade(query, left.key), grade(query, right.key)
    return "left" if (-a, left.key) < (-b, right.key) else "right"


def longest(query, documents):
    return [each.key for each in sorted(documents, key=lambda each: -len(each.body))]


def page(query, left, right):
    """Prefer the page whose documents are better, the first ones above all."""
    values = [
        sum(grade(query, item["id"]) / 2**rank for rank, item in enumerate(side.items))
        for side in (left, right)
    ]
    return (values[0] > values[1]) - (values[0] < values[1])
'''


def products() -> list[dict[str, object]]:
    """Return one document per kind, color and material."""
    random.seed(0)
    rows: list[dict[str, object]] = []
    for goods, (synonym, words) in GOODS.items():
        for color in COLORS:
            for material in MATERIALS:
                chosen = random.sample(words.split(), 3)
                named = goods if random.random() < 0.6 else synonym
                other = random.choice(COLORS)
                text = (
                    f"This {material} {named} has {' and '.join(chosen)}. "
                    f"Also available in {other}. {random.choice(list(GOODS))} sold separately."
                )
                rows.append(
                    {
                        "id": f"sku-{len(rows):03}",
                        "title": f"{color} {named}",
                        "text": text,
                        "properties": f"{goods} {color} {material}",
                        "price": 5.0 + len(rows),
                    }
                )
    return rows


def queries() -> list[dict[str, Any]]:
    """Return queries with a kind, a color and a material."""
    random.seed(1)
    combined = [(g, c, m) for g in GOODS for c in COLORS for m in MATERIALS]
    chosen = random.sample(combined, QUERIES)
    return [
        {
            "id": f"q{i:02}",
            "text": f"{material} {color} {goods}",
            "wanted": [goods, color, material],
        }
        for i, (goods, color, material) in enumerate(chosen)
    ]


def grade(wanted: list[str], properties: str) -> int:
    """Return 0 to 4: whether the kind is right, and how many of the wanted properties there are."""
    goods, color, material = wanted
    return 0 if goods not in properties else 2 + (color in properties) + (material in properties)


def write_texts(folder: Path) -> None:
    """Write products.jsonl, queries.jsonl, graded.qrels, and the assessor taste.py."""
    documents, asked = products(), queries()
    with (folder / "products.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in documents)
    with (folder / "queries.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": q["id"], "text": q["text"]}) + "\n" for q in asked)
    with (folder / "graded.qrels").open("w") as file:
        for query in asked:
            for row in documents:
                level = grade(query["wanted"], str(row["properties"]))
                file.write(f"{query['id']} 0 {row['id']} {level}\n")
    known = {
        query["id"]: {
            row["id"]: grade(query["wanted"], str(row["properties"])) for row in documents
        }
        for query in asked
    }
    (folder / "known.json").write_text(json.dumps(known))
    (folder / "taste.py").write_text(TASTE)


def write_search_log(folder: Path) -> None:
    """Write an Elasticsearch feature log whose queries are typed texts, and Quepid's judgments."""
    random.seed(2)
    documents = products()
    judged = []
    with (folder / "log.jsonl").open("w") as file:
        for query in queries():
            hits: list[dict[str, Any]] = []
            for row in random.sample(documents, 25):
                level = grade(query["wanted"], str(row["properties"]))
                values = {
                    "title bm25": level + random.gauss(0, 1.5),
                    "clicks": random.random(),
                    "text bm25": level + random.gauss(0, 1.5),
                }
                log = [{"name": name, "value": value} for name, value in values.items()]
                hits.append(
                    {
                        "_id": row["id"],
                        "_score": values["title bm25"],
                        "fields": {"_ltrlog": [{"log": log}]},
                    }
                )
                judged.append((query["text"], row["id"], level))
            hits.sort(key=lambda hit: -hit["_score"])
            response = {"query": query["text"], "response": {"hits": {"hits": hits}}}
            file.write(json.dumps(response) + "\n")
    with (folder / "quepid.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("query", "docid", "rating"))
        writer.writerows(judged)


def write_clicks(folder: Path, run: dict[str, dict[str, float]], pages: int = 60) -> None:
    """Write ubi.ndjson: pages of a ranking that is shuffled a little, clicked by grade and rank."""
    rng = random.Random(3)
    known = json.loads((folder / "known.json").read_text())
    rows: list[dict[str, Any]] = []
    for query in queries():
        ranked = sorted(run.get(query["id"], {}), key=lambda d: -run[query["id"]][d])[:12]
        for page in range(pages):
            name = f"{query['id']}-{page}"
            rows.append({"application": "shop", "query_id": name, "user_query": query["text"],
                         "client_id": name, "timestamp": 1733788800000})  # fmt: skip
            shown = sorted(range(len(ranked)), key=lambda place: place + rng.gauss(0, 3))[:8]
            for rank, place in enumerate(shown, 1):
                document = ranked[place]
                level = known[query["id"]].get(document, 0)
                actions = ["impression"]
                if rng.random() < (0.05 + 0.2 * level) / rank:
                    actions.append("click")
                rows += [
                    {"application": "shop", "action_name": action, "query_id": name,
                     "session_id": name, "timestamp": 1733788801000,
                     "event_attributes": {"object": {"object_id": document},
                                          "position": {"ordinal": rank}}}
                    for action in actions
                ]  # fmt: skip
    (folder / "ubi.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
