//! Files of weights that are refused, in which words, and that nothing has changed then.

use calmix_core::pseudo::Base;
use calmix_engine::engine::{Engine, EngineSnapshot, Settings, Weights};
use calmix_engine::predictor::Predictor;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::methods::plain;
use crate::run::{Rows, Run, settings};

/// A tensor as it stands in a file.
#[derive(Debug, Clone)]
struct Raw {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn unpack(file: &[u8]) -> Vec<Raw> {
    let file = SafeTensors::deserialize(file).expect("a file of ours");
    let raw = |(name, tensor): (&str, TensorView<'_>)| Raw {
        name: name.to_owned(),
        dtype: tensor.dtype(),
        shape: tensor.shape().to_vec(),
        bytes: tensor.data().to_vec(),
    };
    file.iter().map(raw).collect()
}

fn pack(tensors: &[Raw]) -> Vec<u8> {
    let views = tensors.iter().map(|raw| {
        let view = TensorView::new(raw.dtype, raw.shape.clone(), &raw.bytes);
        (raw.name.clone(), view.expect("as long as it says"))
    });
    safetensors::serialize(views, None).expect("a file")
}

/// An engine after some steps, and an earlier snapshot of it.
fn engine() -> (Engine, EngineSnapshot) {
    calmix_engine::device::set_threads(1);
    let mut run = Run::new(settings(4), plain(Base::Supervised), Rows { labelled: 4, unlabelled: 0 });
    run.steps(1);
    let earlier = run.engine.snapshot().expect("a snapshot");
    run.steps(1);
    (run.engine, earlier)
}

/// What is said to a snapshot one of whose files was tampered with.
fn refused(tamper: impl Fn(&mut EngineSnapshot)) -> String {
    let (mut engine, mut snapshot) = engine();
    tamper(&mut snapshot);
    let before = engine.snapshot().expect("a snapshot");
    let error = engine.restore(&snapshot).expect_err("refused");
    assert!(engine.snapshot().expect("a snapshot") == before, "something changed: {error}");
    error.to_string()
}

/// Likewise, of the tensors of the trained weights.
fn refused_tensors(tamper: impl Fn(&mut Vec<Raw>)) -> String {
    refused(|snapshot| {
        let mut tensors = unpack(&snapshot.weights);
        tamper(&mut tensors);
        snapshot.weights = pack(&tensors);
    })
}

fn named<'a>(tensors: &'a mut [Raw], name: &str) -> &'a mut Raw {
    tensors.iter_mut().find(|raw| raw.name == name).expect("a tensor")
}

#[test]
fn weights_need_exactly_the_network_tensors() {
    let wrong = "these are not the weights of this network:";
    let said = refused_tensors(|tensors| tensors.retain(|raw| raw.name != "fc.bias"));
    assert_eq!(said, format!("{wrong} missing `fc.bias`"));
    let said = refused_tensors(|tensors| tensors.retain(|raw| raw.name != "bn1.num_batches_tracked"));
    assert_eq!(said, format!("{wrong} missing `bn1.num_batches_tracked`"));
    let said = refused_tensors(|tensors| {
        let extra = Raw { name: "fc2.bias".to_owned(), ..named(tensors, "fc.bias").clone() };
        tensors.push(extra);
    });
    assert_eq!(said, format!("{wrong} unexpected `fc2.bias`"));
    let said = refused_tensors(|tensors| {
        for name in ["fc.bias", "fc.weight"] {
            named(tensors, name).name = format!("module.{name}");
        }
    });
    assert_eq!(
        said,
        format!("{wrong} missing 2 tensors such as `fc.bias`, unexpected 2 tensors such as `module.fc.bias`")
    );
    // Momentum has no statistics, so weights are not momentum and momentum is not a weights.
    let said = refused(|snapshot| snapshot.momentum.clone_from(&snapshot.weights));
    assert!(said.starts_with(&format!("{wrong} unexpected 21 tensors such as")), "{said}");
    let said = refused(|snapshot| snapshot.ema.clone_from(&snapshot.momentum));
    assert!(said.starts_with(&format!("{wrong} missing 21 tensors such as")), "{said}");
}

#[test]
fn weights_need_the_right_shape_and_type() {
    let said = refused_tensors(|tensors| named(tensors, "fc.weight").shape.reverse());
    assert_eq!(said, "`fc.weight` has the shape [64, 4], but the network needs [4, 64]");
    let said = refused_tensors(|tensors| {
        let bias = named(tensors, "fc.bias");
        (bias.dtype, bias.shape) = (Dtype::F16, vec![8]);
    });
    assert_eq!(said, "`fc.bias` is F16, but must be F32");
    let said = refused_tensors(|tensors| {
        let tracked = named(tensors, "bn1.num_batches_tracked");
        (tracked.dtype, tracked.bytes) = (Dtype::F32, vec![0; 4]);
    });
    assert_eq!(said, "`bn1.num_batches_tracked` is F32, but must be I64");
    let said = refused_tensors(|tensors| named(tensors, "bn1.num_batches_tracked").shape = vec![1]);
    assert_eq!(said, "`bn1.num_batches_tracked` has the shape [1], but the network needs []");
}

#[test]
fn weights_must_be_finite() {
    for (name, place) in [("block2.layer.0.conv1.weight", 17), ("fc.bias", 3), ("bn1.running_var", 0)] {
        for number in [f32::NAN, f32::INFINITY] {
            let said = refused_tensors(|tensors| {
                named(tensors, name).bytes[4 * place..4 * place + 4].copy_from_slice(&number.to_le_bytes());
            });
            assert_eq!(said, format!("`{name}` has a non-finite number at position {place}"));
        }
    }
}

#[test]
fn weights_file_must_be_complete() {
    let (_, snapshot) = engine();
    for length in [0, 7, 8, 100, snapshot.weights.len() / 2, snapshot.weights.len() - 1] {
        let said = refused(|snapshot| snapshot.weights.truncate(length));
        assert!(said.starts_with("not a safetensors file: "), "{length}: {said}");
    }
    let said = refused(|snapshot| snapshot.weights = b"PK\x03\x04 a pickle in a zip file".to_vec());
    assert!(said.starts_with("not a safetensors file: "), "{said}");
    let said = refused(|snapshot| snapshot.momentum.push(0));
    assert!(said.starts_with("not a safetensors file: "), "{said}");
}

#[test]
fn weights_may_be_in_any_order() {
    let (mut engine, snapshot) = engine();
    let mut tensors = unpack(&snapshot.weights);
    tensors.reverse();
    let weights = pack(&tensors);
    engine.restore(&EngineSnapshot { weights, ..snapshot.clone() }).expect("its own weights");
    assert!(engine.snapshot().expect("a snapshot") == snapshot);
}

/// Alone, among others, first or last, from the engine or from its file: the same bits.
#[test]
fn an_image_has_the_same_outputs_whatever_its_neighbours() {
    let (engine, _) = engine();
    let &Settings { model, classes, device, .. } = engine.settings();
    let each = model.image_bytes();
    let rows = 150;
    let pixels: Vec<u8> = (0..rows * each).map(|i| (i * i % 251) as u8).collect();
    let whole = engine.predict(&pixels, Weights::Ema).expect("outputs");
    let file = engine.snapshot().expect("a snapshot").ema;
    let predictor = Predictor::new(model, classes, device, &file).expect("the weights of this network");
    assert_eq!(predictor.predict(&pixels).expect("outputs"), whole);
    let (from, to) = (70, 90);
    for (before, after) in [(0, 0), (1, 0), (0, 30), (70, 60), (3, 41)] {
        let some = &pixels[(from - before) * each..(to + after) * each];
        let logits = predictor.predict(some).expect("outputs").logits;
        assert_eq!(
            logits[before * classes..(before + to - from) * classes],
            whole.logits[from * classes..to * classes],
            "{before} before and {after} after"
        );
    }
    assert!(predictor.predict(&pixels[1..]).is_err());
    assert!(Predictor::new(model, 5, device, &file).is_err());
}
