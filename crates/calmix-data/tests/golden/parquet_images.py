"""Writes 24 small images with labels as Parquet files in the layout of Hugging Face's Hub.

Run it by an interpreter with pyarrow 26.0.1: python parquet_images.py parquet_images
The pixel in row y and column x of image i has the colour c with the value (37 i + 16 y + 4 x + 50 c) mod 256.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

out = Path(sys.argv[1])
NAMES = ["cat", "dog", "emu"]
FEATURES = {"image": {"_type": "Image"}, "label": {"names": NAMES, "_type": "ClassLabel"}}
HUGGING_FACE = {"huggingface": json.dumps({"info": {"features": FEATURES}})}
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def png(i):
    rows = b"".join(
        b"\0" + bytes((37 * i + 16 * y + 4 * x + 50 * c) % 256 for x in range(4) for c in range(3)) for y in range(4)
    )
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def label(i):
    return None if i % 7 == 3 else i % 3


def write(name, first, last, labels=label, metadata=HUGGING_FACE, plain=False, **options):
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = range(first, last)
    images = [png(i) if plain else {"bytes": png(i), "path": f"{i}.png"} for i in rows]
    columns = {
        "image": pa.array(images, type=pa.binary() if plain else STRUCT),
        "label": pa.array([labels(i) for i in rows], type=pa.int64()),
    }
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path, **options)


# The Hub: several files per split, different writers, row groups of 3 rows, more than one page in a row group.
write("hub/data/train-00000-of-00002.parquet", 0, 8, row_group_size=3, compression="snappy", use_dictionary=False)
write(
    "hub/data/train-00001-of-00002.parquet",
    8,
    16,
    compression="zstd",
    data_page_version="2.0",
    data_page_size=64,
    write_batch_size=2,
)
write("hub/data/test-00000-of-00001.parquet", 16, 19, compression="none", use_dictionary=True)
write("hub/data/validation-00000-of-00001.parquet", 19, 21, row_group_size=1)
write("hub/data/unsupervised-00000-of-00001.parquet", 21, 24, labels=lambda i: -1)
# Plain bytes, and no metadata: classes are numbers.
write("plain/0000.parquet", 0, 16, metadata=None, plain=True, column_encoding={"image": "DELTA_LENGTH_BYTE_ARRAY", "label": "PLAIN"}, use_dictionary=False)
