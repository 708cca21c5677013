"""Pretrained weights that calmix finds by itself: a folder for each network, with `model.safetensors`, `config.json` and `LICENSE`."""
