"""Runs the cells of a notebook in one namespace, without Jupyter, and stores what they print: `run_notebook.py NOTEBOOK`."""

import contextlib
import io
import json
import pathlib
import sys


def run(notebook):
    """Executes the code cells in order and replaces their outputs by what they print."""
    namespace = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"cell {count}", "exec"), namespace)
        cell["execution_count"] = count
        lines = printed.getvalue().splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def main():
    path = pathlib.Path(sys.argv[1])
    notebook = json.loads(path.read_text(encoding="utf-8"))
    run(notebook)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
