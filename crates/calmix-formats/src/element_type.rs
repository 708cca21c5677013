//! The element types of vectors.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of a stored value, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElementType {
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl ElementType {
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Appends the values stored in `bytes`; trailing bytes of an incomplete value are ignored.
    pub fn append(self, bytes: &[u8], to: &mut Vec<f32>) {
        match self {
            Self::F16 => append_halves(bytes, f16::from_le_bytes, to),
            Self::Bf16 => append_halves(bytes, bf16::from_le_bytes, to),
            Self::F32 => to.extend(bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number))),
            Self::F64 => {
                let numbers = bytes.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number) as f32);
                to.extend(numbers);
            }
        }
    }
}

fn append_halves<H>(bytes: &[u8], half: fn([u8; 2]) -> H, to: &mut Vec<f32>)
where
    [H]: HalfFloatSliceExt,
{
    let halves: Vec<H> = bytes.as_chunks().0.iter().map(|number| half(*number)).collect();
    let first = to.len();
    to.resize(first + halves.len(), 0.0);
    halves.convert_to_f32_slice(&mut to[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_number_is_read() {
        let numbers = [0.5_f32, -2.0, 0.0, 96.0];
        let stored = [
            (ElementType::F16, numbers.map(|n| f16::from_f32(n).to_le_bytes()).concat()),
            (ElementType::Bf16, numbers.map(|n| bf16::from_f32(n).to_le_bytes()).concat()),
            (ElementType::F32, numbers.map(f32::to_le_bytes).concat()),
            (ElementType::F64, numbers.map(|n| f64::from(n).to_le_bytes()).concat()),
        ];
        for (number, bytes) in stored {
            assert_eq!(bytes.len(), 4 * number.bytes());
            let mut read = vec![7.0];
            number.append(&bytes, &mut read);
            assert_eq!(read, [7.0, 0.5, -2.0, 0.0, 96.0], "{number:?}");
        }
    }
}
