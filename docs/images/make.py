"""Draws the images of the documentation from real runs: `make.py WORK [NAME...]`, all by default.

`cargo xtask images` runs it, with NumPy and Pillow. WORK is a folder for the dataset and the run, which are kept: what it has
already is not made again. The photos are from Fashion-MNIST, whose MIT licence allows to copy them; those of Tiny ImageNet may not
be. `comparison` draws results/vectors/runs.csv. `report` needs Chromium: `$CALMIX_CHROMIUM`, `chromium` by default.
"""

import base64
import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from recording import record

OUT = Path(__file__).parent
ROOT = OUT.parent.parent
NAMES = ["t-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
LABELS, TRAIN, TEST = 10, 3000, 1000
RUN = "fashion"
COLOURS = {
    "light": {"text": "#1f2328", "muted": "#59636e", "card": "#f6f8fa", "line": "#d1d9e0", "good": "#1a7f37", "open": "#9a6700",
              "series": ["#0067a5", "#c04f00", "#8a5a9e"], "paper": "#ffffff"},
    "dark": {"text": "#f0f6fc", "muted": "#9198a1", "card": "#151b23", "line": "#3d444d", "good": "#3fb950", "open": "#d29922",
             "series": ["#5cb3ec", "#f0914d", "#c79bd8"], "paper": "#0d1117"},
}
FONT = "-apple-system,BlinkMacSystemFont,Segoe UI,Noto Sans,Helvetica,Arial,sans-serif"


class Drawing:
    """An SVG of one colour scheme, transparent outside its own shapes."""

    def __init__(self, width, height, scheme, title):
        self.width, self.height, self.title = width, height, title
        self.colours = COLOURS[scheme]
        self.parts = []

    def text(self, x, y, words, size=17, colour="text", anchor="start", weight="normal"):
        fill = self.colours.get(colour, colour)
        look = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}"'
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {look}>{words}</text>')

    def shape(self, text):
        self.parts.append(text)

    def write(self, name):
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}"><title>{self.title}</title>\n'
        (OUT / name).write_text(begin + "\n".join(self.parts) + "\n</svg>\n")


# ---- a run


def calmix(work, *arguments):
    """What a command of calmix prints; its messages go to the terminal."""
    command = [os.environ.get("CALMIX", "calmix"), *arguments]
    return subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True).stdout


def garments(work):
    """A folder of photos: ten labels per class, others without a label, and test images."""
    source = Path(os.environ["CALMIX_DATASETS"]) / "fashion-mnist"
    for split, count in [("train", TRAIN), ("t10k", TEST)]:
        pixels = gzip.decompress((source / f"{split}-images-idx3-ubyte.gz").read_bytes())
        classes = gzip.decompress((source / f"{split}-labels-idx1-ubyte.gz").read_bytes())
        pixels = np.frombuffer(pixels, "uint8", offset=16).reshape(-1, 28, 28)
        drawn = np.zeros(len(NAMES), int)
        for number in range(count):
            label = classes[8 + number]
            drawn[label] += 1
            is_labelled = split == "t10k" or drawn[label] <= LABELS
            within = "test" if split == "t10k" else "train"
            folder = work / "garments" / within / NAMES[label] if is_labelled else work / "garments/unlabelled"
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels[number]).save(folder / f"{number:05}.png")


def trained(work):
    if not (work / "garments").exists():
        garments(work)
    if not (work / RUN / "result.json").exists():
        calmix(work, "train", "--data", "garments", "--run-dir", RUN, "--threads", "1")


# ---- a recording of a terminal


def recording(work):
    """Two hundred of the photos, five labelled per class, in a folder without a test split, and twelve new ones."""
    if not (work / "garments").exists():
        garments(work)
    scene = work / "scene"
    shutil.rmtree(scene, ignore_errors=True)
    (scene / "new-photos").mkdir(parents=True)
    for name in NAMES:
        (scene / "photos" / name).mkdir(parents=True)
        for path in sorted((work / "garments/train" / name).iterdir())[:5]:
            shutil.copy(path, scene / "photos" / name)
    (scene / "photos/unlabelled").mkdir()
    others = sorted((work / "garments/unlabelled").iterdir())
    for path in others[:150]:
        shutil.copy(path, scene / "photos/unlabelled")
    for path in others[150:162]:
        shutil.copy(path, scene / "new-photos")
    program = os.environ.get("CALMIX", "calmix")
    lines = ["calmix train --data photos", "calmix predict runs/head-folder-1 new-photos"]
    title = "A recording of a terminal: calmix train on 200 photos, 50 of them labelled, then calmix predict on 12 others"
    commands = [(line, [program, *line.split()[1:]]) for line in lines]
    paths = {str(scene.absolute()): "~", os.environ.get("CALMIX_WEIGHTS", "weights"): "~/.cache/calmix/weights"}
    (OUT / "recording.svg").write_text(record(commands, scene, paths, title))


# ---- four photos


def typical(rows, want):
    """Of the rows that fit, in the order of their confidence, the one in the middle."""
    fitting = sorted((row for row in rows if want(row)), key=lambda row: (row["confidence"], row["path"]))
    return fitting[len(fitting) // 2]


def chosen(rows):
    """Four test images: two that are answered, one with a set of two classes, one with a wrong label."""
    used = set()
    found = []
    kinds = [
        lambda row: not row["abstain"] and row["is_right"],
        lambda row: not row["abstain"] and row["is_right"],
        lambda row: row["abstain"] and row["is_right"] and len(row["set"]) == 2,
        lambda row: row["abstain"] and not row["is_right"] and len(row["set"]) == 3 and row["truth"] in row["set"],
    ]
    for kind in kinds:
        row = typical(rows, lambda row: kind(row) and row["truth"] not in used and row["label"] not in used)
        used |= {row["truth"], row["label"]}
        found.append(row)
    return found


def predictions(work):
    trained(work)
    calmix(work, "predict", RUN, "garments/test", "--out", "predictions.csv")
    with (work / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {"truth": Path(row["path"]).parent.name, "confidence": float(row["confidence"])}
        row |= {"set": row["set"].split("|"), "abstain": row["abstain"] == "true"}
        row["is_right"] = row["truth"] == row["label"]
    answered = [row for row in rows if not row["abstain"]]
    measured = {
        "images": len(rows),
        "error": 1 - np.mean([row["is_right"] for row in rows]),
        "confidence": np.mean([row["confidence"] for row in rows]),
        "coverage": np.mean([row["truth"] in row["set"] for row in rows]),
        "classes": np.mean([len(row["set"]) for row in rows]),
        "answered": len(answered) / len(rows),
        "right": np.mean([row["is_right"] for row in answered]),
    }
    print(json.dumps({name: round(float(value), 4) for name, value in measured.items()}))
    four = chosen(rows)
    for row in four:
        print(row["path"], row["label"], f'{row["confidence"]:.3f}', row["set"], "abstains" if row["abstain"] else "answers")
    for scheme in COLOURS:
        draw_predictions(work, four, measured, scheme)


def draw_predictions(work, four, measured, scheme):
    title = "Four test images with their label, confidence and prediction set; two are answered, two abstained from"
    image = Drawing(600, 392, scheme, title)
    for place, row in enumerate(four):
        left, top = 1 + 302 * (place % 2), 1 + 166 * (place // 2)
        colour = "open" if row["abstain"] else "good"
        ink, card, line = (image.colours[name] for name in [colour, "card", "line"])
        image.shape(f'<rect x="{left}" y="{top}" width="296" height="158" rx="8" fill="{card}" stroke="{line}"/>')
        image.shape(f'<rect x="{left}" y="{top + 8}" width="5" height="142" rx="2" fill="{ink}"/>')
        encoded = base64.b64encode((work / row["path"]).read_bytes()).decode()
        image.shape(f'<image x="{left + 18}" y="{top + 14}" width="84" height="84" href="data:image/png;base64,{encoded}"/>')
        image.text(left + 116, top + 46, row["label"], 23, weight="600")
        image.text(left + 116, top + 76, f'{100 * row["confidence"]:.1f}% confident', 18)
        image.text(left + 18, top + 122, f'90% set: {", ".join(row["set"])}', 16.5, "muted")
        words = "abstains" if row["abstain"] else "answers"
        if not row["is_right"]:
            words += f" (it is a {row['truth']})"
        image.text(left + 18, top + 146, words, 18, colour, weight="600")
    numbers = {name: f"{100 * value:.0f}%" for name, value in measured.items()}
    lines = [f"On {measured['images']:,} test images, {numbers['coverage']} of the 90% sets contain the true class. It"]
    lines.append(f"answers {numbers['answered']} of the images, and {numbers['right']} of these answers are right.")
    image.text(1, 358, lines[0], 16.5, "muted")
    image.text(1, 382, lines[1], 16.5, "muted")
    image.write(f"predictions-{scheme}.svg")


# ---- beside scikit-learn

SERIES = {"calmix": "calmix", "logistic regression": "LogisticRegression", "self-training": "SelfTrainingClassifier"}
LABEL_COUNTS = [4, 10, 25]
DRAWS = 10
# The two-sided 95% quantile of Student's t for ten draws.
QUANTILE = 2.262


def interval(rows, classifier, labels, metric):
    """Mean and the half of a 95% interval over draws, in per cent."""
    of_draws = [row for row in rows if row["classifier"] == classifier and int(row["labels"]) == labels]
    values = np.array([100 * float(row[metric]) for row in of_draws])
    assert len(values) == DRAWS, f"{classifier}, {labels} labels: {len(values)} draws"
    return values.mean(), QUANTILE * values.std(ddof=1) / np.sqrt(DRAWS)


def comparison(_):
    with (ROOT / "results/vectors/runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    for scheme in COLOURS:
        title = "Error and calibration error of calmix and scikit-learn with 4, 10 and 25 labels per class"
        image = Drawing(600, 404, scheme, title)
        for panel, (metric, name) in enumerate([("error", "error, %"), ("ece", "calibration error (ECE), %")]):
            draw_panel(image, rows, metric, name, 38 + 306 * panel)
        for place, name in enumerate(SERIES):
            colour = image.colours["series"][place]
            left = [2, 100, 330][place]
            draw_mark(image, place, left + 8, 20, colour)
            image.text(left + 22, 26, SERIES[name], 18, colour, weight="600")
        image.text(1, 397, "CIFAR-10, ResNet-50 vectors; means of ten draws, 95% intervals", 16.5, "muted")
        image.write(f"comparison-{scheme}.svg")


def draw_mark(image, place, x, y, colour):
    shapes = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{colour}"/>',
        f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{colour}"/>',
        f'<path d="M{x:.1f} {y - 6.5:.1f}l6.5 11.5h-13z" fill="{colour}"/>',
    ]
    image.shape(shapes[place])


def draw_panel(image, rows, metric, name, left):
    points = {}
    for place, classifier in enumerate(SERIES):
        for column, labels in enumerate(LABEL_COUNTS):
            points[place, column] = interval(rows, classifier, labels, metric)
    top, bottom, width = 76, 322, 254
    high = 10 * np.ceil(max(mean + half for mean, half in points.values()) / 10)
    y = lambda value: bottom - value / high * (bottom - top)
    image.text(left - 37, 60, name, 18, weight="600")
    for tick in np.arange(0, high + 1, 10):
        line = image.colours["line"]
        image.shape(f'<path d="M{left} {y(tick):.1f}h{width}" stroke="{line}"/>')
        image.text(left - 7, y(tick) + 5, f"{tick:.0f}", 16, "muted", "end")
    for column, labels in enumerate(LABEL_COUNTS):
        middle = left + width * (column + 0.5) / 3
        image.text(middle, bottom + 22, f"{labels} labels", 16, "muted", "middle")
    image.text(left + width / 2, bottom + 43, "per class", 16, "muted", "middle")
    for (place, column), (mean, half) in points.items():
        colour = image.colours["series"][place]
        x = left + width * (column + 0.5) / 3 + 20 * (place - 1)
        image.shape(f'<path d="M{x:.1f} {y(mean - half):.1f}V{y(mean + half):.1f}" stroke="{colour}" stroke-width="2.5"/>')
        draw_mark(image, place, x, y(mean), colour)


# ---- the HTML report


def report(work):
    trained(work)
    calmix(work, "report", RUN, "--output", "report.html")
    for scheme, number in [("light", 1), ("dark", 0)]:
        shot = work / f"report-{scheme}.png"
        browser = [os.environ.get("CALMIX_CHROMIUM", "chromium"), "--headless", "--no-sandbox", "--disable-gpu"]
        options = ["--hide-scrollbars", f"--blink-settings=preferredColorScheme={number}", "--window-size=880,1630"]
        page = (work / "report.html").absolute().as_uri()
        command = [*browser, *options, f"--screenshot={shot.absolute()}", page]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        Image.open(shot).convert("RGB").save(OUT / f"report-{scheme}.webp", quality=80, method=6)


DRAWN = {"predictions": predictions, "comparison": comparison, "report": report, "recording": recording}


def main():
    work = Path(sys.argv[1])
    work.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or DRAWN:
        DRAWN[name](work)


if __name__ == "__main__":
    main()
