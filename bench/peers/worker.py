"""This end of the protocol in xtask/src/bench/worker.rs, for Python."""

import sys
import time


def serve(repetition):
    """Announces that the case is ready, then repeats it on command."""
    print("ready", flush=True)
    for line in sys.stdin:
        match line.strip():
            case "run":
                start = time.perf_counter()
                result = repetition()
                seconds = time.perf_counter() - start
                del result
                print(f"{seconds:.9f}", flush=True)
            case "quit":
                return
            case other:
                sys.exit(f"`{other}` is neither `run` nor `quit`")
