//! Tensors by name, and how far two sets of them are apart.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// The numbers of each tensor of a safetensors file. What is not f32 is left out.
pub(crate) type Tensors = BTreeMap<String, Vec<f32>>;

pub(crate) fn read(file: &[u8]) -> Tensors {
    let file = SafeTensors::deserialize(file).expect("a safetensors file");
    let numbers = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    file.iter()
        .filter(|(_, tensor)| tensor.dtype() == Dtype::F32)
        .map(|(name, tensor)| (name.to_owned(), numbers(tensor.data())))
        .collect()
}

/// The whole numbers of a safetensors file: how many batches each BatchNorm has seen.
pub(crate) fn counts(file: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let file = SafeTensors::deserialize(file).expect("a safetensors file");
    let whole = file.iter().filter(|(_, tensor)| tensor.dtype() == Dtype::I64);
    whole.map(|(name, tensor)| (name.to_owned(), tensor.data().to_vec())).collect()
}

/// The Euclidean norm.
pub(crate) fn norm<'a>(numbers: impl IntoIterator<Item = &'a f32>) -> f64 {
    numbers.into_iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

/// The norm of the difference.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// The tensor with the largest difference, relative to its own norm.
///
/// If a tensor is smaller than `floor` times the root mean square of all of them, its difference is relative to that
/// product instead. For example, the exact gradient of a bias before a BatchNorm is zero, and the computed one is
/// rounding error.
pub(crate) fn furthest(got: &Tensors, wanted: &Tensors, floor: f64) -> (f64, String) {
    let names = |tensors: &Tensors| tensors.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(got), names(wanted));
    let count: usize = wanted.values().map(Vec::len).sum();
    let typical = norm(wanted.values().flatten()) / (count as f64).sqrt();
    let apart = wanted.iter().map(|(name, wanted)| {
        let least = floor * typical * (wanted.len() as f64).sqrt();
        let apart = distance(&got[name], wanted) / norm(wanted).max(least).max(f64::MIN_POSITIVE);
        (apart, name.clone())
    });
    apart.max_by(|a, b| a.0.total_cmp(&b.0)).expect("a tensor")
}
