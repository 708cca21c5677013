"""Runs the blocks of one scene in the current folder, and names those that fail by document and line.

Standard input has the scene as JSON: its document, the names of its fixtures, and its blocks (plan.rs).
"""

import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import traceback

import fixtures

# A block that takes longer hangs.
SECONDS = 1800
# What takes a core longer is printed.
SLOW = 5

# Stops at the first command that fails and names it; a line of the script has the number of its line in the document.
PRELUDE = "set -eEuo pipefail; trap 'echo \"failed: line $LINENO: $BASH_COMMAND\" >&2' ERR"


class Failure(Exception):
    """A block does not do what its document says."""


class Scene:
    """A folder with files, variables of the environment for commands, and names for Python."""

    def __init__(self, description):
        self.document = description["document"]
        self.root = description["root"]
        self.env = dict(os.environ)
        self.names = {"__name__": "__main__"}
        self.ended = contextlib.ExitStack()
        self.output = ""

    def shell(self, script, line=0, may_fail=False):
        """Runs a script and returns its exit code and what it printed; standard output is kept for the next block."""
        script = PRELUDE + "\n" * max(line, 1) + script
        process = subprocess.Popen(
            ["bash", "-c", script], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            stdout, stderr = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            stderr += f"\nstopped after {SECONDS} s"
        if process.returncode and not may_fail:
            raise Failure(f"exit code {process.returncode}\n{stdout}{stderr}")
        self.output = stdout
        return process.returncode, stdout + stderr

    def python(self, code, line):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, self.document, "exec"), self.names)
        except Exception as error:
            raise Failure(printed.getvalue() + traceback.format_exc()) from error
        self.output = printed.getvalue()

    def sql(self, code):
        import duckdb

        for query in code.split(";"):
            if query.strip():
                try:
                    duckdb.sql(query)
                except duckdb.Error as error:
                    raise Failure(f"{query.strip()}\n{error}") from error

    def transcript(self, text, line):
        """Runs commands after `$`, and looks for the lines below each in what it prints."""
        steps = []
        for number, row in enumerate(text.splitlines(), line + 1):
            if row.startswith("$ "):
                steps.append((number, row[2:], []))
            elif steps:
                steps[-1][2].append(row)
        for number, command, shown in steps:
            code, printed = self.shell(command, number - 1, may_fail=True)
            shows_error = any(row.startswith("error") for row in shown)
            if shows_error != (code != 0):
                raise Failure(f"line {number}: exit code {code}\n{printed}")
            compare(shown, printed)

    def run(self, block):
        line, kind, text = block["line"], block["kind"], block["text"]
        if kind == "sh":
            self.shell(text, line)
        elif kind == "python":
            self.python(text, line)
        elif kind == "sql":
            self.sql(text)
        elif kind == "transcript":
            self.transcript(text, line)
        elif kind == "output":
            compare(text.splitlines()[:1], self.output)
        elif kind == "file":
            # Files are written before the commands that make their folders run, if those do.
            os.makedirs(os.path.dirname(block["name"]) or ".", exist_ok=True)
            with open(block["name"], "w") as file:
                file.write(text)
        else:
            raise Failure(f"blocks of kind {kind} cannot be run")


def compare(shown, printed):
    """Looks for lines in a text, in their order; a number may be another one, and `...` stands for any lines."""
    rows = iter(pattern(row) for row in printed.splitlines())
    for row in shown:
        if row.strip() not in ("...", "") and pattern(row) not in rows:
            raise Failure(f"not printed: {row}\n{printed}")


def pattern(row):
    return re.sub(r"\d[\d.,]*", "#", row).rstrip()


@contextlib.contextmanager
def timed(what):
    """Prints how long something took, and for how long a core was busy with it, if that is long."""
    start, busy = time.monotonic(), busy_seconds()
    yield
    took, busy = time.monotonic() - start, busy_seconds() - busy
    if busy > SLOW:
        print(f"{took:.1f} s, {busy:.1f} s of a core: {what}")


def busy_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main():
    description = json.load(sys.stdin)
    scene = Scene(description)
    failed = 0
    with scene.ended:
        for name in description["fixtures"]:
            try:
                with timed(f"the fixture `{name}`"):
                    getattr(fixtures, name)(scene)
            except Exception:
                print(f"{scene.document}: the fixture `{name}` cannot be made\n{traceback.format_exc()}")
                sys.exit(1)
        # A file may be shown below the command that reads it.
        for block in sorted(description["blocks"], key=lambda block: block["kind"] != "file"):
            try:
                with timed(f"line {block['line']}"):
                    scene.run(block)
            except Failure as failure:
                failed += 1
                print(f"{scene.document}:{block['line']}: the block fails: {failure}")
    sys.exit(1 if failed else 0)


main()
