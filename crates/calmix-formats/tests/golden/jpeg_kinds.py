"""JPEGs of many kinds and sizes, with Pillow's pixels: what calmix decodes is compared with them.

    python jpeg_kinds.py FOLDER   writes FOLDER/kinds.json, and for each file NAME.jpg and NAME.rgb
    python jpeg_kinds.py          writes jpeg/*.jpg beside itself: valid files that calmix's own decoder refuses

Kinds that Pillow cannot write come from `cjpeg` and `jpegtran` (Debian: libjpeg-turbo-progs). Without them the first form
leaves these kinds out and says so in kinds.json; the second form needs them.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
# One pixel, one block, whole and broken rows of blocks, strips, and enough pixels for every vector path.
SIZES = [(1, 1), (8, 8), (16, 16), (17, 15), (33, 64), (63, 47), (64, 64), (15, 200), (200, 15), (321, 239)]
SUBSAMPLINGS = {"444": 0, "422": 1, "420": 2}
# One scan per component, luma apart from chroma, and the last component alone.
SCANS = {"separate": "0; 1; 2;", "luma-apart": "0; 1 2;", "last-apart": "0 1; 2;"}
FACTORS = {"440": "1x2", "411": "4x1", "410": "4x2", "uneven": "2x2,2x1,1x2", "finer-chroma": "1x1,2x2,2x2"}


def photo(width, height, seed):
    """Smooth shades, an edge and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = []
    for _ in range(3):
        a, b, c, d = rng.uniform(0.02, 0.3, 4)
        planes.append(110 + 60 * np.sin(a * x + b * y) + 40 * np.cos(c * x - d * y))
    image = np.stack(planes, -1) + rng.normal(0, 6, (height, width, 3))
    image[(x - width / 3) ** 2 + (y - height / 2) ** 2 < (height / 4) ** 2] += rng.uniform(-90, 90, 3)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


def saved(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=85, **options)
    return out.getvalue()


def piped(program, arguments, data):
    return subprocess.run([program, *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout


def transcoded(data, *arguments, scans=None):
    """The same coefficients in another order, without loss."""
    if scans is None:
        return piped("jpegtran", arguments, data)
    with tempfile.NamedTemporaryFile("w", suffix=".scans") as script:
        script.write(scans)
        script.flush()
        return piped("jpegtran", [*arguments, "-scans", script.name], data)


def sampled(image, factors):
    out = io.BytesIO()
    image.save(out, "PPM")
    return piped("cjpeg", ["-quality", "85", "-sample", factors], out.getvalue())


def kinds_of_pillow(image):
    yield "grey", saved(image.convert("L"))
    yield "grey-progressive", saved(image.convert("L"), progressive=True)
    yield "rgb", saved(image, keep_rgb=True)
    yield "cmyk", saved(image.convert("CMYK"))
    for name, subsampling in SUBSAMPLINGS.items():
        yield f"cmyk-{name}", saved(image.convert("CMYK"), subsampling=subsampling)
        yield name, saved(image, subsampling=subsampling)
        yield f"{name}-progressive", saved(image, subsampling=subsampling, progressive=True)
        for blocks in (1, 3, 7):
            yield f"{name}-restart-{blocks}", saved(image, subsampling=subsampling, restart_marker_blocks=blocks)


def kinds_of_jpegtran(image):
    grey = saved(image.convert("L"))
    yield "grey-restart", transcoded(grey, "-restart", "3B")
    cmyk = saved(image.convert("CMYK"))
    yield "cmyk-restart", transcoded(cmyk, "-restart", "3B")
    yield "cmyk-separate", transcoded(cmyk, scans="0; 1; 2; 3;")
    yield "rgb-separate", transcoded(saved(image, keep_rgb=True), scans=SCANS["separate"])
    for name, subsampling in SUBSAMPLINGS.items():
        plain = saved(image, subsampling=subsampling)
        yield f"{name}-progressive-restart", transcoded(plain, "-progressive", "-restart", "3B")
        for order, scans in SCANS.items():
            yield f"{name}-{order}", transcoded(plain, scans=scans)
            yield f"{name}-{order}-restart", transcoded(plain, "-restart", "3B", scans=scans)
    for name, factors in FACTORS.items():
        plain = sampled(image, factors)
        yield name, plain
        yield f"{name}-progressive", transcoded(plain, "-progressive")
        yield f"{name}-restart", transcoded(plain, "-restart", "2B")
        yield f"{name}-separate", transcoded(plain, scans=SCANS["separate"])


def write_all(folder):
    has_tools = all(shutil.which(program) for program in ("cjpeg", "jpegtran"))
    makers = [kinds_of_pillow, kinds_of_jpegtran] if has_tools else [kinds_of_pillow]
    files = []
    for seed, (width, height) in enumerate(SIZES):
        image = photo(width, height, seed)
        for maker in makers:
            for kind, data in maker(image):
                name = f"{kind}-{width}x{height}"
                with open(os.path.join(folder, f"{name}.jpg"), "wb") as file:
                    file.write(data)
                pixels = Image.open(io.BytesIO(data)).convert("RGB")
                with open(os.path.join(folder, f"{name}.rgb"), "wb") as file:
                    file.write(np.asarray(pixels).tobytes())
                files.append({"name": name, "kind": kind, "width": width, "height": height})
    with open(os.path.join(folder, "kinds.json"), "w") as file:
        json.dump({"has_jpegtran": has_tools, "files": files}, file)


def write_refused(folder):
    image = photo(33, 64, 4)
    refused = {
        "420-separate": transcoded(saved(image, subsampling=2), scans=SCANS["separate"]),
        "422-last-apart": transcoded(saved(image, subsampling=1), scans=SCANS["last-apart"]),
        "444-separate-restart": transcoded(
            saved(image, subsampling=0), "-restart", "3B", scans=SCANS["separate"]
        ),
        "finer-chroma": sampled(image, FACTORS["finer-chroma"]),
    }
    os.makedirs(folder, exist_ok=True)
    for name, data in refused.items():
        with open(os.path.join(folder, f"{name}.jpg"), "wb") as file:
            file.write(data)


if len(sys.argv) > 1:
    write_all(sys.argv[1])
else:
    write_refused(os.path.join(HERE, "jpeg"))
