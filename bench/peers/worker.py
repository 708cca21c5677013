"""This end of the protocol in xtask/src/bench/worker.rs, for Python."""

import sys
import time


def serve(repetition):
    """Announces that the case is ready, then repeats it on command."""
    answer(repetition, time.perf_counter, lambda result: "")


def serve_cpu(repetition):
    """The same in seconds of the processor instead of the clock, and with the result, a number."""
    answer(repetition, time.process_time, lambda result: f" result={result:.9f}")


def answer(repetition, clock, tell):
    print("ready", flush=True)
    for line in sys.stdin:
        match line.strip():
            case "run":
                start = clock()
                result = repetition()
                seconds = clock() - start
                print(f"{seconds:.9f}{tell(result)}", flush=True)
                del result
            case "quit":
                return
            case other:
                sys.exit(f"`{other}` is neither `run` nor `quit`")
