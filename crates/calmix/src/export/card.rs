//! `README.md` beside an exported model: a model card in the format of the Hugging Face Hub.

use std::fmt::Write as _;

use calmix_metrics::calibrator::{Calibrator, CalibratorKind};
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::metrics::{ExactIntervals, Interval, Intervals, LEVEL, Metrics};
use calmix_metrics::predictions::EvalSet;
use calmix_run::model_info::ModelInfo;
use calmix_run::result::RunResult;
use calmix_run::summary::RunSummary;

use super::export_folder::MODEL;
use super::metadata::calibrator_of;
use crate::model::options::ModelOptions;
use crate::predict::prediction_rule::PredictionRule;

/// The input of a model card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Card<'a> {
    /// The name of the exported folder.
    pub name: &'a str,
    /// The model and its guarantees.
    pub rule: &'a PredictionRule,
    /// The requested coverage and precision.
    pub options: &'a ModelOptions,
    /// The run's `summary.json`, if available.
    pub summary: Option<&'a RunSummary>,
    /// The run's `result.json`, if available.
    pub result: Option<&'a RunResult>,
    /// The licence on the Hub, by its identifier there.
    pub licence: Option<&'a str>,
    /// The file of the reliability diagram, if there is one.
    pub diagram: Option<&'a str>,
}

/// The labels that a card has metrics of, the best first: none was seen by the model that predicted it. Each with the split of the
/// dataset in the Hub's words.
const SHOWN: [(EvalSet, &str, &str); 3] = [
    (EvalSet::Test, "test", "test samples"),
    (EvalSet::Validation, "validation", "validation samples"),
    (EvalSet::OutOfFold, "train", "training labels, each predicted by a model that was trained without it"),
];

/// The name, the value and the interval of a metric.
type MeasuredMetric = (&'static str, f64, Interval);

impl Card<'_> {
    /// Writes the text of the card.
    pub(crate) fn text(&self) -> String {
        let mut text = self.front_matter();
        let name = one_line(self.name);
        let _ = writeln!(text, "# {name}\n\n{}\n", self.what_it_is());
        let _ = writeln!(text, "## Use\n\n{}", self.use_it());
        let _ = writeln!(text, "## What the outputs mean\n\n{}", self.meaning());
        let _ = writeln!(text, "## Metrics\n\n{}", self.metrics());
        text
    }

    fn info(&self) -> &ModelInfo {
        self.rule.info()
    }

    /// Returns the evaluation that the card shows, with the split and the samples that it is on.
    fn evaluation(&self) -> Option<(&Evaluation, &'static str, &'static str)> {
        let evaluations = &self.result?.evaluations;
        let of = |split: EvalSet| evaluations.iter().find(|evaluation| evaluation.split == split);
        SHOWN.iter().find_map(|&(set, split, samples)| Some((of(set)?, split, samples)))
    }

    fn front_matter(&self) -> String {
        let task =
            if self.info().reads_vectors() { "tabular-classification" } else { "image-classification" };
        let licence = self.licence.map_or_else(String::new, |id| format!("license: {}\n", quoted(id)));
        let mut text = format!(
            "---\n{licence}library_name: onnx\npipeline_tag: {task}\ntags:\n- calmix\n- calibration\n- conformal-prediction\n- onnx\n"
        );
        if let Some((summary, (evaluation, split, _))) = self.summary.zip(self.evaluation()) {
            let name = quoted(self.name);
            let dataset = quoted(&summary.dataset);
            let Metrics { error, ece_15, nll, brier, .. } = calibrated_metrics(evaluation);
            let _ = write!(
                text,
                "metrics:\n- accuracy\n- brier_score\nmodel-index:\n- name: {name}\n  results:\n  - task:\n      type: {task}\n    \
                 dataset:\n      name: {dataset}\n      type: {dataset}\n      split: {split}\n    metrics:\n"
            );
            let measured = [
                ("accuracy", "accuracy", 1.0 - error),
                ("ece", "ECE, 15 bins", *ece_15),
                ("nll", "NLL", *nll),
                ("brier_score", "Brier score", *brier),
            ];
            // Numbers that are not finite have no place in the JSON that the Hub makes of it.
            for (kind, name, value) in measured.into_iter().filter(|(_, _, value)| value.is_finite()) {
                let _ =
                    writeln!(text, "    - type: {kind}\n      name: {}\n      value: {value}", quoted(name));
            }
        }
        text.push_str("---\n\n");
        text
    }

    fn what_it_is(&self) -> String {
        let info = self.info();
        let classes = info.classes.len();
        let body = match (info.pixels().zip(info.network_name()), &info.head) {
            (Some((pixels, network)), None) => {
                format!("A {network} for images of {0}×{0} pixels", pixels.size)
            }
            (Some((pixels, network)), Some(_)) => {
                format!("A head on frozen features of a {network}, for images of {0}×{0} pixels", pixels.size)
            }
            (None, Some(head)) if head.sets.len() > 1 => {
                let sets: Vec<String> = head.sets.iter().map(u32::to_string).collect();
                let all = head.features;
                format!(
                    "A head on vectors of {all} numbers, sets of {} features in this order",
                    sets.join(" and ")
                )
            }
            (None, head) => {
                format!("A head on vectors of {} numbers", head.as_ref().map_or(0, |head| head.features))
            }
        };
        let labels = self.summary.map_or_else(String::new, |summary| {
            format!(
                ", trained on {} labelled and {} unlabelled samples",
                summary.labelled, summary.unlabelled
            )
        });
        format!(
            "{body}, with {classes} classes{labels}. Written by calmix; `{MODEL}` needs neither calmix nor libtorch."
        )
    }

    fn use_it(&self) -> String {
        let mut text = String::from("```python\nimport json\n\nimport numpy as np\nimport onnxruntime\n");
        let info = self.info();
        let input = if let Some(pixels) = info.pixels() {
            let size = pixels.size;
            let filter = info.filter.to_uppercase();
            text.push_str("from PIL import Image, ImageOps\n\n");
            let shrink = info.shrink.unwrap_or(0);
            text.push_str("image = ImageOps.exif_transpose(Image.open(\"photo.jpg\")).convert(\"RGB\")\n");
            if shrink > 0 {
                let _ = writeln!(
                    text,
                    "if min(image.size) > {shrink}:\n    image = image.resize([(2 * side * {shrink} + min(image.size)) // (2 * min(image.size)) for side in image.size], Image.BILINEAR)"
                );
            }
            let resize = info.resize;
            let _ = writeln!(
                text,
                "image = image.resize([side * {resize} // min(image.size) for side in image.size], Image.{filter})\n\
                 left, top = [round((side - {size}) / 2) for side in image.size]\n\
                 images = np.asarray(image.crop((left, top, left + {size}, top + {size})))[None]\n"
            );
            "images"
        } else {
            let width = info.head.as_ref().map_or(0, |head| head.features);
            let _ =
                writeln!(text, "\nvectors = np.load(\"vectors.npy\").astype(np.float32)  # N × {width}\n");
            "vectors"
        };
        let _ = writeln!(
            text,
            "session = onnxruntime.InferenceSession(\"{MODEL}\")\n\
             names = [output.name for output in session.get_outputs()]\n\
             found = dict(zip(names, session.run(None, {{\"{input}\": {input}}})))\n\
             classes = json.loads(session.get_modelmeta().custom_metadata_map[\"classes\"])\n\
             print(classes[found[\"label\"][0]], found[\"confidence\"][0])\n```"
        );
        text
    }

    fn meaning(&self) -> String {
        let calibrator = match calibrator_of(self.info()) {
            Calibrator::Temperature { temperature } => format!("a temperature of {:.4}", temperature.value()),
            Calibrator::Vector(_) => CalibratorKind::Vector.name().to_owned(),
            Calibrator::Isotonic(_) => CalibratorKind::Isotonic.name().to_owned(),
        };
        let mut text = format!(
            "- `logits`: before calibration; `probabilities`: after it, by {calibrator}.\n\
             - `label` and `confidence`: the most probable class and its probability.\n"
        );
        let guarantee = self.rule.guarantee();
        let labels = self.info().held_out.as_ref().map_or(0, HeldOut::len);
        let percent = |share: f64| format!("{}%", (1000.0 * share).round() / 10.0);
        if guarantee.sets().is_some() {
            let coverage = percent(self.options.coverage);
            let precision = percent(self.options.precision);
            let _ = write!(
                text,
                "- `set`: contains the true class with a probability of at least {coverage}, by {labels} labels that the \
                 model which predicted them was not trained on.\n\
                 - `abstain`: of the answers without it, at least {precision} are right, with a confidence of 90%.\n\n\
                 Both hold for new samples drawn like the held-out ones: not for other cameras, other classes or other \
                 proportions of classes, and on average over many samples, not for each class.\n"
            );
        }
        for sentence in guarantee.missing() {
            let _ = writeln!(text, "\nNote: {sentence}.");
        }
        text
    }

    fn metrics(&self) -> String {
        let Some((evaluation, _, samples)) = self.evaluation() else {
            return "There is no evaluation.\n".to_owned();
        };
        let mut text = format!(
            "On {} {samples}, after calibration, with {}% confidence intervals:\n\n| metric | value | interval |\n|---|---|---|\n",
            evaluation.samples,
            (100.0 * LEVEL).round()
        );
        for (name, value, Interval { low, high }) in metrics_with_intervals(evaluation) {
            let [value, low, high] = [value, low, high].map(four_digits);
            let _ = writeln!(text, "| {name} | {value} | {low} to {high} |");
        }
        if let Some(diagram) = self.diagram {
            let _ = writeln!(
                text,
                "\n![Reliability diagram of these predictions, before and after calibration]({diagram})"
            );
        }
        text
    }
}

/// Formats a number with four decimals; zero has no sign.
fn four_digits(number: f64) -> String {
    let text = format!("{number:.4}");
    if text == "-0.0000" { "0.0000".to_owned() } else { text }
}

/// Returns the metrics after calibration, or those before if there is no calibrator.
fn calibrated_metrics(test: &Evaluation) -> &Metrics {
    test.calibrated.as_ref().map_or(&test.metrics, |calibrated| &calibrated.metrics)
}

/// Returns the metrics that have an interval, which are those that a card shows.
fn metrics_with_intervals(test: &Evaluation) -> Vec<MeasuredMetric> {
    let metrics = calibrated_metrics(test);
    let intervals = test.calibrated.as_ref().map_or(&test.intervals, |calibrated| &calibrated.intervals);
    let mut measured = Vec::new();
    if let Some(ExactIntervals { error, confidence_gap, .. }) =
        ExactIntervals::of(metrics, test.observations(), LEVEL)
    {
        measured.push(("error", metrics.error, error));
        measured.push(("mean confidence − accuracy", metrics.confidence_gap, confidence_gap));
    }
    if let Some(Intervals { ece_15, class_wise_ece, nll, brier, .. }) = intervals {
        measured.push(("ECE, 15 bins", metrics.ece_15, *ece_15));
        measured.push(("class-wise ECE", metrics.class_wise_ece, *class_wise_ece));
        measured.push(("NLL", metrics.nll, *nll));
        measured.push(("Brier score", metrics.brier, *brier));
    }
    measured
}

/// Escapes a name for a line of Markdown.
fn one_line(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Quotes a name for YAML: JSON strings are valid YAML, whatever they contain.
fn quoted(name: &str) -> String {
    serde_json::Value::from(one_line(name)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        let shown = [-0.00004, 0.00004, -0.0, -0.00006, 0.12346].map(four_digits);
        assert_eq!(shown, ["0.0000", "0.0000", "0.0000", "-0.0001", "0.1235"]);
    }
}
