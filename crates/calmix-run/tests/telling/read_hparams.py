"""Prints what TensorBoard's page HPARAMS shows of a folder of runs: names, hyperparameters, states, a metric."""

import json
import sys

from google.protobuf import json_format
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

multiplexer = plugin_event_multiplexer.EventMultiplexer()
multiplexer.AddRunsFromDirectory(sys.argv[1])
multiplexer.Reload()
provider = data_provider.MultiplexerDataProvider(multiplexer, sys.argv[1])
context = backend_context.Context(TBContext(data_provider=provider))
request = RequestContext()
ask = api_pb2.ListSessionGroupsRequest(
    allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING],
    start_index=0,
    slice_size=100,
)
handler = list_session_groups.Handler(request, context, "", ask)
answer = json_format.MessageToDict(handler.run())
runs = []
for group in answer["sessionGroups"]:
    (session,) = group["sessions"]
    metrics = {m["name"]["tag"]: m["value"] for m in session.get("metricValues", [])}
    runs.append({
        "name": session["name"],
        "hparams": group["hparams"],
        "status": session.get("status", "STATUS_UNKNOWN"),
        "error": metrics.get("test/ema/metrics/error"),
    })
json.dump(sorted(runs, key=lambda run: run["name"]), sys.stdout)
