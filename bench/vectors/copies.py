"""Distinct labels that are linked as near-duplicates, and copies that are: `copies.py RUNS FIRST LAST`.

With scikit-learn and safetensors. Digits (64 pixels) and sentences of the docstrings of Python's packages (TF-IDF and SVD, or
hashed n-grams of characters) of which no two of a class share 40% of their words. Ten labels per class, alone or with a copy of
40% of them: noise on digits, an edited word in sentences. A run that RUNS already has is left out. `$CALMIX` is the program,
`calmix` by default.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

LABELS, POOL = 10, 1500
PACKAGES = ["numpy", "scipy", "pandas", "sklearn"]


def digits(rng):
    data = load_digits()
    vectors = data.data.astype("float32")
    return vectors, data.target, vectors + rng.normal(0, 0.5, vectors.shape).astype("float32")


def sentences(rng):
    """Sentences of docstrings, each with the number of its package, and each with a word left out, added or changed."""
    texts, classes = [], []
    for number, package in enumerate(PACKAGES):
        kept = []
        for file in sorted((Path(sysconfig.get_paths()["purelib"]) / package).rglob("*.py")):
            for docstring in re.findall(r'"""(.*?)"""', file.read_text(errors="replace"), re.DOTALL):
                for sentence in re.split(r"(?<=[.!?])\s+|\n\n", docstring):
                    words = sentence.split()
                    if len(kept) == 800 or not 6 < len(words) < 35 or re.search(r">>>|\.\. |::|==|--", sentence):
                        continue
                    own = set(sentence.lower().split())
                    if all(len(own & other) < 0.4 * min(len(own), len(other)) for other in kept):
                        kept.append(own)
                        texts.append(" ".join(words))
                        classes.append(number)
    return texts, np.array(classes), [edited(text, rng) for text in texts]


def edited(text, rng):
    words = text.split()
    place = rng.integers(len(words))
    change = rng.integers(3)
    words[place : place + 1] = [[], [words[place], "also"], [words[place] + "s"]][change]
    return " ".join(words)


def tfidf(texts, copies):
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(texts)
    svd = TruncatedSVD(200, random_state=0).fit(words.transform(texts))
    return [svd.transform(words.transform(some)).astype("float32") for some in [texts, copies]]


def characters(texts, copies):
    hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=512)
    return [hashing.transform(some).toarray().astype("float32") for some in [texts, copies]]


def train(folder, vectors, labels):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "vectors.npy", vectors)
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"{row},class {label}\n" for row, label in enumerate(labels)))
    command = [os.environ.get("CALMIX", "calmix"), "train", "--features", folder / "vectors.npy"]
    command += ["--labels", folder / "labels.csv", "--run-dir", folder / "run", "--set", "network.folds=2"]
    subprocess.run([*command, "--set", "evaluate.bootstrap=0"], check=True, stdout=subprocess.DEVNULL)


def main():
    runs, first, last = sys.argv[1:]
    rng = np.random.default_rng(0)
    texts, classes, copies = sentences(rng)
    sets = {"digits": digits(rng)}
    for name, embed in {"tfidf": tfidf, "characters": characters}.items():
        vectors, edits = embed(texts, copies)
        sets[name] = (vectors, classes, edits)
    for name, (vectors, classes, copies) in sets.items():
        for share in [0, 40]:
            wrong, labelled, found = 0, 0, []
            for seed in range(int(first), int(last) + 1):
                draw = np.random.default_rng(seed)
                own = [draw.permutation(np.flatnonzero(classes == number))[:LABELS] for number in np.unique(classes)]
                copied = np.concatenate([rows[: LABELS * share // 100] for rows in own])
                rows = np.concatenate([*own, copied])
                pool = draw.permutation(np.setdiff1d(np.arange(len(vectors)), rows))[:POOL]
                folder = Path(runs) / f"{name}-{share}-{seed}"
                if not (folder / "run" / "result.json").exists():
                    originals = len(rows) - len(copied)
                    numbers = np.concatenate([vectors[rows[:originals]], copies[copied], vectors[pool]])
                    train(folder, numbers, classes[rows])
                predictions = load_file(max((folder / "run" / "predictions").glob("*-out-of-fold-ema.safetensors")))
                groups = predictions.get("groups", np.arange(len(rows)))
                wrong += sum(len(set(rows[groups == group])) > 1 for group in groups)
                labelled += len(rows)
                originals = {row: group for row, group in zip(rows[: len(rows) - len(copied)], groups)}
                found += [originals[row] == group for row, group in zip(copied, groups[len(rows) - len(copied) :])]
            recall = f"{100 * np.mean(found):.0f}% of {len(found)} copies linked" if found else "no copies"
            print(f"{name}, {share}%: {100 * wrong / labelled:.2f}% of {labelled} labels with a distinct one; {recall}", flush=True)


if __name__ == "__main__":
    main()
