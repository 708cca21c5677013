"""`calmix.Model` on files that somebody else made: refused with the file and what is wrong, before they read or compute anything."""

import os
import subprocess

import calmix
import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

# Numbers of fields and types in onnx.proto.
GRAPH, FUNCTIONS, NOTES = 7, 25, 14
NODE, INITIALIZER, INPUT, OUTPUT = 1, 5, 11, 12
FLOAT = 1


def number(value):
    """A number as protobuf writes it."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def field(place, content):
    """A field of a message: text, a message, or a number."""
    if isinstance(content, int):
        return number(place << 3) + number(content)
    content = content.encode() if isinstance(content, str) else content
    return number(place << 3 | 2) + number(len(content)) + content


def note(key, value):
    """A note of a model, which takes the place of an earlier one with this key."""
    return field(NOTES, field(1, key) + field(2, value))


def tensor(*more):
    return field(8, "stolen") + field(1, 4) + field(2, FLOAT) + b"".join(more)


def node(operator, inputs, output, *attributes):
    fields = [field(1, name) for name in inputs] + [field(2, output), field(4, operator)]
    return field(NODE, b"".join(fields + [field(5, attribute) for attribute in attributes]))


@pytest.fixture(scope="module")
def exported(command, tmp_path_factory):
    """The bytes of a small exported model of vectors."""
    folder = tmp_path_factory.mktemp("exported")
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=120)
    np.save(folder / "x.npy", (np.eye(3)[truth] * 4 + rng.normal(size=(120, 3))).astype(np.float32))
    np.save(folder / "y.npy", truth)
    train = ["train", "--features", "x.npy", "--labels", "y.npy", "--run-dir", "run"]
    for arguments in [train, ["export", "run", "--to", "model"]]:
        done = subprocess.run([command, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return (folder / "model" / "model.onnx").read_bytes()


def opened(folder, content):
    (folder / "model.onnx").write_bytes(content)
    return calmix.Model(folder, threads=1)


def refused(folder, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        opened(folder, content)
    assert str(folder / "model.onnx") in str(caught.value)


def test_own_model_is_opened_through_a_link(exported, tmp_path):
    (tmp_path / "blob").write_bytes(exported)
    (tmp_path / "model.onnx").symlink_to(tmp_path / "blob")
    assert len(calmix.Model(tmp_path, threads=1).predict(np.eye(3)).label) == 3


@pytest.mark.parametrize("location", ["/etc/passwd", "../secret.bin", "weights.bin", "/dev/zero"])
def test_weights_in_other_files_are_refused(exported, tmp_path, location):
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    place = field(13, field(1, "location") + field(2, location))
    for external in [tensor(place, field(14, 1)), tensor(place), tensor(field(14, 1))]:
        refused(tmp_path, exported + field(GRAPH, field(INITIALIZER, external)), "weights in another file")
    constant = node("Constant", [], "c", field(1, "value") + field(20, 4) + field(5, tensor(place, field(14, 1))))
    refused(tmp_path, exported + field(GRAPH, constant), "weights in another file")


def test_loops_and_functions_are_refused(exported, tmp_path):
    body = field(1, "body") + field(20, 5) + field(6, field(2, "endless"))
    refused(tmp_path, exported + field(GRAPH, node("Loop", ["", ""], "never", body)), "a graph inside a node")
    refused(tmp_path, exported + field(FUNCTIONS, field(1, "f")), "functions of its own")


def test_damaged_bytes_are_refused(exported, tmp_path):
    for end in [0, 1, 10, len(exported) // 2, len(exported) - 1]:
        refused(tmp_path, exported[:end], "not an ONNX model, or its end is missing")
    refused(tmp_path, bytes(1000), "not an ONNX model|onnxruntime cannot read")
    # A length of 2^60, a key beyond 32 bits, and the other format of onnxruntime.
    refused(tmp_path, exported + number(GRAPH << 3 | 2) + number(1 << 60), "not an ONNX model")
    refused(tmp_path, exported + number((1 << 35) | GRAPH << 3) + number(0), "not an ONNX model")
    refused(tmp_path, b"\x08\x00\x00\x00ORTM" + exported, "not an ONNX model|onnxruntime cannot read")
    rng = np.random.default_rng(0)
    for _ in range(200):
        content = bytearray(exported)
        for place in rng.integers(len(content), size=3):
            content[place] = rng.integers(256)
        try:
            opened(tmp_path, bytes(content)).predict(np.eye(3))
        except ValueError as error:
            assert str(tmp_path / "model.onnx") in str(error)


def test_huge_and_hollow_files_are_refused(tmp_path):
    with open(tmp_path / "model.onnx", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match=r"model\.onnx"):
        calmix.Model(tmp_path)
    os.remove(tmp_path / "model.onnx")
    for make in [lambda path: path.mkdir(), lambda path: path.rmdir() or os.mkfifo(path)]:
        make(tmp_path / "model.onnx")
        with pytest.raises(FileNotFoundError):
            calmix.Model(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("classes", "[", "not JSON"),
        ("classes", "[" * 100_000, "not JSON"),
        ("classes", '{"a": 1}', "not a list"),
        ("classes", "[1, 2, 3]", "not a list"),
        ("classes", '["a", "a", "b"]', "twice"),
        ("classes", '["a", "b"]', "2 classes"),
        ("classes", "[" + ",".join(f'"{name}"' for name in range(100_000)) + "]", "100000 classes"),
        ("coverage", "NaN", "between 0 and 1"),
        ("coverage", "1e400", "between 0 and 1"),
        ("precision", "true", "between 0 and 1"),
        ("precision", "", "not JSON"),
    ],
)
def test_wrong_notes_are_refused(exported, tmp_path, key, value, message):
    refused(tmp_path, exported + note(key, value), message)


def test_model_of_others_is_refused(exported, tmp_path):
    unnamed = exported.replace(b"calmix_version", b"foobar_version")
    refused(tmp_path, unnamed, "calmix did not write this model")


def value_info(name, kind, *shape):
    dimensions = [field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape]
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, b"".join(dimensions))))


def small_model(*, input_name="vectors", label=None, notes=()):
    """A model without weights: the probabilities are the input, and the label is what `label` computes."""
    nodes = [node("Identity", [input_name], "probabilities"), node("ReduceMax", ["probabilities"], "top")]
    axis = field(1, "axis") + field(20, 2) + field(3, 1)
    keep = field(1, "keepdims") + field(20, 2) + field(3, 0)
    axes = field(1, "axes") + field(20, 7) + field(8, 1)
    nodes[1] = node("ReduceMax", ["probabilities"], "confidence", axes, keep)
    nodes.append(label or node("ArgMax", ["probabilities"], "label", axis, keep))
    outputs = [value_info("probabilities", FLOAT, "N", 3), value_info("label", 7, "N"), value_info("confidence", FLOAT, "N")]
    graph = b"".join(nodes) + field(2, "graph") + field(INPUT, value_info(input_name, FLOAT, "N", 3))
    graph += b"".join(field(OUTPUT, output) for output in outputs)
    model = field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(GRAPH, graph)
    notes = {"calmix_version": "0", "classes": '["a", "b", "c"]', **dict(notes)}
    return model + b"".join(note(key, value) for key, value in notes.items())


def test_wrong_inputs_and_answers_are_refused(tmp_path):
    assert list(opened(tmp_path, small_model()).predict(np.eye(3)).label) == ["a", "b", "c"]
    refused(tmp_path, small_model(input_name="pixels"), "neither `vectors` nor `images`")
    refused(tmp_path, small_model(input_name="images"), "neither `vectors` nor `images`")
    outside = node("Cast", ["vectors"], "labels", field(1, "to") + field(20, 2) + field(3, 7))
    outside += node("ReduceSum", ["labels"], "sum", field(1, "keepdims") + field(20, 2) + field(3, 0))
    outside += node("ArgMax", ["vectors"], "first", field(1, "axis") + field(20, 2) + field(3, 1), field(1, "keepdims") + field(20, 2) + field(3, 0))
    model = opened(tmp_path, small_model(label=outside + node("Add", ["first", "sum"], "label")))
    with pytest.raises(ValueError, match="not one of its 3 classes"):
        model.predict(np.eye(3))
    with pytest.raises(ValueError, match="not one of its 3 classes"):
        model.predict(-9 * np.eye(3))
    flat = node("ArgMax", ["vectors"], "label", field(1, "axis") + field(20, 2) + field(3, 0), field(1, "keepdims") + field(20, 2) + field(3, 0))
    model = opened(tmp_path, small_model(label=flat))
    with pytest.raises(ValueError, match="`label` has the shape|cannot run this model"):
        model.predict(np.eye(3)[:2])


def test_vectors_with_masks_and_infinities_have_their_row(tmp_path):
    model = opened(tmp_path, small_model())
    vectors = np.ma.masked_array(np.eye(3), mask=np.arange(9).reshape(3, 3) == 4)
    with pytest.raises(ValueError, match="row 1 has a masked value"):
        model.predict(vectors)
    with pytest.raises(ValueError, match="row 2 contains NaN, infinity or a value too large"):
        model.predict(np.diag([1, 1, 1e300]))
