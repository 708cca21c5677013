//! Probabilities that two runtimes compute of the same network.

/// How far the probabilities of a network may be apart: one of them by libtorch, which trains it, the other by ONNX Runtime,
/// which runs it.
const APART: f32 = 1e-5;

/// Compares the probabilities of an image.
#[track_caller]
pub(crate) fn assert_near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= APART, "{what}: {found} instead of {expected}");
    }
}
