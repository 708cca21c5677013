//! Foreign models: what is read, what is chosen, what an encoder contains.

use calmix_io::protobuf::Message;
use calmix_onnx::foreign::ForeignModel;
use calmix_onnx::foreign::encoder_file::EncoderFile;
use calmix_onnx::foreign::feature_output::FeatureOutput;
use calmix_onnx::foreign::image_input::ImageLayout;
use calmix_onnx::foreign::problem::ForeignProblem;
use calmix_onnx::tensor::ElementType;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::network::Pooling;
use calmix_testkit::foreign_model::{
    Contents, FLOAT, INT64, Parts, SIDE, empty_tensor, external_tensor, node, port,
};

fn read(bytes: &[u8]) -> Result<ForeignModel<'_>, ForeignProblem> {
    ForeignModel::read(bytes, &mut |name| Err(format!("there is no {name}")))
}

fn encoder(bytes: &[u8], output: Option<&str>, pooling: Option<Pooling>) -> Result<Vec<u8>, ForeignProblem> {
    let model = read(bytes)?;
    let output = model.choose_output(output, pooling)?;
    Ok(model.encoder(&spec_of(output))?.bytes)
}

fn spec_of(output: FeatureOutput) -> EncoderSpec {
    let FeatureOutput { name, pooling, .. } = output;
    EncoderSpec { size: SIDE, mean: [0.5; 3], std: [0.25; 3], output: name, pooling }
}

/// Everything has the prefix, the optional input stays empty, and what `logits` and the tokens need is left out.
#[test]
fn encoder_has_prefixed_names_and_only_what_it_needs() {
    let contents = Contents::of(&encoder(&Parts::sample().bytes(), None, None).unwrap());
    let own = |name: &str| format!("encoder/calmix/{name}");
    let expected = [
        format!("Transpose images -> {} [perm]", own("Transpose_0")),
        format!("Cast {} -> {} [to]", own("Transpose_0"), own("Cast_1")),
        format!("Mul {},{} -> {} []", own("Cast_1"), own("pixels.scale"), own("Mul_2")),
        format!("Add {},{} -> {} []", own("Mul_2"), own("pixels.shift"), own("Add_3")),
        format!("Conv {},encoder/conv.weight, -> encoder/map [strides]", own("Add_3")),
        "GlobalAveragePool encoder/map -> encoder/average []".to_owned(),
        "Flatten encoder/average -> encoder/pooler_output []".to_owned(),
        "Identity encoder/pooler_output -> features []".to_owned(),
    ];
    assert_eq!(contents.nodes, expected);
    assert_eq!(
        contents.initialisers,
        [own("pixels.scale"), own("pixels.shift"), "encoder/conv.weight".to_owned()]
    );
    assert_eq!(contents.inputs, ["images"]);
    assert_eq!(contents.outputs, ["features"]);
}

/// Reductions have their axes as an attribute before opset 18, and as an input from then on.
#[test]
fn encoder_keeps_opset_and_version() {
    for (opset, ir_version) in [(13, 7), (17, 8), (18, 8), (20, 10)] {
        let parts = Parts { ir_version, opsets: vec![("ai.onnx", opset)], ..Parts::sample() };
        let contents = Contents::of(&encoder(&parts.bytes(), Some("map"), None).unwrap());
        assert_eq!(contents.opset, opset);
        assert_eq!(contents.ir_version, ir_version.max(8));
        let mean = contents.nodes.iter().find(|node| node.starts_with("ReduceMean")).unwrap();
        let expected = if opset < 18 { "[axes,keepdims]" } else { "[keepdims]" };
        assert!(mean.ends_with(expected), "{mean}");
        assert_eq!(mean.contains("encoder/map,encoder/calmix/axes.2.3 "), opset >= 18, "{mean}");
    }
}

#[test]
fn pooling_follows_from_dimensions() {
    let bytes = Parts::sample().bytes();
    let model = read(&bytes).unwrap();
    let chosen = |name, pooling| {
        let output = model.choose_output(Some(name), pooling).unwrap();
        (output.pooling, output.width)
    };
    let class = Pooling::ClassToken;
    assert_eq!(chosen("pooler_output", None), (Pooling::Vector, Some(4)));
    // Four tokens are those of two by two patches.
    assert_eq!(chosen("last_hidden_state", None), (Pooling::MeanOfTokens, Some(4)));
    assert_eq!(chosen("last_hidden_state", Some(class)), (class, Some(4)));
    assert_eq!(chosen("map", None), (Pooling::MeanOfMap, Some(4)));
    assert_eq!(chosen("logits", None), (Pooling::Vector, Some(10)));
    let refused = |name, pooling| model.choose_output(name, pooling).unwrap_err().to_string();
    assert_eq!(
        refused(Some("map"), Some(Pooling::Vector)),
        "the output `map` (float32, ? × 4 × 2 × 2) has 4 dimensions, but its pooling reads 2. Set network.pooling to another one"
    );
    assert!(refused(Some("nothing"), None).starts_with(
        "it has no output `nothing`; its outputs are `logits` (float32, ? × 10), `last_hidden_state` (float32, ? × 4 × 4), "
    ));
}

#[test]
fn output_is_the_only_one_or_the_best_of_the_usual() {
    let chosen = |kept: &[usize]| {
        let mut parts = Parts::sample();
        parts.outputs = kept.iter().map(|&n| parts.outputs[n].clone()).collect();
        let bytes = parts.bytes();
        read(&bytes).unwrap().choose_output(None, None).map(|output| output.name)
    };
    assert_eq!(chosen(&[0, 1, 2, 3]).unwrap(), "pooler_output");
    assert_eq!(chosen(&[0, 1, 2]).unwrap(), "last_hidden_state");
    assert_eq!(chosen(&[0]).unwrap(), "logits");
    let error = chosen(&[0, 2]).unwrap_err().to_string();
    assert!(error.contains("calmix cannot tell which are the features. Set network.output"), "{error}");
}

#[test]
fn image_input_is_found_in_both_orders() {
    let found = |input: Message| {
        let bytes = Parts { inputs: vec![input], ..Parts::sample() }.bytes();
        read(&bytes).unwrap().image_input()
    };
    let any = None;
    let input = found(port("pixel_values", FLOAT, &[any, Some(3), any, any])).unwrap();
    assert_eq!((input.layout, input.rows, input.side), (ImageLayout::Nchw, None, None));
    let input = found(port("pixel_values", 10, &[Some(1), Some(8), Some(8), Some(3)])).unwrap();
    assert_eq!((input.layout, input.rows, input.side), (ImageLayout::Nhwc, Some(1), Some((8, 8))));
    assert_eq!((input.name.as_str(), input.element), ("pixel_values", ElementType::F16));
    // As optimum exports it.
    let input = found(port("pixel_values", FLOAT, &[any; 4])).unwrap();
    assert_eq!((input.layout, input.rows, input.side), (ImageLayout::Nchw, None, None));
    for (input, sentence) in [
        (
            port("pixel_values", FLOAT, &[any, Some(1), Some(8), Some(8)]),
            "has no dimension of three channels",
        ),
        (port("pixel_values", 2, &[any, Some(3), Some(8), Some(8)]), "is not float32 or float16"),
        (port("pixel_values", FLOAT, &[any, Some(3), Some(8), Some(9)]), "are not square"),
        (port("pixel_values", FLOAT, &[any, Some(3), Some(8), any]), "fixes only one side"),
        (
            port("pixel_values", FLOAT, &[any, Some(8)]),
            "`pixel_values` (float32, ? × 8); an encoder needs exactly one",
        ),
    ] {
        let error = found(input).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
}

/// Another input, as of a text, is refused; an initialiser that is an input too, as in old files, is not.
#[test]
fn other_inputs_are_refused_but_initialisers() {
    let mut parts = Parts::sample();
    parts.inputs.push(port("conv.weight", FLOAT, &[Some(4), Some(3), Some(4), Some(4)]));
    let bytes = parts.bytes();
    assert_eq!(read(&bytes).unwrap().image_input().unwrap().name, "pixel_values");
    parts.inputs.push(port("input_ids", INT64, &[None, None]));
    let bytes = parts.bytes();
    let error = read(&bytes).unwrap().image_input().unwrap_err().to_string();
    assert!(error.contains("`pixel_values` (float32, ? × 3 × 8 × 8), `input_ids` (int64, ? × ?)"), "{error}");
}

/// Numbers in the typed fields, packed or not, are the same as raw bytes.
#[test]
fn typed_numbers_equal_raw_bytes() {
    let expected = encoder(&Parts::sample().bytes(), Some("last_hidden_state"), None).unwrap();
    let mut parts = Parts::sample();
    let mut shape = empty_tensor("token.shape", &[3], INT64);
    for size in [0, 4, 4] {
        shape.integer(7, size);
    }
    let mut weight = empty_tensor("conv.weight", &[4, 3, 4, 4], FLOAT);
    weight.bytes(4, &(0..192).flat_map(|n| (n as f32 / 100.0).to_le_bytes()).collect::<Vec<_>>());
    parts.initialisers[0] = weight;
    parts.initialisers[1] = shape;
    assert_eq!(encoder(&parts.bytes(), Some("last_hidden_state"), None).unwrap(), expected);
    let mut packed = empty_tensor("token.shape", &[3], INT64);
    packed.bytes(7, &[0, 4, 4]);
    parts.initialisers[1] = packed;
    assert_eq!(encoder(&parts.bytes(), Some("last_hidden_state"), None).unwrap(), expected);
}

/// Both tensors are in one file, which is read once, and are inlined.
#[test]
fn external_data_are_inlined() {
    let expected =
        encoder(&Parts::sample().bytes(), Some("last_hidden_state"), Some(Pooling::ClassToken)).unwrap();
    let mut parts = Parts::sample();
    let mut file: Vec<u8> = vec![9; 16];
    file.extend((0..192).flat_map(|n| (n as f32 / 100.0).to_le_bytes()));
    file.extend([0, 4, 4].map(i64::to_le_bytes).concat());
    let weights = [("location", "model.onnx_data"), ("offset", "16"), ("length", "768")];
    parts.initialisers[0] = external_tensor("conv.weight", &[4, 3, 4, 4], FLOAT, &weights);
    let shape = [("location", "model.onnx_data"), ("offset", "784"), ("checksum", "?")];
    parts.initialisers[1] = external_tensor("token.shape", &[3], INT64, &shape);
    let bytes = parts.bytes();
    let mut reads = Vec::new();
    let model = ForeignModel::read(&bytes, &mut |name| {
        reads.push(name.to_owned());
        Ok(file.clone())
    })
    .unwrap();
    let output = model.choose_output(Some("last_hidden_state"), Some(Pooling::ClassToken)).unwrap();
    let spec = spec_of(output);
    assert_eq!(model.encoder(&spec).unwrap().bytes, expected);
    assert_eq!(reads, ["model.onnx_data"]);
}

#[test]
fn tensors_of_constants_are_inlined_too() {
    let mut parts = Parts::sample();
    let mut value = Message::default();
    value.text(1, "value");
    let entries = [("location", "constants.bin")];
    value.message(5, &external_tensor("", &[3], INT64, &entries));
    value.integer(20, 4);
    parts.initialisers.remove(1);
    parts.nodes.insert(0, node("Constant", &[], &["token.shape"], &[value]));
    let bytes = parts.bytes();
    let model = ForeignModel::read(&bytes, &mut |_| Ok([0, 4, 4].map(i64::to_le_bytes).concat())).unwrap();
    let output = model.choose_output(Some("last_hidden_state"), Some(Pooling::ClassToken)).unwrap();
    let spec = spec_of(output);
    let bytes = model.encoder(&spec).unwrap().bytes;
    assert!(Contents::of(&bytes).nodes.contains(&"Constant  -> encoder/token.shape [value]".to_owned()));
    // It needs no other file.
    assert!(EncoderFile::read(&bytes).is_ok());
}

#[test]
fn encoder_file_reads_back() {
    let bytes = encoder(&Parts::sample().bytes(), None, None).unwrap();
    let file = EncoderFile::read(&bytes).unwrap();
    assert_eq!((file.side(), file.width(), file.rows()), (SIDE, Some(4), None));
    let mut parts = Parts::sample();
    parts.inputs = vec![port("pixel_values", FLOAT, &[Some(2), Some(3), None, None])];
    parts.outputs = vec![port("pooler_output", FLOAT, &[None, None])];
    let bytes = encoder(&parts.bytes(), None, None).unwrap();
    let file = EncoderFile::read(&bytes).unwrap();
    assert_eq!((file.side(), file.width(), file.rows()), (SIDE, None, Some(2)));
}

/// What comes back from a folder may have been replaced by any other model.
#[test]
fn other_files_are_not_encoders() {
    let refused = |parts: &Parts| EncoderFile::read(&parts.bytes()).unwrap_err().to_string();
    let mut parts = Parts::sample();
    assert!(refused(&parts).contains("it does not have one output"), "{}", refused(&parts));
    let any = None;
    parts.outputs = vec![port("features", FLOAT, &[any, Some(4)])];
    parts.inputs = vec![port("images", 2, &[any, Some(8), Some(8), Some(3)])];
    parts.nodes = vec![node("Flatten", &["images"], &["features"], &[])];
    assert!(refused(&parts).contains("its names are not those of an encoder"), "{}", refused(&parts));
    parts.initialisers.clear();
    assert!(EncoderFile::read(&parts.bytes()).is_ok());
    parts.inputs = vec![port("images", 2, &[any, any, any, Some(3)])];
    assert!(refused(&parts).contains("does not declare the size"), "{}", refused(&parts));
    parts.inputs = vec![port("images", 2, &[Some(1), Some(8), Some(8), Some(3)])];
    assert!(refused(&parts).contains("one vector per image"), "{}", refused(&parts));
    parts.inputs = vec![port("images", FLOAT, &[any, Some(8), Some(8), Some(3)])];
    assert!(refused(&parts).contains("its input is not images"), "{}", refused(&parts));
    parts.initialisers = vec![external_tensor("encoder/x", &[1], FLOAT, &[("location", "passwords")])];
    assert!(refused(&parts).contains("this file must hold all of its data"), "{}", refused(&parts));
}

#[test]
fn sizes_and_normalisation_are_checked() {
    let bytes = Parts::sample().bytes();
    let model = read(&bytes).unwrap();
    let output = model.choose_output(None, None).unwrap();
    let spec = spec_of(output);
    let refused = |spec: EncoderSpec| model.encoder(&spec).unwrap_err().to_string();
    assert_eq!(
        refused(EncoderSpec { size: 9, ..spec.clone() }),
        "the input `pixel_values` takes images of 8 × 8 pixels, not of 9 × 9. Set augment.size = 8"
    );
    assert!(
        refused(EncoderSpec { std: [0.0; 3], ..spec.clone() }).contains("Set dataset.mean and dataset.std")
    );
    let mut parts = Parts::sample();
    parts.nodes[3] = node("GlobalAveragePool", &["map"], &["calmix/x"], &[]);
    parts.nodes[4] = node("Flatten", &["calmix/x"], &["pooler_output"], &[]);
    assert!(matches!(encoder(&parts.bytes(), None, None), Err(ForeignProblem::DuplicateName { .. })));
}
