"""Golden files for image decoding and tar shards, with Pillow, tarfile and webdataset as the oracles.

    python photos.py          writes photos.zlib (bytes) and photos.json (what they are) beside itself

Everything is made from fixed seeds; the same versions give the same bytes.
"""

import io
import json
import os
import random
import struct
import sys
import tarfile
import tempfile
import zlib

import numpy as np
import PIL
import webdataset
from PIL import Image, ImageOps, features

HERE = os.path.dirname(os.path.abspath(__file__))
blob = bytearray()


def keep(data):
    """Appends bytes to the blob: [offset, length]."""
    at = len(blob)
    blob.extend(data)
    return [at, len(data)]


# Pictures ---------------------------------------------------------------------------------------------------


def photo(width, height, seed):
    """Something like a photograph: smooth shades, an edge, a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = []
    for _ in range(3):
        a, b, c, d = rng.uniform(0.02, 0.3, 4)
        planes.append(110 + 60 * np.sin(a * x + b * y) + 40 * np.cos(c * x - d * y))
    image = np.stack(planes, -1) + rng.normal(0, 6, (height, width, 3))
    image[(x - width / 3) ** 2 + (y - height / 2) ** 2 < (height / 4) ** 2] += rng.uniform(-90, 90, 3)
    return np.clip(image, 0, 255).astype(np.uint8)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(samples, depth, colour, interlaced=False, palette=None, transparency=None, exif=None, exif_last=False):
    """A PNG of `samples` (height, width, channels): Pillow reads every variant but does not write them all."""
    height, width, channels = samples.shape

    def packed(part):
        out = bytearray()
        for row in part:
            out.append(0)
            values = row.reshape(-1)
            if depth == 16:
                out += values.astype(">u2").tobytes()
            elif depth == 8:
                out += values.astype(np.uint8).tobytes()
            else:
                bits = "".join(format(int(v), f"0{depth}b") for v in values)
                bits += "0" * (-len(bits) % 8)
                out += bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
        return bytes(out)

    if interlaced:
        starts = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        parts = [samples[y::sy, x::sx] for y, x, sy, sx in starts]
        data = b"".join(packed(part) for part in parts if part.size)
    else:
        data = packed(samples)
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced)))
    if palette is not None:
        out += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparency is not None:
        out += chunk(b"tRNS", transparency)
    if exif is not None and not exif_last:
        out += chunk(b"eXIf", exif)
    out += chunk(b"IDAT", zlib.compress(data, 9))
    if exif is not None and exif_last:
        out += chunk(b"eXIf", exif)
    return out + chunk(b"IEND", b"")


def exif(orientation, big=False):
    order = ">" if big else "<"
    head = b"MM\0*" if big else b"II*\0"
    return head + struct.pack(order + "IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def oracle(data):
    image = Image.open(io.BytesIO(data))
    return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


pictures = []


def add(name, data, kind, pixels=None):
    pixels = oracle(data) if pixels is None else pixels
    height, width, _ = pixels.shape
    pictures.append(
        {"name": name, "kind": kind, "file": keep(data), "width": width, "height": height, "pixels": keep(pixels.tobytes())}
    )


def saved(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def add_png():
    rng = np.random.default_rng(1)
    w, h = 23, 17
    rgb = photo(w, h, 2)
    for depth in (1, 2, 4, 8):
        grey = rng.integers(0, 2**depth, (h, w, 1))
        add(f"png-grey-{depth}", png(grey, depth, 0), "exact")
        palette = rng.integers(0, 256, (2**depth if depth < 8 else 200, 3))
        index = rng.integers(0, len(palette), (h, w, 1))
        add(f"png-palette-{depth}", png(index, depth, 3, palette=palette), "exact")
    add("png-palette-alpha", png(index, 8, 3, palette=palette, transparency=bytes(range(0, 200, 2))), "exact")
    add("png-grey-interlaced-1", png(rng.integers(0, 2, (h, w, 1)), 1, 0, interlaced=True), "exact")
    add("png-palette-interlaced", png(index, 8, 3, palette=palette, interlaced=True), "exact")
    add("png-rgb", png(rgb, 8, 2), "exact")
    add("png-rgb-key", png(rgb, 8, 2, transparency=struct.pack(">HHH", *map(int, rgb[0, 0]))), "exact")
    add("png-rgb-interlaced", png(rgb, 8, 2, interlaced=True), "exact")
    add("png-rgb-one", png(rgb[:1, :1], 8, 2, interlaced=True), "exact")
    add("png-rgba", png(rng.integers(0, 256, (h, w, 4)), 8, 6), "exact")
    add("png-grey-alpha", png(rng.integers(0, 256, (h, w, 2)), 8, 4), "exact")
    add("png-rgb-16", png(rng.integers(0, 65536, (h, w, 3)), 16, 2), "exact")
    add("png-rgba-16", png(rng.integers(0, 65536, (h, w, 4)), 16, 6), "exact")
    add("png-grey-alpha-16", png(rng.integers(0, 65536, (h, w, 2)), 16, 4), "exact")
    # The one exception: Pillow turns every value above 255 white.
    grey = rng.integers(0, 65536, (h, w, 1))
    add("png-grey-16", png(grey, 16, 0), "exact", np.repeat(grey >> 8, 3, axis=2).astype(np.uint8))
    for number in range(1, 9):
        add(f"png-orientation-{number}", png(rgb, 8, 2, exif=exif(number), exif_last=number % 2 == 0), "exact")
    add("png-saved", saved(Image.fromarray(rgb), "PNG", optimize=True), "exact")


def add_webp():
    rng = np.random.default_rng(3)
    rgb = photo(23, 17, 4)
    image = Image.fromarray(rgb)
    add("webp-lossless", saved(image, "WEBP", lossless=True), "exact")
    rgba = np.concatenate([rgb, rng.integers(0, 256, (17, 23, 1), np.uint8)], axis=2)
    add("webp-lossless-alpha", saved(Image.fromarray(rgba), "WEBP", lossless=True, exact=True), "exact")
    for number in (3, 6):
        data = saved(image, "WEBP", lossless=True, exif=exif(number))
        add(f"webp-orientation-{number}", data, "exact")
    for quality in (30, 75, 95):
        data = saved(Image.fromarray(photo(40, 31, quality)), "WEBP", quality=quality)
        add(f"webp-lossy-{quality}", data, "webp-lossy")
    add("webp-lossy-alpha", saved(Image.fromarray(rgba), "WEBP", quality=80, exact=True), "webp-lossy")


def add_jpeg():
    names = {0: "444", 1: "422", 2: "420"}
    sizes = [(40, 24), (41, 23), (9, 17), (64, 48)]
    for number, (w, h) in enumerate(sizes):
        image = Image.fromarray(photo(w, h, 10 + number))
        for subsampling, name in names.items():
            quality = (50, 75, 95)[(number + subsampling) % 3]
            progressive = (number + subsampling) % 2 == 1
            data = saved(image, "JPEG", quality=quality, subsampling=subsampling, progressive=progressive)
            mode = "progressive" if progressive else "baseline"
            add(f"jpeg-{name}-{w}x{h}-q{quality}-{mode}", data, f"jpeg-{name}")
    image = Image.fromarray(photo(40, 24, 20))
    add("jpeg-grey", saved(image.convert("L"), "JPEG", quality=80), "jpeg-grey")
    add("jpeg-rgb", saved(image, "JPEG", quality=80, keep_rgb=True), "jpeg-grey")
    add("jpeg-restart", saved(image, "JPEG", quality=80, restart_marker_blocks=1), "jpeg-420")
    add("jpeg-trailing", saved(image, "JPEG", quality=80) + b"more bytes \xff\xd8\xff", "jpeg-420")
    cmyk = saved(image.convert("CMYK"), "JPEG", quality=90)
    add("jpeg-cmyk", cmyk, "jpeg-cmyk")
    # The same inks with Adobe's transform set to 2 are read as YCCK.
    adobe = cmyk.index(b"Adobe")
    ycck = bytearray(cmyk)
    ycck[adobe + 11] = 2
    add("jpeg-ycck", bytes(ycck), "jpeg-cmyk")
    small = Image.fromarray(photo(24, 16, 21))
    for number in range(1, 9):
        block = b"Exif\0\0" + exif(number, big=number % 2 == 0)
        add(f"jpeg-orientation-{number}", saved(small, "JPEG", quality=90, subsampling=0, exif=block), "jpeg-444")


# Archives ---------------------------------------------------------------------------------------------------


def listing(data):
    """CRC-32 of tarfile's regular members, and their number; none where tarfile refuses the archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = [m for m in archive.getmembers() if m.isreg()]
    except (tarfile.TarError, ValueError, OverflowError, MemoryError, EOFError, UnicodeError, IndexError):
        return None
    text = "".join(f"{m.name}\0{m.offset_data}\0{m.size}\n" for m in members)
    return [len(members), zlib.crc32(text.encode("utf-8", "surrogateescape"))]


def member(name, size=0, **more):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.uname, info.gname = size, 1_700_000_000, "calmix", "calmix"
    for key, value in more.items():
        setattr(info, key, value)
    return info


def archive(format):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        def put(name, data, **more):
            tar.addfile(member(name, len(data), **more), io.BytesIO(data))
        put("000.cls", b"3")
        put("000.jpg", b"j" * 700)
        tar.addfile(member("folder", type=tarfile.DIRTYPE))
        put("folder/001.png", b"p" * 512)
        put("a/" * 60 + "002.jpg", b"")
        if format != tarfile.USTAR_FORMAT:
            put("b" * 180 + ".jpg", b"q" * 30)
        if format == tarfile.PAX_FORMAT:
            put("photo-é.jpg", b"e" * 40)
            put("fraction.jpg", b"f", mtime=1.5)
    return trim(out.getvalue())


def trim(data):
    """To two zero blocks at the end: tarfile pads to 10 KiB."""
    end = len(data.rstrip(b"\0"))
    return data[: -(-end // 512) * 512 + 1024]


def header(name, size, kind=b"0", **fields):
    block = bytearray(member(name, size).tobuf(tarfile.USTAR_FORMAT)[:512])
    block[156:157] = kind
    for at, data in fields.get("edits", []):
        block[at : at + len(data)] = data
    return resum(block)


def resum(block):
    block = bytearray(block)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pad(data):
    return data + b"\0" * (-len(data) % 512)


def record(key, value):
    body = f" {key}={value}\n"
    length = len(body.encode()) + 1
    while len(str(length)) + len(body.encode()) != length:
        length = len(str(length)) + len(body.encode())
    return f"{length}{body}".encode()


def crafted():
    """Archives that programs read differently, or that hold what a dataset never does."""
    end = b"\0" * 1024
    plain = header("a.jpg", 5) + pad(b"hello")
    inner = header("hidden.jpg", 3) + pad(b"xyz")
    pax = lambda *records: header("pax", len(b"".join(records)), b"x") + pad(b"".join(records))
    cases = {
        "pax-size-larger": pax(record("size", 1024)) + header("a.jpg", 0) + inner + plain + end,
        "pax-size-smaller": pax(record("size", 0)) + header("a.jpg", 1024) + inner + plain + end,
        "pax-size-same": pax(record("size", 5)) + plain + end,
        "pax-twice": pax(record("path", "b.jpg")) + pax(record("path", "c.jpg")) + plain + end,
        "pax-path": pax(record("path", "long/name.jpg")) + plain + end,
        "pax-path-twice": pax(record("path", "b.jpg"), record("path", "c.jpg")) + plain + end,
        "pax-malformed": pax(b"99 path=b.jpg\n") + plain + end,
        "pax-no-equals": pax(b"9 abcdef\n") + plain + end,
        "pax-sparse": pax(record("GNU.sparse.major", 1), record("GNU.sparse.minor", 0)) + plain + end,
        "pax-without-member": plain + pax(record("path", "b.jpg")) + end,
        "pax-for-folder": pax(record("size", 512)) + header("d", 0, b"5") + plain + end,
        "global": header("g", len(record("comment", "x")), b"g") + pad(record("comment", "x")) + plain + end,
        "global-path": header("g", len(record("path", "x")), b"g") + pad(record("path", "x")) + plain + end,
        "long-name": header("L", 120, b"L") + pad(b"n" * 119 + b"\0") + plain + end,
        "long-name-twice": (header("L", 9, b"L") + pad(b"longname\0")) * 2 + plain + end,
        "long-name-and-pax": header("L", 9, b"L") + pad(b"longname\0") + pax(record("path", "p")) + plain + end,
        "long-link": header("K", 9, b"K") + pad(b"longlink\0") + plain + end,
        "sparse": header("s.jpg", 512, b"S") + b"s" * 512 + plain + end,
        "hard-link": plain + header("b.jpg", 0, b"1", edits=[(157, b"a.jpg")]) + end,
        "hard-link-size": plain + header("b.jpg", 512, b"1", edits=[(157, b"a.jpg")]) + inner + end,
        "symbolic-link": plain + header("b.jpg", 0, b"2", edits=[(157, b"/etc/passwd")]) + end,
        "pipe": plain + header("b.jpg", 0, b"6") + end,
        "device": plain + header("b.jpg", 0, b"3") + end,
        "contiguous": header("a.jpg", 5, b"7") + pad(b"hello") + end,
        "folder-size": header("d", 512, b"5") + inner + end,
        "unknown-kind": header("a.jpg", 5, b"Z") + pad(b"hello") + plain + end,
        "old-folder": header("d/", 0, b"\0") + plain + end,
        "old-file": header("a.jpg", 5, b"\0", edits=[(257, b"\0" * 8)]) + pad(b"hello") + end,
        "base-256-size": header("a.jpg", 5, edits=[(124, b"\x80" + b"\0" * 10 + b"\5")]) + pad(b"hello") + end,
        "negative-size": header("a.jpg", 5, edits=[(124, b"\xff" * 12)]) + pad(b"hello") + end,
        "negative-time": header("a.jpg", 5, edits=[(136, b"\xff" * 12)]) + pad(b"hello") + end,
        "size-in-spaces": header("a.jpg", 5, edits=[(124, b"         5 \0")]) + pad(b"hello") + end,
        "size-with-underscore": header("a.jpg", 5, edits=[(124, b"0000000_0_5\0")]) + pad(b"hello") + end,
        "mode-no-number": header("a.jpg", 5, edits=[(100, b"rw-r--r\0")]) + pad(b"hello") + plain + end,
        "gnu-times-as-prefix": header("a.jpg", 5, edits=[(257, b"ustar  \0"), (345, b"14524")]) + pad(b"hello") + end,
        "prefix": header("a.jpg", 5, edits=[(345, b"some/folder")]) + pad(b"hello") + end,
        "name-not-utf-8": header("a.jpg", 5, edits=[(0, b"\xe9.jpg")]) + pad(b"hello") + end,
        "name-parent": header("../a.jpg", 5) + pad(b"hello") + end,
        "name-absolute": header("/a.jpg", 5) + pad(b"hello") + end,
        "name-slash-last": header("a.jpg/", 5) + pad(b"hello") + end,
        "name-dot-slash": header("./a.jpg", 5) + pad(b"hello") + end,
        "bad-checksum": plain + bytes(1) + inner[1:] + end,
        "no-end-mark": plain + inner,
        "one-zero-block": plain + b"\0" * 512,
        "after-the-end": plain + end + inner + end,
        "nothing": b"",
        "end-mark-only": end,
        "huge-size": header("a.jpg", 5, edits=[(124, b"77777777777\0")]) + pad(b"hello") + end,
        "cut-in-data": plain + inner[:-100],
        "cut-in-header": plain + inner[:200],
    }
    return [{"name": name, "file": keep(data), "listing": listing(data)} for name, data in cases.items()]


def shard():
    """Written by the webdataset package, read back by it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train-%06d.tar")
        with webdataset.ShardWriter(path, maxcount=100, verbose=0) as writer:
            for number in range(6):
                image = Image.fromarray(photo(8, 8, 40 + number))
                sample = {"__key__": f"part/{number:04d}", "png": saved(image, "PNG"), "txt": "a caption"}
                sample.update({"cls": number % 3} if number % 2 else {"json": {"label": number % 3, "x": [1]}})
                writer.write(sample)
        path = path % 0
        read = [
            {
                "key": sample["__key__"],
                "label": int(sample["cls"]) if "cls" in sample else json.loads(sample["json"])["label"],
                "crc": zlib.crc32(sample["png"]),
            }
            for sample in webdataset.WebDataset(path, shardshuffle=False)
        ]
        data = open(path, "rb").read()
    return {"file": keep(trim(data)), "samples": read}


def mutants(bases, count):
    """Edits of sound archives: mostly in headers, with the checksum made right again for half of them."""
    rng = random.Random(5)
    out = []
    interesting = list(b"0123456789xgLKS/\0 \x80\xff-+_.=\n")
    for number in range(count):
        base = rng.randrange(len(bases))
        data = bytearray(bases[base])
        block = 512 * rng.randrange(len(data) // 512)
        edits = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            field = rng.choice([(0, 100), (100, 124), (124, 136), (136, 156), (156, 158), (257, 265), (329, 512)])
            at = block + rng.randrange(*field)
            edits.append([at, rng.choice(interesting) if rng.random() < 0.8 else rng.randrange(256)])
        for at, value in edits:
            data[at] = value
        fixed = rng.random() < 0.6
        if fixed:
            data[block : block + 512] = resum(data[block : block + 512])
        cut = rng.randrange(len(data)) if rng.random() < 0.1 else len(data)
        out.append([base, block if fixed else -1, cut, edits, listing(bytes(data[:cut]))])
    return out


def main():
    add_png()
    add_webp()
    add_jpeg()
    formats = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    bases = {name: archive(format) for name, format in formats.items()}
    golden = {
        "versions": {
            "python": sys.version.split()[0],
            "pillow": PIL.__version__,
            "libjpeg-turbo": features.version("libjpeg_turbo"),
            "libwebp": features.version("webp"),
            "numpy": np.__version__,
            "webdataset": webdataset.__version__,
        },
        "images": pictures,
        "archives": [{"name": n, "file": keep(d), "listing": listing(d)} for n, d in bases.items()],
        "crafted": crafted(),
        "mutants": mutants(list(bases.values()), 1500),
        "shard": shard(),
    }
    with open(os.path.join(HERE, "photos.zlib"), "wb") as file:
        file.write(zlib.compress(bytes(blob), 9))
    with open(os.path.join(HERE, "photos.json"), "w") as file:
        text = json.dumps(golden, separators=(",", ":"))
        file.write(text.replace('},{"name"', '},\n{"name"') + "\n")


main()
