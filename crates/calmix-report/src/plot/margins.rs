//! The margins of samples at the end of a run, which measure how easy they were, on each side of the median.

use calmix_metrics::margins::{MarginHistogram, SampleMargins};

use super::view::{DataTable, PANEL_WIDTH, PlotView, TableCell};
use crate::svg::{Axis, Drawing, Key, Plot, PlotMark};

/// The maximum number of bars in a panel; with more bins, neighbours are added up.
const MAX_BARS: usize = 60;
/// The colours of hard and easy samples.
const TONES: [usize; 2] = [1, 0];

/// Plots the labelled and the unlabelled samples, in a panel each.
pub(super) fn view(margins: &SampleMargins) -> Option<PlotView> {
    let SampleMargins { labelled, unlabelled } = margins;
    let kinds = [
        ("Labelled samples", labelled, "average margin (AUM), logits"),
        ("Unlabelled samples", unlabelled, "average pseudo-margin (APM), logits"),
    ];
    let mut rows = Vec::new();
    for (kind, histogram, _) in &kinds {
        let median = histogram.median().unwrap_or_default();
        rows.extend(histogram.bins().filter(|(_, count)| *count > 0).map(|(lower, count)| {
            vec![
                TableCell::Text((*kind).to_owned()),
                TableCell::Text(
                    if is_easy(lower, MarginHistogram::WIDTH, median) { "easy" } else { "hard" }.to_owned(),
                ),
                TableCell::Number(lower),
                TableCell::Number(lower + MarginHistogram::WIDTH),
                TableCell::Count(count),
            ]
        }));
    }
    let panels: Vec<_> =
        kinds.iter().filter_map(|(kind, histogram, label)| panel(kind, histogram, label)).collect();
    (!panels.is_empty()).then(|| PlotView {
        name: "margins".to_owned(),
        title: "Which samples are easy, which are hard?".to_owned(),
        sentence: "The margin of a sample is the logit of its class minus the highest other logit, averaged over all times \
                   the sample was trained on; for an unlabelled one, the class with the highest average margin is used. \
                   Below zero, another class is predicted. Here the median of all samples separates hard from easy; in \
                   training, each batch uses its own median."
            .to_owned(),
        panels,
        images: Vec::new(),
        table: DataTable { columns: vec!["samples", "half", "margin from", "margin to", "number"], rows },
    })
}

fn is_easy(lower: f64, width: f64, median: f64) -> bool {
    lower + width / 2.0 >= median
}

fn panel(kind: &str, histogram: &MarginHistogram, label: &str) -> Option<Drawing> {
    let median = histogram.median()?;
    let bins: Vec<(f64, u64)> = histogram.bins().collect();
    let together = bins.len().div_ceil(MAX_BARS).max(1);
    let width = together as f64 * MarginHistogram::WIDTH;
    let all = histogram.samples() as f64;
    let bars: Vec<(f64, f64)> = bins
        .chunks(together)
        .filter_map(|bins| Some((bins.first()?.0, bins.iter().map(|bin| bin.1).sum::<u64>() as f64 / all)))
        .collect();
    let max_share = bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
    let first = bars.first()?.0;
    let last = bars.last()?.0 + width;
    let tone = |lower: f64| TONES[usize::from(is_easy(lower, width, median))];
    let bar = |&(lower, height): &(f64, f64)| {
        let inset = 0.04 * width;
        PlotMark::Bar { from_to: (lower + inset, lower + width - inset), height, tone: tone(lower) }
    };
    let mut marks: Vec<PlotMark> = bars.iter().map(bar).collect();
    marks.push(PlotMark::Ideal((median, 0.0), (median, 1.0)));
    let plot =
        Plot { x: Axis::linear(label, first, last), y: Axis::share_up_to("samples, %", max_share), marks };
    let legend = [("hard, below the median", TONES[0]), ("easy, at least the median", TONES[1])];
    let legend = legend.map(|(text, tone)| Key { text: format!("{text} ({median:.2})"), tone });
    Some(Plot::panel(kind, PANEL_WIDTH, &[(plot, 200.0)], &legend))
}
