//! Measures of predictions and a fitted temperature: `MEASURE FOLDER`, on files that `bench/peers/logits.py` makes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use calmix_core::matrix::Matrix;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::measure::{
    Binning, Edges, TopLabel, brier_score, class_wise_ece, ece, nll_from_logits, reliability_bins,
};

const CLASSES: usize = 1_000;

/// A measure of logits or probabilities and labels.
type Measure = fn(Matrix<'_>, &[u32]) -> Result<f64>;

/// Prepares the case. A repetition computes the measure from numbers in memory.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<f64>> {
    let &[measure, folder] = case else {
        bail!("the cases of measures are `MEASURE FOLDER`, not {case:?}");
    };
    let (source, compute): (_, Measure) = match measure {
        "ece-probabilities" => ("probabilities", |p, labels| {
            let predictions = TopLabel::from_probabilities(p, labels)?;
            Ok(ece(&reliability_bins(&predictions, torchmetrics())))
        }),
        "ece-logits" => ("logits", |z, labels| {
            let predictions = TopLabel::from_logits(z, labels, 1.0)?;
            Ok(ece(&reliability_bins(&predictions, torchmetrics())))
        }),
        "brier" => ("probabilities", |p, labels| Ok(brier_score(p, labels)?)),
        "nll" => ("logits", |z, labels| Ok(nll_from_logits(z, labels, 1.0)?)),
        "class-wise-ece" => ("probabilities", |p, labels| Ok(class_wise_ece(p, labels, torchmetrics())?)),
        "temperature" => ("logits", |z, labels| Ok(Temperature::fit(z, labels)?.value())),
        "cautious-temperature" => ("logits", |z, labels| Ok(Temperature::fit_penalised(z, labels)?.value())),
        other => bail!("there is no measure `{other}`"),
    };
    let numbers: Vec<f32> =
        words(folder, &format!("{source}.f32"))?.into_iter().map(f32::from_le_bytes).collect();
    let labels: Vec<u32> = words(folder, "labels.u32")?.into_iter().map(u32::from_le_bytes).collect();
    Ok(move || compute(Matrix::new(&numbers, labels.len(), CLASSES)?, &labels))
}

/// Returns fifteen bins with torchmetrics' convention, so that the results can be compared.
fn torchmetrics() -> Binning {
    match Binning::default() {
        Binning::EqualWidth { bins, .. } => Binning::EqualWidth { bins, edges: Edges::Torchmetrics },
        other @ Binning::EqualMass { .. } => other,
    }
}

/// Reads a file as words of four bytes.
fn words(folder: &str, name: &str) -> Result<Vec<[u8; 4]>> {
    let path = Path::new(folder).join(name);
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes.as_chunks().0.to_vec())
}
