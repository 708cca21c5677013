//! The outputs of a network, fetched from the device.

/// Logits and features of some images, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outputs {
    /// C numbers per row.
    pub logits: Vec<f32>,
    /// D numbers per row.
    pub features: Vec<f32>,
}
