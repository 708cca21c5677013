//! The number format of convolutions and activations.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::OrAuto;
use crate::field::{Kind, SettingType, Shape, Word};

/// The precision of convolutions and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits everywhere.
    F32,
    /// bfloat16: the range of f32, so gradients need no scaling.
    Bf16,
    /// IEEE half precision with a scaled loss, for GPUs without bfloat16.
    F16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        })
    }
}

impl SettingType for OrAuto<Precision> {
    fn shape() -> Shape {
        const _: fn(Precision) = |every| match every {
            Precision::F32 | Precision::Bf16 | Precision::F16 => (),
        };
        Shape::Value(Kind::Enum(&[
            Word { word: "auto", doc: &["The fastest format that the device supports in hardware."] },
            Word { word: "f32", doc: &["Single precision."] },
            Word { word: "bf16", doc: &["bfloat16: half precision with the range of single precision."] },
            Word { word: "f16", doc: &["Half precision with a scaled loss, as in the released code."] },
        ]))
    }
}
