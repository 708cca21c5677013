"""Prints what MLflow's own client finds on a server: {run name: {status, params, metrics: {key: [[step, value], ...]}}}.

A value that is not a number is null.
"""

import json
import math
import sys

from mlflow.tracking import MlflowClient

client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name("calmix")
runs = []
for run in client.search_runs([experiment.experiment_id], max_results=100):
    history = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
    runs.append({
        "name": run.info.run_name,
        "status": run.info.status,
        "params": run.data.params,
        "metrics": {
            key: [[m.step, None if math.isnan(m.value) else m.value] for m in sorted(points, key=lambda m: m.step)]
            for key, points in history.items()
        },
    })
json.dump(sorted(runs, key=lambda run: run["name"]), sys.stdout)
