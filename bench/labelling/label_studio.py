"""Reviews through a real Label Studio: `label_studio.py OUT [COUNT]`, with Label Studio 1.23.2 and Pillow in this Python. `$CALMIX` is the program.

Draws images of three classes into the new folder OUT, with names and classes that need quoting, trains a run on some of them, and lets it ask
for COUNT samples (56). A server on this machine gets the tasks by its API; one user annotates all but every tenth, which is skipped, and another
one a fifth of them. The exports, before and after the second user, are read by `calmix label`, and its labels compared with the answers. Each
check prints what it found; the first that fails ends the script.
"""

import csv
import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import requests
from PIL import Image

CALMIX = os.environ.get("CALMIX", "calmix")
PORT = int(os.environ.get("LABEL_STUDIO_PORT", "8179"))
URL = f"http://127.0.0.1:{PORT}"
CLASSES = ["dog", "salt & <pepper>", 'the "ü" + 1']
NAMES = ["{}.png", "a b {}.png", "50% + {}&#?.png", "ü'{}\".png", "<b>{}.png"]


def calmix(*arguments, folder):
    return subprocess.run([CALMIX, *map(str, arguments)], cwd=folder, check=True, capture_output=True, text=True).stdout


def check(holds, what):
    print("ok  " if holds else "FAIL", what, flush=True)
    if not holds:
        sys.exit(1)


def draw(photos, labelled=20, unlabelled=60):
    """Writes images; returns the class of each by its path. The first two labels of a class are wrong."""
    random = np.random.default_rng(0)
    truth = {}
    for number, name in enumerate(CLASSES):
        for at in range(labelled + unlabelled):
            folder = CLASSES[(number + (at < 2)) % len(CLASSES)] if at < labelled else "unlabelled"
            path = f"{folder}/{NAMES[at % len(NAMES)].format(f'{number}-{at}')}"
            pixels = random.normal(60, 40, (32, 32, 3))
            pixels[..., number] += 60 + 40 * np.sin(np.arange(32) / (number + 1))
            (photos / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.clip(0, 255).astype("uint8")).save(photos / path)
            truth[path] = name
    return truth


class Server:
    """Label Studio with a database of its own, and the session of its first user."""

    def __init__(self, folder, served):
        self.email, password, token = "first@example.org", secrets.token_hex(8), secrets.token_hex(20)
        program = Path(sys.executable).with_name("label-studio")
        options = ["--no-browser", "--port", PORT, "--data-dir", folder, "--enable-legacy-api-token"]
        user = ["--username", self.email, "--password", password, "--user-token", token]
        variables = {
            "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
            "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(served),
            "COLLECT_ANALYTICS": "false",
        }
        folder.mkdir()
        self.process = subprocess.Popen(
            [program, "start", *map(str, options + user)], env=os.environ | variables, cwd=folder,
            stdout=open(folder / "log", "w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Token {token}"
        for _ in range(1_800):
            try:
                if requests.get(URL + "/health", timeout=2).ok:
                    return
            except requests.RequestException:
                time.sleep(0.5)
        self.close()
        raise SystemExit(f"the server did not start: {folder / 'log'}")

    def sign_up(self, email):
        """Returns the session of another user of the same organisation."""
        session = requests.Session()
        invite = self.call("GET", "/api/invite")["invite_url"]
        page = URL + "/user/signup/?" + invite.split("?")[1]
        session.get(page).raise_for_status()
        form = {"csrfmiddlewaretoken": session.cookies["csrftoken"], "email": email, "password": secrets.token_hex(8)}
        session.post(page, data=form, headers={"Referer": page}).raise_for_status()
        session.headers.update({"X-CSRFToken": session.cookies["csrftoken"], "Referer": URL})
        return session

    def call(self, method, path, session=None, **more):
        response = (session or self.session).request(method, URL + path, **more)
        if not response.ok:
            raise SystemExit(f"{method} {path}: {response.status_code} {response.text[:500]}")
        return response.json() if response.content else None

    def annotate(self, task, label, session=None):
        part = {"from_name": "label", "to_name": "sample", "type": "choices", "value": {"choices": [label]}}
        body = {"result": [part] if label else [], "was_cancelled": label is None}
        return self.call("POST", f"/api/tasks/{task}/annotations/", session, json=body)["id"]

    def close(self):
        self.process.terminate()
        self.process.wait()


def compare(out, export, answers):
    """Reads an export into a new list of labels; returns what calmix printed, and the rows of the list."""
    (out / "photos/labels.csv").unlink(missing_ok=True)
    printed = json.loads(calmix("label", "photos", export, "--replace", "--json", folder=out))
    with open(out / "photos/labels.csv", newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    wrong = [name for name, answer in answers.items() if answer is not None and rows[name]["label"] != answer]
    check(not wrong, f"{sum(answer is not None for answer in answers.values())} labels are those of the annotations {wrong}")
    skipped = [name for name, answer in answers.items() if answer is None and not rows[name]["label"]]
    check(all(rows[name]["drawn"] == "skipped" for name in skipped), f"{len(skipped)} skipped samples are marked")
    return printed, rows


def main():
    out = Path(sys.argv[1]).absolute()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 56
    photos = out / "photos"
    truth = draw(photos)
    calmix("train", "--data", "photos", "--run-dir", "run", "--quiet", folder=out)
    options = ["--count", count, "--choose", "margin", "--to", "label-studio"]
    print(calmix("review", "run", *options, folder=out))
    tasks = json.loads((out / "label-studio.json").read_text())
    server = Server(out / "server", out)
    try:
        use(server, out, photos, truth, tasks)
    finally:
        server.close()


def use(server, out, photos, truth, tasks):
    interface = (out / "label-studio.xml").read_text()
    project = server.call("POST", "/api/projects", json={"title": "calmix", "label_config": interface})["id"]
    images = [task["data"]["image"] for task in tasks]
    found = [server.session.get(URL + image).status_code for image in images]
    check(set(found) == {404}, f"without a storage, {found.count(404)} of {len(found)} images answer 404")
    refused = server.session.post(f"{URL}/api/storages/localfiles", json={"project": project, "path": str(out)})
    check(refused.status_code == 400, f"a storage of the served folder itself: {refused.status_code}")
    server.call("POST", "/api/storages/localfiles", json={"project": project, "path": str(photos)})
    same = 0
    for task in tasks:
        answer = server.session.get(URL + task["data"]["image"])
        same += answer.status_code == 200 and answer.content == (photos / task["data"]["file"]).read_bytes()
    check(same == len(tasks), f"with a storage, {same} of {len(tasks)} images answer 200 with the bytes of the file")
    check(requests.get(URL + images[0], allow_redirects=False).status_code != 200, "without a login they are refused")

    imported = server.call("POST", f"/api/projects/{project}/import", json=tasks)
    check(imported["task_count"] == len(tasks), f"{imported['task_count']} tasks, {imported['prediction_count']} predictions")
    listed = server.call("GET", f"/api/tasks?project={project}&fields=all&page_size=1000")["tasks"]
    listed.sort(key=lambda task: task["id"])
    random = [task for task in listed if task["data"]["why"] == "random"]
    check(not any(task["predictions"] for task in random), f"{len(random)} random tasks have no prediction")
    others = [task for task in listed if task["data"]["why"] in ("check", "margin")]
    check(all(task["predictions"] for task in others), f"{len(others)} chosen tasks have one")

    answers = {}
    for number, task in enumerate(listed):
        name = task["data"]["file"]
        answers[name] = None if number % 10 == 9 else truth[name]
        if number % 10 == 3:
            server.annotate(task["id"], CLASSES[0])
        if number % 10 == 4:
            changed = server.annotate(task["id"], CLASSES[1])
            part = {"from_name": "label", "to_name": "sample", "type": "choices", "value": {"choices": [truth[name]]}}
            server.call("PATCH", f"/api/annotations/{changed}", json={"result": [part]})
        else:
            server.annotate(task["id"], answers[name])
    path = f"/api/projects/{project}/export?exportType=JSON"
    (out / "export.json").write_text(json.dumps(server.call("GET", path), ensure_ascii=False))
    printed, rows = compare(out, "export.json", answers)
    drawn = {task["data"]["file"]: task["data"]["drawn"] for task in tasks}
    marks = [name for name, answer in answers.items() if answer and rows[name]["drawn"] != drawn[name]]
    check(not marks, f"the draw of every label is that of its task {marks}")
    print({key: printed[key] for key in ("added", "confirmed", "corrected", "skipped", "unanswered")})

    second_round(server, out, interface)

    other = server.sign_up("second@example.org")
    for number, task in enumerate(listed[::3]):
        label = truth[task["data"]["file"]]
        server.annotate(task["id"], CLASSES[(CLASSES.index(label) + (number < 2)) % len(CLASSES)], other)
    (out / "export-of-two.json").write_text(json.dumps(server.call("GET", path), ensure_ascii=False))
    different = [task["data"]["file"] for task in listed[::3][:2] if answers[task["data"]["file"]]]
    for task in listed[::3]:
        name = task["data"]["file"]
        answers[name] = answers[name] or truth[name]
    kept = {name: answer for name, answer in answers.items() if name not in different}
    printed, _ = compare(out, "export-of-two.json", kept)
    agreement = printed["agreement"][0]
    found = {row["file"] for row in printed["disagreements"]}
    check(found == set(different), f"{len(found)} different answers of two users are not merged")
    print(f"agreement: {agreement}")
    short = server.call("GET", f"/api/projects/{project}/export?exportType=JSON_MIN")
    (out / "export-min.json").write_text(json.dumps(short))
    refused = subprocess.run([CALMIX, "label", "photos", "export-min.json"], cwd=out, capture_output=True, text=True)
    check(refused.returncode == 2, refused.stderr.strip())


def second_round(server, out, interface):
    """Chosen labels that the random order has reached come with their annotation, and count as random afterwards."""
    calmix("train", "--data", "photos", "--run-dir", "run-2", "--quiet", folder=out)
    calmix("review", "run-2", "--count", 100, "--random", 1, "--to", "label-studio", "--force", folder=out)
    tasks = json.loads((out / "label-studio.json").read_text())
    answered = [task["data"]["file"] for task in tasks if "annotations" in task]
    project = server.call("POST", "/api/projects", json={"title": "round 2", "label_config": interface})["id"]
    server.call("POST", f"/api/projects/{project}/import", json=tasks)
    export = server.call("GET", f"/api/projects/{project}/export?exportType=JSON")
    (out / "export-2.json").write_text(json.dumps(export))
    before = (out / "photos/labels.csv").read_text()
    calmix("label", "photos", "export-2.json", folder=out)
    with open(out / "photos/labels.csv", newline="") as file:
        drawn = {row["file"]: row["drawn"] for row in csv.DictReader(file)}
    check(answered and all(drawn[name] == "random" for name in answered), f"{len(answered)} chosen labels count as random now")
    (out / "photos/labels.csv").write_text(before)


if __name__ == "__main__":
    main()
