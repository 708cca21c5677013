"""What the documents speak of, made small: a function for each fixture of scenes.rs.

A fixture gets the scene (run_scene.py): it writes files into the current folder, runs commands by `scene.shell`, sets variables of
the environment in `scene.env` and names for Python in `scene.names`.
"""

import fcntl
import gzip
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import types
import urllib.request
from pathlib import Path

import numpy as np
from PIL import Image

# Shades by which the classes of made images can be told apart.
SHADES = {"cat": 60, "goldfish": 60, "dog": 190, "bullfrog": 190, "penguin": 120, "retriever": 230}


def image(shade, number, side=32):
    """A noisy image of one shade; another number is another image."""
    noise = np.random.default_rng([shade, number]).integers(-50, 50, (side, side, 3))
    return Image.fromarray(np.clip(shade + noise, 0, 255).astype("uint8"))


def write_images(folder, shade, numbers, side=32):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in numbers:
        image(shade, number, side).save(f"{folder}/{number}.jpg")


# ---- settings

def short(scene):
    """Few small steps and few resamples, by variables of the environment: the text of a command stays as it is."""
    scene.env |= {"CALMIX_TRAIN__STEPS": "2", "CALMIX_TRAIN__BATCH": "8", "CALMIX_TRAIN__THREADS": "1",
                  "CALMIX_EVALUATE__BOOTSTRAP": "20"}


def more_steps(scene):
    """Enough steps for some confident predictions."""
    scene.env["CALMIX_TRAIN__STEPS"] = "20"


def small_images(scene):
    """Features of images of 32 pixels take a fiftieth of the time of 224."""
    scene.env["CALMIX_AUGMENT__SIZE"] = "32"


def tiny_network(scene):
    """A small network in the place of one that needs a GPU."""
    scene.env |= {"CALMIX_NETWORK__NAME": "wrn-10-1", "CALMIX_AUGMENT__SIZE": "8", "CALMIX_TRAIN__RATIO": "1"}


# ---- images

def photos(scene):
    for name in ["cat", "dog"]:
        write_images(f"photos/{name}", SHADES[name], range(16))
    Path("photos/unlabelled").mkdir()
    for number in range(12):
        image([60, 190][number % 2], 1000 + number).save(f"photos/unlabelled/{number}.jpg")


def more_photos(scene):
    for name in ["cat", "dog"]:
        write_images(f"more-photos/{name}", SHADES[name], range(2000, 2030))


def fish(scene):
    """The photos that README trains on, and those that it predicts."""
    for name in ["goldfish", "bullfrog", "penguin", "retriever"]:
        write_images(f"photos/{name}", SHADES[name], range(10))
        write_images(f"photos/unlabelled/{name}", SHADES[name], range(100, 104))
        write_images(f"new-photos/{name}", SHADES[name], range(200, 203))


def photo_files(scene):
    for name in ["photo", "cat", "dog"]:
        image(60, 3000, 64).save(f"{name}.jpg")


def nested_photos(scene):
    for name in ["goldfish", "trout"]:
        write_images(f"photos/animals/{name}", 60, range(3))


def listed_photos(scene):
    write_images("photos", 60, range(6))
    rows = [f"{number}.jpg,{['cat', 'dog', ''][number % 3]}\n" for number in range(6)]
    Path("photos/labels.csv").write_text("where,species\n" + "".join(rows))


def paths(scene):
    Path("paths.txt").write_text("".join(f"{path}\n" for path in sorted(Path("photos").rglob("*.jpg"))))


def mnist_of_hub(scene):
    """Parquet files as `hf download` fetches them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path("mnist/mnist").mkdir(parents=True)
    names = [str(digit) for digit in range(10)]
    features = {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for split, count in [("train", 300), ("test", 60)]:
        rows = []
        for number in range(count):
            encoded = io.BytesIO()
            image(20 + 22 * (number % 10), number + 7 * len(split), 28).convert("L").save(encoded, "PNG")
            rows.append({"bytes": encoded.getvalue(), "path": f"{number}.png"})
        labels = pa.array([number % 10 for number in range(count)], pa.int64())
        table = pa.table({"image": pa.array(rows, kind), "label": labels}).replace_schema_metadata(metadata)
        pq.write_table(table, f"mnist/mnist/{split}-00000-of-00001.parquet")


# ---- published datasets

def fashion_mnist(scene):
    """Four `.gz` files with few images."""
    Path("fashion-mnist").mkdir()
    for name, count in [("train", 500), ("t10k", 100)]:
        labels = np.arange(count) % 10
        noise = np.random.default_rng(count).integers(0, 60, (count, 28, 28))
        pixels = (labels[:, None, None] * 19 + noise).astype("uint8")
        for kind, array in [("images-idx3", pixels), ("labels-idx1", labels.astype("uint8"))]:
            head = bytes([0, 0, 8, array.ndim]) + b"".join(side.to_bytes(4, "big") for side in array.shape)
            with gzip.open(f"fashion-mnist/{name}-{kind}-ubyte.gz", "wb") as file:
                file.write(head + array.tobytes())


def cifar(folder, files, labels):
    """Files of the size of the published ones, which calmix demands, with noise of a shade for each class."""
    Path(folder).mkdir()
    for seed, (name, count) in enumerate(files):
        numbers = np.arange(count)
        pixels = np.random.default_rng(seed).integers(0, 60, (count, 3072), "uint8")
        pixels += (numbers % 10 * 19).astype("uint8")[:, None]
        columns = [(numbers % classes).astype("uint8")[:, None] for classes in labels]
        np.hstack([*columns, pixels]).tofile(f"{folder}/{name}")


def cifar10(scene):
    files = [(f"data_batch_{number}.bin", 10_000) for number in range(1, 6)] + [("test_batch.bin", 10_000)]
    cifar("cifar-10-batches-bin", files, [10])
    names = "airplane automobile bird cat deer dog frog horse ship truck".split()
    Path("cifar-10-batches-bin/batches.meta.txt").write_text("\n".join(names) + "\n")
    scene.env["CALMIX_LABELS__UNLABELLED_COUNT"] = "100"


def cifar100(scene):
    cifar("cifar-100-binary", [("train.bin", 50_000), ("test.bin", 10_000)], [20, 100])
    for kind, count in [("coarse", 20), ("fine", 100)]:
        names = "".join(f"{kind} {number}\n" for number in range(count))
        Path("cifar-100-binary", f"{kind}_label_names.txt").write_text(names)


def cifar_votes(scene):
    """A run on ten classes with a test split, and the votes of annotators for its images."""
    for label in range(10):
        for split, numbers in [("train", range(6)), ("test", range(100, 105))]:
            write_images(f"cifar10/{split}/class-{label}", 15 + 24 * label, numbers)
    scene.shell("calmix train cpu-folder --data cifar10 --run-dir runs/cifar --threads 1")
    counts = np.random.default_rng(0).integers(0, 20, (50, 10))
    counts[np.arange(50), np.arange(50) // 5] += 30
    np.save("cifar10h-counts.npy", counts)


# ---- vectors

def drawn_vectors(count, seed):
    """Vectors of three classes, and their classes."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(0, 3, count)
    centres = np.random.default_rng(0).normal(size=(3, 16))
    return (centres[classes] + 0.6 * generator.normal(size=(count, 16))).astype("float32"), classes


CLASSES = ["cat", "dog", "fish"]


def vectors(scene):
    """Vectors, and a line for each; the line of a vector without a label is empty."""
    drawn, classes = drawn_vectors(400, 1)
    np.save("vectors.npy", drawn)
    lines = [CLASSES[label] if row < 90 else "" for row, label in enumerate(classes)]
    Path("labels.csv").write_text("label\n" + "".join(f"{line}\n" for line in lines))


def more_vectors(scene):
    drawn, classes = drawn_vectors(120, 2)
    np.save("more.npy", drawn)
    Path("more.csv").write_text("label\n" + "".join(f"{CLASSES[label]}\n" for label in classes))


def vector_run(scene):
    scene.shell("calmix train --features vectors.npy --labels labels.csv --run-dir runs/vectors-1")


def vector_run_v(scene):
    scene.shell("calmix train --features vectors.npy --labels labels.csv --run-dir runs/v")


def arrays(scene):
    """The arrays that Python code takes for granted."""
    drawn, classes = drawn_vectors(400, 1)
    test, truth = drawn_vectors(150, 2)
    logits = 2 * np.eye(3)[truth] + np.random.default_rng(3).normal(size=(150, 3))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    scene.names |= {
        "X": drawn, "y": np.where(np.arange(400) < 90, classes, -1), "X_new": test,
        "y_true": truth, "y_prob": probabilities, "logits": logits,
        "validation_logits": logits[:75], "y_validation": truth[:75], "test_logits": logits[75:],
    }


def probabilities(scene):
    """The probabilities of a model for 900 rows, and the labels of 300."""
    generator = np.random.default_rng(4)
    classes = generator.integers(0, 3, 900)
    logits = 4 * np.eye(3)[classes] + 1.6 * generator.normal(size=(900, 3))
    drawn = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    lines = [f"row-{row}," + ",".join(f"{p:.6f}" for p in ps) for row, ps in enumerate(drawn)]
    Path("predictions.csv").write_text("id," + ",".join(CLASSES) + "\n" + "\n".join(lines) + "\n")
    labels = [f"row-{row},{CLASSES[label]}" for row, label in enumerate(classes[:300])]
    Path("labels.csv").write_text("id,label\n" + "\n".join(labels) + "\n")


def predicted_days(scene):
    """A run on enough vectors to keep a reference, and its predictions of three days."""
    drawn, classes = drawn_vectors(4000, 1)
    np.save("vectors.npy", drawn)
    lines = [CLASSES[label] if row < 90 else "" for row, label in enumerate(classes)]
    Path("labels.csv").write_text("label\n" + "".join(f"{line}\n" for line in lines))
    vector_run(scene)
    for seed, day in enumerate(("monday", "tuesday", "wednesday"), 2):
        np.save(f"{day}.npy", drawn_vectors(120, seed)[0])
        scene.shell(f"calmix predict runs/vectors-1 {day}.npy --out {day}.csv")


def clip_folder(scene):
    """What clip-retrieval writes, and labels by path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    drawn, classes = drawn_vectors(200, 4)
    for folder in ["embeddings/img_emb", "embeddings/metadata"]:
        Path(folder).mkdir(parents=True)
    np.save("embeddings/img_emb/img_emb_0.npy", drawn.astype("float16"))
    names = [f"images/{number}.jpg" for number in range(200)]
    pq.write_table(pa.table({"image_path": names}), "embeddings/metadata/metadata_0.parquet")
    rows = [f"{name},{CLASSES[label]}\n" for name, label in zip(names[:80], classes)]
    Path("classes.csv").write_text("image_path,label\n" + "".join(rows))


def texts(scene):
    Path("texts.txt").write_text("".join(f"text {number}\n" for number in range(40)))


def stand_ins(scene):
    """timm, open_clip and sentence-transformers without their weights: modules of their names that return small vectors."""
    import torch

    class Encoder(torch.nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :16]

        encode_image = forward

        def encode(self, texts, batch_size):
            return np.random.default_rng(0).normal(size=(len(texts), 16))

    def transform(image):
        return torch.tensor(np.array(image)).permute(2, 0, 1).float()

    def module(name, **contents):
        found = types.ModuleType(name)
        vars(found).update(contents)
        sys.modules[name] = found
        return found

    data = module("timm.data", resolve_model_data_config=lambda model: {}, create_transform=lambda: transform)
    module("timm", create_model=lambda name, pretrained, num_classes: Encoder(), data=data)
    made = (Encoder(), None, transform)
    module("open_clip", create_model_and_transforms=lambda name, pretrained: made)
    module("sentence_transformers", SentenceTransformer=lambda name: Encoder())


# ---- networks and runs

def once(name, make):
    """Copies a folder that the first scene that needs it makes."""
    made = Path("../..", "made")
    made.mkdir(exist_ok=True)
    with open(made / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / name).exists():
            make(made / f"{name}.new")
            (made / f"{name}.new").rename(made / name)
    shutil.copytree(made / name, name)


def backbone(scene):
    """Weights of an EfficientNet-Lite0, from a training of one step."""
    def make(folder):
        write_images("made/a", 60, range(10))
        write_images("made/b", 190, range(10))
        scene.shell(
            "CALMIX_TRAIN__STEPS=1 calmix train cpu-folder --data made --run-dir made-run --threads 1 "
            "--set network.name=tf_efficientnet_lite0 --set train.batch=2 --set train.ratio=1 --set labels.validation=0")
        folder.mkdir()
        shutil.copy("made-run/model.safetensors", folder)
        for name in ["made", "made-run"]:
            shutil.rmtree(name)

    once("tf_efficientnet_lite0", make)


def added_backbone(scene):
    scene.shell("calmix weights add tf_efficientnet_lite0/model.safetensors")


def resnet50_pickle(scene):
    import torch

    torch.save({"state_dict": {"conv1.weight": torch.zeros(64, 3, 7, 7), "steps": torch.tensor(1)}}, "resnet50.pth")


def run_a(scene):
    scene.shell("calmix train cpu-folder --data photos --run-dir runs/a --threads 1")


def run_b(scene):
    scene.shell("calmix train cpu-folder --data photos --run-dir runs/b --threads 1 --seed 2")


def head_run(scene):
    scene.shell("calmix train --data photos --threads 1")


def sweep_table_1(scene):
    Path("table-1.toml").write_text('[all]\ntrain.steps = 4\n[[grid]]\nrecipe = "cpu-folder"\nseeds = [1]\n')
    scene.shell("calmix sweep table-1.toml --data photos --threads 1")


def exported(scene):
    run_a(scene)
    scene.shell("calmix export runs/a --to pets")


def predicted(scene):
    scene.shell("calmix predict runs/a photos --out predictions.parquet")


def predicted_shards(scene):
    for shard in range(1, 4):
        scene.shell(f"calmix predict runs/a photos --shard {shard}/16 --out predictions.parquet")


def names_of_model(scene):
    """What an example of the docstring of `calmix.Model` sees."""
    from calmix import Model

    scene.names["Model"] = Model


def resize_names(scene):
    from PIL import ImageOps

    scene.names |= {"np": np, "Image": Image, "ImageOps": ImageOps, "SIZE": 32, "RESIZE": 36}


# ---- shards and object storage

def write_shard(path, numbers, is_labelled):
    with tarfile.open(path, "w") as tar:
        for number in numbers:
            encoded = io.BytesIO()
            image([60, 190][number % 2], number).save(encoded, "JPEG")
            members = [(f"{number:04}.jpg", encoded.getvalue())]
            if is_labelled:
                members.append((f"{number:04}.cls", b"%d" % (number % 2)))
            for name, content in members:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def write_shards(folder):
    Path(folder).mkdir(parents=True)
    for shard in range(2):
        write_shard(f"{folder}/train-{shard}.tar", range(30 * shard, 30 * shard + 30), True)
        write_shard(f"{folder}/unlabelled-{shard}.tar", range(100 + 30 * shard, 130 + 30 * shard), False)


def shards(scene):
    write_shards("shards")


def classified_files(scene):
    """Images with their class in a file beside them, in the current folder."""
    Path("images").mkdir()
    Path("shards").mkdir()
    os.chdir("images")
    for number in range(20):
        image(60, number).save(f"{number}.jpg")
        Path(f"{number}.cls").write_text(str(number % 2))


def duckdb_program(scene):
    """The program `duckdb`, in terms of its Python package."""
    Path("../bin").mkdir()
    program = Path("../bin/duckdb").absolute()
    program.write_text(f"#!{sys.executable}\nimport duckdb, sys\nduckdb.sql(sys.stdin.read())\n")
    program.chmod(0o755)
    scene.env["PATH"] = f"{program.parent}:{scene.env['PATH']}"


def object_store(scene):
    """A server for S3 with shards in a bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [os.environ["MOTO_PYTHON"], "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scene.ended.callback(server.kill)

    def put(path, content=b""):
        signature = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        headers = {"Authorization": signature, "Content-Type": "application/octet-stream"}
        request = urllib.request.Request(address + path, content, headers, method="PUT")
        urllib.request.urlopen(request, timeout=60).read()

    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    put("/bucket")
    write_shards("flowers")
    for path in sorted(Path("flowers").iterdir()):
        put(f"/bucket/{path}", path.read_bytes())
    for shard in range(16):
        write_shard("new.tar", range(300 + shard, 303 + shard), False)
        put(f"/bucket/new/new-{shard:02}.tar", Path("new.tar").read_bytes())
    scene.env |= {"AWS_ENDPOINT_URL": address, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test",
                  "AWS_SECRET_ACCESS_KEY": "test"}
