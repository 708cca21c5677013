//! What a group asks the owners of its samples, and what they reply: as values, and as the bytes that travel.

use calmix_core::matrix::Matrix;
use calmix_core::samples::{LocalState, SampleState, StateError};

/// What a group asks the owners of its samples: the rows of it that are here.
pub(super) enum Question {
    /// Margins of labelled rows; their AUM comes back.
    Labelled(Vec<u64>, Vec<f64>),
    /// Logits and pseudo-labels of unlabelled rows; their APM comes back.
    Unlabelled(Vec<u64>, Vec<f32>, Vec<u32>),
    /// New labels of FlexMatch; the old ones come back.
    Selected(Vec<u64>, Vec<Option<u32>>),
    /// Numbers to be added up over all groups.
    Sums(Vec<f64>),
}

/// What comes back, row by row.
#[derive(Debug)]
pub(super) enum Answer {
    Margins(Vec<f64>),
    Labels(Vec<Option<u32>>),
    Sums(Vec<f64>),
}

/// Rows that one state takes in.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken {
    pub(super) ids: Vec<u64>,
    pub(super) rows: Vec<u8>,
}

/// Kinds of questions about rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Labelled,
    Unlabelled,
    Selected,
    Sums,
}

impl Kind {
    /// Bytes of a row, its sample not counted.
    pub(super) fn width(self, classes: usize) -> usize {
        match self {
            Self::Labelled | Self::Sums => 8,
            Self::Unlabelled => 4 * (classes + 1),
            Self::Selected => 4,
        }
    }

    /// Bytes of a reply to a row.
    pub(super) fn reply(self) -> usize {
        match self {
            Self::Labelled | Self::Unlabelled | Self::Sums => 8,
            Self::Selected => 4,
        }
    }

    /// What a state replies to rows: the bits of each reply.
    pub(super) fn visit(
        self,
        state: &mut LocalState,
        taken: &Taken,
        width: usize,
    ) -> Result<Vec<u64>, StateError> {
        if taken.ids.is_empty() {
            return Ok(Vec::new());
        }
        let bits = |margins: Vec<f64>| margins.into_iter().map(f64::to_bits).collect();
        match self {
            Self::Labelled => {
                let margins: Vec<f64> = numbers(&taken.rows, f64::from_le_bytes).collect();
                state.visit_labelled(&taken.ids, &margins).map(bits)
            }
            Self::Unlabelled => {
                let classes = (width / 4).saturating_sub(1);
                let (mut logits, mut pseudo) = (Vec::new(), Vec::new());
                for row in taken.rows.chunks_exact(width.max(1)) {
                    let (row, label) = row.split_at(4 * classes);
                    logits.extend(numbers(row, f32::from_le_bytes));
                    pseudo.extend(numbers(label, u32::from_le_bytes));
                }
                let logits = Matrix::new(&logits, taken.ids.len(), classes);
                let logits = logits.map_err(|_| lost("rows of different widths"))?;
                state.visit_unlabelled(&taken.ids, logits, &pseudo).map(bits)
            }
            Self::Selected => {
                let labels: Vec<Option<u32>> = numbers(&taken.rows, u32::from_le_bytes).map(label).collect();
                let before = state.remember_selected(&taken.ids, &labels)?;
                Ok(before.into_iter().map(|label| u64::from(label.unwrap_or(NONE))).collect())
            }
            Self::Sums => Err(lost("sums are not asked of owners")),
        }
    }

    pub(super) fn read(self, replies: &[u8]) -> Answer {
        match self {
            Self::Labelled | Self::Unlabelled | Self::Sums => {
                Answer::Margins(numbers(replies, f64::from_le_bytes).collect())
            }
            Self::Selected => Answer::Labels(numbers(replies, u32::from_le_bytes).map(label).collect()),
        }
    }
}

/// No label.
const NONE: u32 = u32::MAX;

fn label(number: u32) -> Option<u32> {
    Some(number).filter(|&label| label != NONE)
}

impl Question {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Labelled(..) => Kind::Labelled,
            Self::Unlabelled(..) => Kind::Unlabelled,
            Self::Selected(..) => Kind::Selected,
            Self::Sums(_) => Kind::Sums,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Labelled(ids, _) | Self::Unlabelled(ids, ..) | Self::Selected(ids, _) => ids.len(),
            Self::Sums(_) => 0,
        }
    }

    /// Each row as a sample and bytes.
    pub(super) fn rows(&self, mut each: impl FnMut(u64, &[u8])) {
        match self {
            Self::Labelled(ids, margins) => {
                ids.iter().zip(margins).for_each(|(&id, margin)| each(id, &margin.to_le_bytes()));
            }
            Self::Unlabelled(ids, logits, pseudo) => {
                let classes = logits.len() / ids.len().max(1);
                let rows = logits.chunks_exact(classes.max(1));
                for ((&id, row), pseudo) in ids.iter().zip(rows).zip(pseudo) {
                    let mut bytes: Vec<u8> = row.iter().flat_map(|logit| logit.to_le_bytes()).collect();
                    bytes.extend_from_slice(&pseudo.to_le_bytes());
                    each(id, &bytes);
                }
            }
            Self::Selected(ids, labels) => {
                for (&id, label) in ids.iter().zip(labels) {
                    each(id, &label.unwrap_or(NONE).to_le_bytes());
                }
            }
            Self::Sums(_) => {}
        }
    }
}

/// Little-endian numbers.
pub(super) fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks().0.iter().map(move |chunk| read(*chunk))
}

/// What cannot be, unless a process is not what it says.
pub(super) fn lost(what: &'static str) -> StateError {
    StateError::Damaged { what }
}
