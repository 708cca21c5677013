//! Whether new samples are like those that a guarantee was shown for.
//!
//! A model keeps a small [`Reference`]: features of unlabelled samples that its projection was fitted
//! without, and the logits of its held-out labels. Of a batch of new samples, only [`BatchSums`] are kept, which
//! do not depend on the order of the rows. A [`ShiftDetector`] compares both:
//!
//! | question | test |
//! |---|---|
//! | are the samples unlike those of training? | Hotelling's T² of the mean features against the unlabelled samples, outside the span of the class means |
//! | does the mix of classes differ? | the mean of the calibrated probabilities against that of the held-out labels |
//!
//! [`ClassShares`] estimates the mix of new samples. A [`ShiftAlarm`] watches batch after batch.
//!
//! Another mix of classes moves the mean of the features only within the span of the class means, so the first test hardly sees it.

pub mod alarm;
pub mod batch_means;
mod capital;
pub mod class_shares;
pub mod detector;
pub mod martingale;
mod mean_test;
pub mod reference;
pub mod sums;
mod whitening;

pub use alarm::{Change, ShiftAlarm};
pub use class_shares::{ClassShares, label_shares};
pub use detector::{MIN_ROWS, NotChecked, ShiftDetector, ShiftTests, Verdict};
pub use reference::{Reference, ReferenceFeatures};
pub use sums::{BatchSums, ObservedRow, UnusualRow};
