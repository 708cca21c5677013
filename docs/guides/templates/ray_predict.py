"""Predicts WebDataset shards with Ray Data: one `calmix predict` for each shard, wherever Ray has cores.

    python ray_predict.py RUN OUT SHARD [SHARD …]

RUN is the folder of a finished run and OUT a folder or an s3:// prefix; both, and the shards, have to be the same on
all nodes. calmix has to be on the PATH of the workers. A shard that was predicted before is not predicted again.
"""

import os
import subprocess
import sys

import ray
from pyarrow import dataset

THREADS = int(os.environ.get("CALMIX_THREADS", "1"))


def predict(row):
    """Runs calmix on one shard. The output appears part by part, and `--resume` continues it after a failure."""
    name = os.path.basename(row["shard"]).removesuffix(".tar")
    out = f"{row['out']}/{name}.parquet"
    command = ["calmix", "predict", row["run"], row["shard"], "--out", out, "--resume", "--threads", str(THREADS)]
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True)
        # 1: storage or a server failed; 75: the worker received SIGTERM. 2 is a mistake, which stays one.
        if done.returncode not in (1, 75):
            break
    if done.returncode != 0:
        raise RuntimeError(f"{row['shard']}: calmix ended with {done.returncode}: {done.stderr.strip()}")
    return {"shard": row["shard"], "out": out}


def main(run, out, shards):
    if "://" not in out:
        out = os.path.abspath(out)
        os.makedirs(out, exist_ok=True)
    rows = [{"run": run if "://" in run else os.path.abspath(run), "out": out, "shard": shard} for shard in shards]
    done = ray.data.from_items(rows, override_num_blocks=len(rows)).map(predict, num_cpus=THREADS)
    outputs = [row["out"] for row in done.take_all()]
    rows = dataset.dataset([dataset.dataset(out) for out in outputs])
    print(f"{len(outputs)} shards, {rows.count_rows()} rows")
    labels = rows.to_table(columns=["label"])["label"].value_counts().to_pylist()
    for label in sorted(labels, key=lambda label: str(label["values"])):
        print(label["values"], label["counts"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
