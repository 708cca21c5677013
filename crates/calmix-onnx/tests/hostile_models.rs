//! Hostile models: each is refused with a sentence that says what is wrong, where, and what to do; no damage panics.

use calmix_core::rng::{Domain, Seed};
use calmix_io::protobuf::Message;
use calmix_onnx::foreign::ForeignModel;
use calmix_onnx::foreign::encoder_file::EncoderFile;
use calmix_onnx::foreign::feature_output::FeatureOutput;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_testkit::foreign_model::{
    FLOAT, INT64, Parts, SIDE, empty_tensor, external_tensor, integers_attribute, node, port, tensor,
};

/// What reading and, if that succeeds, encoding says.
fn problem(bytes: &[u8]) -> Option<String> {
    let file = |name: &str| match name {
        "short.bin" => Ok(vec![0; 10]),
        _ => Err("No such file".to_owned()),
    };
    let encode = || {
        let model = ForeignModel::read(bytes, &mut { file })?;
        let output = model.choose_output(None, None)?;
        model.encoder(&spec_of(output))
    };
    encode().err().map(|problem| problem.to_string())
}

#[track_caller]
fn is_refused(change: impl FnOnce(&mut Parts), sentence: &str) {
    let mut parts = Parts::sample();
    change(&mut parts);
    let problem = problem(&parts.bytes()).expect("it is refused");
    assert!(problem.contains(sentence), "{problem}");
    assert!(problem.ends_with(|c: char| c.is_alphanumeric() || c == ')'), "{problem}");
}

/// Puts a tensor in the place of `conv.weight`, of 768 bytes.
#[track_caller]
fn weight_is_refused(weight: Message, sentence: &str) {
    is_refused(|parts| parts.initialisers[0] = weight, sentence);
}

#[test]
fn sample_passes() {
    assert_eq!(problem(&Parts::sample().bytes()), None);
}

#[test]
fn other_formats_are_refused() {
    assert!(problem(b"PK\x03\x04 a zip file").unwrap().contains("not an ONNX file, or not all of it: "));
    assert!(problem(b"").unwrap().contains("not an ONNX model: it has no graph"));
    let bytes = Parts::sample().bytes();
    let cut = problem(&bytes[..bytes.len() / 2]).unwrap();
    assert!(cut.contains("a field ends after the end of the data at byte 5"), "{cut}");
    assert!(cut.ends_with("Download or export the model again"), "{cut}");
}

#[test]
fn versions_and_other_operators_are_refused() {
    is_refused(
        |parts| parts.opsets[0].1 = 12,
        "opset 12; calmix reads opset 13 and later. Export the model again with torch.onnx.export(..., opset_version=17)",
    );
    is_refused(|parts| parts.opsets.clear(), "are of no known opset");
    let mut gelu = node("FastGelu", &["map"], &["gelu"], &[]);
    gelu.text(7, "com.microsoft");
    gelu.text(3, "layers.0/\u{1b}[2J");
    is_refused(
        |parts| parts.nodes.push(gelu),
        "the node `layers.0/\\u{1b}[2J` (FastGelu) is an operator of the domain `com.microsoft`; calmix reads only standard operators. Export",
    );
    let mut function = Message::default();
    function.text(1, "Attention");
    is_refused(|parts| parts.model.push((25, function)), "defines the function `Attention`");
    is_refused(
        |parts| parts.model.push((20, Message::default())),
        "contains information for training. Export",
    );
    is_refused(
        |parts| parts.model.push((7, Message::default())),
        "more than 1 graph, the most that calmix reads",
    );
}

#[test]
fn graphs_and_sparse_tensors_are_refused() {
    let mut branch = Message::default();
    branch.text(1, "then_branch");
    branch.message(6, &Message::default());
    // Even if it calls itself an integer.
    branch.integer(20, 2);
    is_refused(
        |parts| parts.nodes.push(node("If", &["map"], &["x"], &[branch])),
        "the node 6 (If) contains a graph of its own; calmix reads models without branches and loops. Export",
    );
    let mut sparse = Message::default();
    sparse.text(1, "sparse_value");
    sparse.message(22, &Message::default());
    sparse.integer(20, 11);
    is_refused(
        |parts| parts.nodes.push(node("Constant", &[], &["x"], &[sparse])),
        "the node 6 (Constant) is sparse",
    );
    is_refused(|parts| parts.graph.push((15, Message::default())), "an initialiser is sparse");
    let mut reference = integers_attribute("perm", &[0]);
    reference.text(21, "outer");
    is_refused(
        |parts| parts.nodes.push(node("Transpose", &["map"], &["x"], &[reference])),
        "the attribute `perm` of the node 6 (Transpose) refers to an attribute of a function. Export",
    );
    let mut unknown = Message::default();
    unknown.text(1, "value");
    unknown.integer(20, 99);
    is_refused(
        |parts| parts.nodes.push(node("Constant", &[], &["x"], &[unknown])),
        "has an unsupported type",
    );
}

#[test]
fn tensors_without_their_numbers_are_refused() {
    let shape = [4, 3, 4, 4];
    let weight = |bytes: usize| tensor("conv.weight", &shape, FLOAT, &vec![0; bytes]);
    weight_is_refused(
        weight(764),
        "the tensor `conv.weight` has 764 bytes, but its shape requires 768. Download",
    );
    weight_is_refused(weight(772), "has 772 bytes");
    weight_is_refused(empty_tensor("conv.weight", &shape, FLOAT), "has no data. Export");
    weight_is_refused(
        empty_tensor("conv.weight", &shape, 8),
        "has numbers of type 8, which calmix does not read",
    );
    weight_is_refused(tensor("conv.weight", &[1 << 32, 1 << 32, 3], FLOAT, &[]), "has an invalid shape");
    weight_is_refused(tensor("conv.weight", &[-1], FLOAT, &[]), "has an invalid shape");
    weight_is_refused(tensor("conv.weight", &[1; 17], FLOAT, &[0; 4]), "has more than 16 dimensions");
    weight_is_refused(
        tensor("conv.weight", &[1 << 30], FLOAT, &[]),
        "its weights have more than 2,000,000,000 bytes",
    );
    let mut twice = weight(768);
    twice.float(4, 1.0);
    weight_is_refused(twice, "has its data twice");
    let mut typed = empty_tensor("conv.weight", &[2], FLOAT);
    typed.float(4, 1.0);
    weight_is_refused(typed, "has 4 bytes, but its shape requires 8");
    let mut typed = empty_tensor("conv.weight", &[2], FLOAT);
    (0..1_000).for_each(|_| typed.float(4, 1.0));
    weight_is_refused(typed, "has 12 bytes, but its shape requires 8");
    let mut other = empty_tensor("conv.weight", &[2], FLOAT);
    other.integer(7, 1);
    weight_is_refused(other, "has its data twice");
    let mut large = empty_tensor("conv.weight", &[1], 2);
    large.integer(5, 256);
    weight_is_refused(large, "has a number outside the range of its type");
}

#[test]
fn files_beside_the_model_are_confined() {
    let beside = |entries: &[(&str, &str)]| external_tensor("conv.weight", &[4, 3, 4, 4], FLOAT, entries);
    for location in ["/etc/passwd", "../model.bin", "a/b.bin", "a\\b.bin", "", "..", "C:x", "a\0b"] {
        let entries = [("location", location)];
        weight_is_refused(beside(&entries), "calmix reads files beside the model only. Save the model again");
    }
    weight_is_refused(
        beside(&[("location", "no.bin")]),
        "the data of the tensor `conv.weight` are in the file `no.bin`, which cannot be read: No such file. Put it beside the model",
    );
    weight_is_refused(
        beside(&[("location", "short.bin")]),
        "which has 10 bytes, but the data end at byte 768",
    );
    let far = [("location", "short.bin"), ("offset", "18446744073709551615")];
    weight_is_refused(beside(&far), "the data end at byte 18446744073709551615");
    weight_is_refused(
        beside(&[("location", "short.bin"), ("offset", "-1")]),
        "offset is missing or not a number",
    );
    let other = [("location", "short.bin"), ("length", "8")];
    weight_is_refused(beside(&other), "declares 8 bytes for a shape of 768");
}

/// Files of a few bytes that would fill memory.
#[test]
fn memory_bombs_are_refused() {
    let sizes = |numbers: &[i64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        tensor("sizes", &[numbers.len().cast_signed() as i64], INT64, &bytes)
    };
    let bomb = |operator: &str, inputs: &[&str], numbers: &[i64]| {
        let node = node(operator, inputs, &["bomb"], &[]);
        is_refused(
            |parts| {
                parts.initialisers.push(sizes(numbers));
                parts.nodes.push(node);
            },
            "would make a tensor of more than 268,435,456 numbers. Export the model again with the image size",
        );
    };
    bomb("ConstantOfShape", &["sizes"], &[1 << 15, 1 << 15]);
    bomb("Expand", &["classifier", "sizes"], &[1 << 40, 1]);
    bomb("Tile", &["classifier", "sizes"], &[1, 1 << 25]);
    bomb("Resize", &["map", "", "", "sizes"], &[1, 3, 100_000, 100_000]);
    bomb("Pad", &["map", "sizes"], &[0, 0, 20_000, 20_000, 0, 0, 0, 0]);
    bomb("OneHot", &["token.shape", "sizes", "sizes"], &[1 << 30]);
    let value = |number: i64| {
        let mut value = Message::default();
        value.text(1, "value_int");
        value.integer(3, number);
        value.integer(20, 2);
        value
    };
    is_refused(
        |parts| {
            for (name, number) in [("start", 0), ("limit", 1 << 40), ("step", 8)] {
                parts.nodes.push(node("Constant", &[], &[name], &[value(number)]));
            }
            parts.nodes.push(node("Range", &["start", "limit", "step"], &["bomb"], &[]));
        },
        "the node 9 (Range) would make",
    );
    let pads = integers_attribute("pads", &[1 << 15; 4]);
    is_refused(
        |parts| parts.nodes.push(node("Conv", &["map", "conv.weight"], &["bomb"], &[pads])),
        "the node 6 (Conv) would make",
    );
}

#[test]
fn names_and_order_are_checked() {
    is_refused(
        |parts| parts.nodes.swap(0, 1),
        "the node 0 (Reshape) reads `map`, which nothing before it computes",
    );
    let again = node("Relu", &["map"], &["map"], &[]);
    is_refused(|parts| parts.nodes.push(again), "two values are called `map`; the standard allows one");
    is_refused(|parts| parts.initialisers.push(parts.initialisers[0].clone()), "are called `conv.weight`");
    let long = "x".repeat(1_001);
    is_refused(
        |parts| parts.nodes.push(node("Relu", &["map"], &[&long], &[])),
        "a name begins with `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` and is 1,001 bytes long",
    );
    let output = port("nothing", FLOAT, &[None, Some(4)]);
    is_refused(|parts| parts.outputs.push(output), "`nothing` (float32, ? × 4) is computed by no node");
}

#[test]
fn counts_are_limited() {
    let relu = node("Relu", &["map"], &[""], &[]);
    is_refused(
        |parts| parts.nodes.resize(100_001, relu),
        "more than 100,000 nodes, the most that calmix reads",
    );
    let none = tensor("", &[0], FLOAT, &[]);
    is_refused(|parts| parts.initialisers.resize(100_001, none), "more than 100,000 initialisers");
    let many = vec![""; 1_000_001];
    is_refused(|parts| parts.nodes.push(node("Sum", &many, &["x"], &[])), "more than 1,000,000 edges");
    let list = integers_attribute("axes", &vec![0; (1 << 20) + 1]);
    is_refused(
        |parts| parts.nodes.push(node("Sum", &[], &["x"], &[list])),
        "more than 1,048,576 attribute values",
    );
}

/// Two hundred files with a few changed bytes, and every truncation, of a model and of an encoder. An error or a model, no panic.
#[test]
fn damaged_files_are_errors_or_models() {
    let model = Parts::sample().bytes();
    let read = ForeignModel::read(&model, &mut |_| Err(String::new())).unwrap();
    let output = read.choose_output(None, None).unwrap();
    let encoder = read.encoder(&spec_of(output)).unwrap().bytes;
    let mut stream = Seed(5).stream(Domain::Init, 0, 0);
    let mut refused = 0;
    for file in [&model, &encoder] {
        for _ in 0..200 {
            let mut damaged = file.clone();
            for _ in 0..4 {
                let place = (stream.uniform() * damaged.len() as f64) as usize;
                damaged[place] = (stream.uniform() * 256.0) as u8;
            }
            refused += usize::from(problem(&damaged).is_some());
            let _ = EncoderFile::read(&damaged);
        }
        // What stands last can be missing: another imported domain, metadata.
        for end in 0..file.len() - 30 {
            assert!(problem(&file[..end]).is_some());
            assert!(EncoderFile::read(&file[..end]).is_err());
        }
    }
    // Most of the bytes are numbers of weights, any of which pass, but those of an encoder are not a foreign model.
    assert!((200..400).contains(&refused), "{refused}");
}

fn spec_of(output: FeatureOutput) -> EncoderSpec {
    let FeatureOutput { name, pooling, .. } = output;
    EncoderSpec { size: SIDE, mean: [0.5; 3], std: [0.25; 3], output: name, pooling }
}
