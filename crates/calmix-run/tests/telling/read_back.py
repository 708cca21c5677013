"""Prints every scalar that TensorBoard finds in a folder: {tag: [[step, value], ...]}."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

# Zero: keep every point, do not sample.
folder = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
folder.Reload()
scalars = {tag: [[e.step, e.value] for e in folder.Scalars(tag)] for tag in folder.Tags()["scalars"]}
json.dump(scalars, sys.stdout)
