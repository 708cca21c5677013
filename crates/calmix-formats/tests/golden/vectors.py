"""Writes the same 50 vectors of 8 numbers, with labels, in every format that calmix reads.

Run it three times: python vectors.py vectors by an interpreter with numpy, torch and safetensors and by one with pyarrow, then
python vectors.py vectors datasets by one with Hugging Face's datasets.
Every number is a multiple of 1/8 with seven significant bits, which f16, bf16, f32 and f64 hold exactly.
"""

import csv
import sys
from pathlib import Path

out = Path(sys.argv[1])
out.mkdir(exist_ok=True)
rows = [[((i * 37 + j * 101) % 255 - 127) / 8 for j in range(8)] for i in range(50)]
labels = [-1 if i % 7 == 3 else [10, 2, 30, 4, 5][i % 5] for i in range(50)]
ids = [f"photos/{i:02}.jpg" for i in range(50)]
texts = ["" if label == -1 else str(label) for label in labels]

if sys.argv[2:] == ["datasets"]:
    from datasets import Dataset

    columns = {"id": ids, "embedding": rows, "label": [None if label == -1 else label for label in labels]}
    Dataset.from_dict(columns).to_parquet(out / "datasets.parquet")
    sys.exit()

try:
    import numpy
    import safetensors.torch
    import torch
except ImportError:
    numpy = None

if numpy:
    for name in ["f2", "f4", "f8"]:
        numpy.save(out / f"{name}.npy", numpy.array(rows, dtype=name))
    numpy.save(out / "labels.npy", numpy.array(labels))
    numpy.savez(out / "stored.npz", embeddings=numpy.array(rows, dtype="f4"), labels=numpy.array(labels))
    numpy.savez_compressed(out / "deflated.npz", x=numpy.array(rows, dtype="f8"), y=numpy.array(texts))
    for name, kind in [("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32), ("f64", torch.float64)]:
        tensors = {"vectors": torch.tensor(rows, dtype=kind), "labels": torch.tensor(labels)}
        safetensors.torch.save_file(tensors, out / f"{name}.safetensors")
    clip = out / "clip" / "img_emb"
    clip.mkdir(parents=True, exist_ok=True)
    for part, first in [(2, 0), (10, 20)]:
        numpy.save(clip / f"img_emb_{part}.npy", numpy.array(rows[first : first + (20 if part == 2 else 30)], dtype="f2"))
    with open(out / "lightly.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filenames", *[f"embedding_{j}" for j in range(8)], "labels"])
        for i in range(50):
            table.writerow([ids[i], *rows[i], labels[i]])
else:
    import pyarrow as pa
    import pyarrow.parquet as pq

    nullable = pa.array([None if label == -1 else label for label in labels])
    floats = pa.array(rows, type=pa.list_(pa.float32()))
    pq.write_table(
        pa.table({"id": ids, "embedding": floats, "label": nullable}),
        out / "snappy.parquet",
        compression="snappy",
        row_group_size=20,
    )
    pq.write_table(
        pa.table({"path": ids, "class": pa.array(texts).dictionary_encode(), "emb": pa.array(rows, type=pa.list_(pa.float16(), 8))}),
        out / "zstd.parquet",
        compression="zstd",
        data_page_version="2.0",
        data_page_size=64,
        write_batch_size=3,
        use_dictionary=["class"],
    )
    nested = pa.array([[row] for row in rows], type=pa.list_(pa.list_(pa.float64())))
    pq.write_table(
        pa.table({"features": nested, "category": pa.array([float("nan") if label == -1 else float(label) for label in labels])}),
        out / "nested.parquet",
        compression="none",
    )
    parts = out / "parts"
    parts.mkdir(exist_ok=True)
    for name, first, last in [("a", 0, 7), ("b", 7, 7), ("c", 7, 50)]:
        pq.write_table(pa.table({"vec": floats[first:last], "label": pa.array(labels[first:last], type=pa.int32())}), parts / f"{name}.parquet")
    metadata = out / "clip" / "metadata"
    metadata.mkdir(parents=True, exist_ok=True)
    for part, first, last in [(2, 0, 20), (10, 20, 50)]:
        pq.write_table(pa.table({"image_path": ids[first:last], "label": pa.array(labels[first:last])}), metadata / f"metadata_{part}.parquet")
    short = [[1.0, 2.0], [3.0, 4.0], [5.0]]
    for name, column in [("ragged", short), ("missing", [[1.0, 2.0], None, [3.0, 4.0]])]:
        pq.write_table(pa.table({"vector": pa.array(column, type=pa.list_(pa.float32()))}), out / f"{name}.parquet")
