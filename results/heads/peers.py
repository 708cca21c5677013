"""scikit-learn on the vectors and labels of a sweep's runs without mixtures: `peers.py SWEEP CACHE TABLE >> peers.csv`.

CACHE is the folder of pages that the runs used (docs/guides/frozen-features.md) and TABLE the prepared folder of their dataset. Vectors
are clean ones, projected by the run's own projection. LabelSpreading sees all training vectors of the cache: the 10,000
unlabelled images of every run, and the labelled ones of all of them. A run that `peers.csv` has already is left out.
"""

import csv
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.semi_supervised import LabelSpreading

RECORD = [("offset", "<u8"), ("part", "<u4"), ("length", "<u4"), ("checksum", "<u4"), ("label", "<u4")]
COLUMNS = ["data", "backbone", "labels", "seed", "peer", "error", "nll", "ece"]
CS = [1, 3, 10, 30, 100, 300, 1000, 3000]
DONE = Path(__file__).parent / "peers.csv"


def clean_vectors(cache):
    """The clean vector of each image of a cache, and its place in the table."""
    ids, vectors = [], []
    for path in sorted(cache.rglob("page-*.safetensors")):
        page = load_file(path)
        clean = np.flatnonzero((page["views"].reshape(-1, 2) == 0).all(axis=1))[0]
        ids.append(page["ids"].astype("int64"))
        vectors.append(page["vectors"][:, clean])
    ids, first = np.unique(np.concatenate(ids), return_index=True)
    return ids, np.concatenate(vectors)[first]


def project(vectors, projection):
    vectors = vectors.astype("float32") - projection["features.mean"]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors @ projection["features.rotation"].T


def measures(probabilities, truth):
    """Error, NLL and ECE of 15 bins; no NLL if a true class has no probability at all."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs((confidence[bins == n] - right[bins == n]).sum()) for n in range(15)]
    own = probabilities[np.arange(len(truth)), truth]
    nll = f"{-np.log(own).mean():.6g}" if (own > 0).all() else ""
    return {"error": f"{1 - right.mean():.6g}", "nll": nll, "ece": f"{sum(gaps) / len(truth):.6g}"}


def peers(labelled, truth, unlabelled, per_class, seed):
    """The name of each classifier and its fit."""
    folds = StratifiedKFold(min(10, per_class), shuffle=True, random_state=seed)
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": CS}, scoring="neg_log_loss", cv=folds)
    search.fit(labelled, truth)
    yield "logistic regression", search
    alone = LogisticRegression(max_iter=1000, **search.best_params_)
    yield "logistic regression, temperature", CalibratedClassifierCV(
        alone, method="temperature", cv=folds, ensemble=False
    ).fit(labelled, truth)
    both = np.concatenate([labelled, unlabelled])
    known = np.concatenate([truth, np.full(len(unlabelled), -1)])
    yield "label spreading", LabelSpreading(kernel="knn", n_neighbors=10).fit(both, known)


def main():
    sweep, cache, table = map(Path, sys.argv[1:4])
    subsets = json.loads((table / "manifest.json").read_text())["subsets"]
    test = next(subset for subset in subsets if subset["name"] == "test")
    labels = np.fromfile(table / "samples.bin", RECORD)["label"].astype("int64")
    ids, vectors = clean_vectors(cache)
    is_test = (ids >= test["first"]) & (ids < test["first"] + test["count"])
    with DONE.open() as file:
        done = {(row["data"], int(row["labels"]), int(row["seed"])) for row in csv.DictReader(file)}
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    for run in sorted((sweep / "runs").iterdir()):
        recipe = tomllib.loads((run / "recipe.toml").read_text())
        network, per_class, seed = recipe["network"], recipe["labels"]["count"], recipe["train"]["seed"]
        same = {"data": recipe["dataset"]["source"], "backbone": network["name"], "labels": per_class, "seed": seed}
        # Runs without mixtures have the same labels as the others of their seed.
        if recipe["method"]["mixup"]["pairing"] != "none" or (same["data"], per_class, seed) in done:
            continue
        done.add((same["data"], per_class, seed))
        projected = project(vectors, load_file(run / "projection.safetensors"))
        kept = np.isin(ids, json.loads((run / "split.json").read_text())["labelled"])
        unlabelled = projected[~is_test & ~kept]
        for name, model in peers(projected[kept], labels[ids[kept]], unlabelled, per_class, seed):
            probabilities = model.predict_proba(projected[is_test])
            # LabelSpreading has no probabilities for images that no label reaches.
            probabilities = np.nan_to_num(probabilities, nan=1 / probabilities.shape[1])
            out.writerow(same | {"peer": name} | measures(probabilities, labels[ids[is_test]]))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
