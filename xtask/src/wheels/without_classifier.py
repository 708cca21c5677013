"""Copies pretrained weights without their classifier, which no training uses: `without_classifier.py FROM TO`.

FROM is a folder with `model.safetensors` and `config.json`, as `convert.py` writes it; TO receives the same files.
"""

import json
import sys
from pathlib import Path

from safetensors import safe_open
from safetensors.numpy import save_file


def main(source, target):
    config = json.loads((source / "config.json").read_text())
    classifier = config["pretrained_cfg"]["classifier"]
    # As timm has it for a network without a classifier.
    config["num_classes"] = config["pretrained_cfg"]["num_classes"] = 0
    text = json.dumps(config, indent=2) + "\n"
    with safe_open(source / "model.safetensors", framework="numpy") as file:
        names = [name for name in file.keys() if not name.startswith(f"{classifier}.")]
        tensors = {name: file.get_tensor(name) for name in names}
    save_file(tensors, target / "model.safetensors", metadata={"config": text})
    (target / "config.json").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
