"""Writes a small folder of images, the same bytes each time, with the standard library alone."""

import random
import struct
import zlib

CLASSES = {"blue": (40, 60, 200), "green": (50, 190, 70), "red": (210, 50, 40)}
SIZE = 32


def write_photographs(folder, labelled=20, unlabelled=60):
    """Noisy squares of three colours: a folder for each class, and one for those without a label."""
    draw = random.Random(1)
    for name, colour in CLASSES.items():
        for i in range(labelled):
            _write(folder / name / f"{i}.png", colour, draw)
    for i in range(unlabelled):
        _write(folder / "unlabelled" / f"{i}.png", list(CLASSES.values())[i % 3], draw)


def _write(path, colour, draw):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = bytearray()
    for _ in range(SIZE):
        # Each row begins with its filter, none.
        rows.append(0)
        for _ in range(SIZE):
            rows.extend(min(255, max(0, value + draw.randint(-60, 60))) for value in colour)
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks))


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
