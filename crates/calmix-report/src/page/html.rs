//! Writes the page. The macro `html!` escapes every value.

use base64::prelude::{BASE64_STANDARD, Engine};
use calmix_io::shown::shown_lines;
use calmix_io::text::{counted, grouped};
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::{ExactIntervals, Intervals, LEVEL, MIN_SAMPLES_FOR_ECE, Metrics};
use calmix_run::sink::phrase::{measured, signed_gap};
use calmix_run::summary::RunSummary;
use calmix_run::tensor_files::examples::SIDES;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::plot::ExamplePrediction;
use crate::plot::{self, DataTable, PlotView, TableCell};
use crate::report::{RunReport, RunsReport};
use crate::svg::STYLE;

/// The style of the page; [`STYLE`] has the colours of drawings.
const PAGE_STYLE: &str = include_str!("page.css");

/// The maximum number of rows of a table on the page; its CSV file has all rows.
const MAX_ROWS: usize = 60;

/// The content security policy: a browser may load only what is in the page itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Writes the report as one HTML file. With `refresh`, a browser reloads it after this number of seconds.
pub fn html(report: &RunsReport, refresh: Option<u32>) -> String {
    let names: Vec<&str> = report.runs.iter().map(|run| run.name.as_str()).collect();
    let title = format!("calmix report: {}", names.join(", "));
    let plots = plot::all(report);
    let is_of_run = report.runs.iter().all(|run| run.summary.is_some());
    let source = if is_of_run { "the files of the run" } else { "predictions and labels" };
    let body = html! {
        @for run in &report.runs {
            (assessment(run, report.runs.len() > 1))
        }
        (overview(report))
        (plot_sections(&plots))
    };
    let footer = format!(
        "Created by calmix {} from {source}; every number can be recomputed from them. ECE: expected calibration error, 15 bins of \
         equal width, closed on the left.",
        report.calmix
    );
    page(&title, "calmix report", refresh, &body, &footer)
}

/// Writes plots below some sentences as one HTML file; `program` is the command that writes it.
pub(crate) fn document(title: &str, program: &str, sentences: &[String], plots: &[PlotView]) -> String {
    let body = html! {
        section.assessment {
            @for (at, sentence) in sentences.iter().enumerate() {
                p class=(if at == 0 { "headline" } else { "trust" }) { (with_code(sentence)) }
            }
        }
        (plot_sections(plots))
    };
    page(title, program, None, &body, concat!("Created by calmix ", env!("CARGO_PKG_VERSION"), "."))
}

/// Writes a page with this content.
fn page(title: &str, program: &str, refresh: Option<u32>, body: &Markup, footer: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(program);
                @if let Some(seconds) = refresh {
                    meta http-equiv="refresh" content=(seconds);
                }
                title { (title) }
                style { (PreEscaped(PAGE_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
                footer {
                    p { (footer) }
                }
            }
        }
    };
    // HTML also has no use for control characters and marks that reorder text.
    shown_lines(&page.into_string())
}

/// Returns links to plots, and the plots.
fn plot_sections(plots: &[PlotView]) -> Markup {
    html! {
        nav aria-label="Plots" {
            ul {
                @for plot in plots {
                    li { a href={ "#" (plot.name) } { (plot.title) } }
                }
            }
        }
        @for plot in plots {
            (section(plot))
        }
    }
}

fn assessment(run: &RunReport, named: bool) -> Markup {
    let assessment = &run.assessment;
    html! {
        section.assessment {
            @if named {
                h2 { (run.name) }
            }
            p.headline { (assessment.headline) }
            p.trust { (with_code(&assessment.trust)) }
            p.notes { (assessment.notes.join(" ")) }
            @if run.chosen_on_test {
                p.notes { "This model was selected on the test split, so its test metrics are optimistic." }
            }
            @if !run.finished {
                p.notes { (unfinished(run)) }
            }
        }
        "\n"
    }
}

/// Formats a sentence, setting commands between backticks as code.
fn with_code(sentence: &str) -> Markup {
    html! {
        @for (at, part) in sentence.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Describes the progress of an unfinished run.
fn unfinished(run: &RunReport) -> String {
    match run.summary.as_ref().map_or(0, |summary| summary.steps) {
        0 => "The run has not ended.".to_owned(),
        steps => {
            let step = grouped(run.step);
            format!("The run has not ended: it is at step {step} of {}.", counted(steps, "step"))
        }
    }
}

/// Returns the table of all runs, with a column per run.
fn overview(report: &RunsReport) -> Markup {
    let columns: Vec<Vec<(&str, String)>> = report.runs.iter().map(facts).collect();
    html! {
        section {
            h2 { "Overview" }
            div.scroll.glance tabindex="0" role="region" aria-label="Overview" {
                table {
                    thead {
                        tr {
                            th scope="col" { "run" }
                            @for run in &report.runs {
                                th scope="col" { (run.name) }
                            }
                        }
                    }
                    tbody {
                        @for (at, (name, _)) in columns.first().into_iter().flatten().enumerate() {
                            tr {
                                th scope="row" { (name) }
                                @for (_, value) in columns.iter().filter_map(|column| column.get(at)) {
                                    td { (value) }
                                }
                            }
                        }
                    }
                }
            }
            p.notes {
                "In brackets: 95% confidence intervals. They are exact for the error; those of the confidence gap follow \
                 from them; the others are bootstrapped, and those of the ECE lie slightly too high. The balanced error is the \
                 mean error of the classes and macro F1 the mean of their F1: every class counts the same, however many \
                 samples it has. The confidence gap is the mean confidence minus the accuracy."
            }
        }
        "\n"
    }
}

/// Returns the rows of a run in the table; their names are the same for every run.
fn facts(run: &RunReport) -> Vec<(&'static str, String)> {
    let mut facts = run.summary.as_ref().map_or_else(Vec::new, |summary| origin(run, summary));
    facts.extend(measures(run));
    facts
}

/// Describes the data, method and network of a run.
fn origin(run: &RunReport, summary: &RunSummary) -> Vec<(&'static str, String)> {
    let method = match summary.pairing.as_str() {
        "none" => summary.base.clone(),
        pairing => format!("{} with {pairing}", summary.base),
    };
    let head = run.head.map(|head| format!("; metrics of {}", head.in_words()));
    let method = method + &head.unwrap_or_default();
    vec![
        ("dataset", format!("{}, {}", summary.dataset, counted(summary.classes as u64, "class"))),
        ("samples", samples(run, summary)),
        ("method", method),
        ("network", summary.network_in_words()),
        ("seeds", format!("training {}, labels {}", summary.seed, summary.label_seed)),
    ]
}

/// Describes the training and evaluation samples of a run.
fn samples(run: &RunReport, summary: &RunSummary) -> String {
    let mut parts = vec![format!("{} labelled", grouped(summary.labelled as u64))];
    if run.out_of_fold > 0 {
        parts.push(format!("{} of these also predicted out of fold", grouped(run.out_of_fold)));
    }
    if summary.validation > 0 {
        parts.push(format!("{} held out", grouped(summary.validation as u64)));
    }
    parts.push(format!("{} unlabelled", grouped(summary.unlabelled)));
    parts.join(", ")
}

/// Returns the metrics of a run before and after calibration.
fn measures(run: &RunReport) -> Vec<(&'static str, String)> {
    let evaluation = run.evaluated.as_ref().map(|evaluated| &evaluated.evaluation);
    let samples = evaluation.map_or(0, Evaluation::observations);
    let raw = evaluation.map(|evaluation| (&evaluation.metrics, evaluation.intervals.as_ref()));
    let calibrated = evaluation.and_then(|evaluation| evaluation.calibrated.as_ref());
    let calibrator = calibrated.map_or("none".to_owned(), |calibrated| {
        let name = match calibrated.temperature {
            Some(temperature) => format!("temperature {:.2}", temperature.value()),
            None => calibrated.kind.name().to_owned(),
        };
        format!("{name}, fitted on {}", counted(calibrated.fitted_samples, "label"))
    });
    let calibrated = calibrated.map(|calibrated| (&calibrated.metrics, calibrated.intervals.as_ref()));
    let show = |of: Option<(&Metrics, Option<&Intervals>)>,
                how: fn(&Metrics, Option<&Intervals>, u64) -> String| {
        of.map_or("–".to_owned(), |(metrics, intervals)| how(metrics, intervals, samples))
    };
    vec![
        ("calibration", calibrator),
        ("error", show(calibrated.or(raw), error)),
        ("balanced error", show(calibrated.or(raw), balanced_error)),
        ("macro F1", show(calibrated.or(raw), macro_f1)),
        ("confidence gap, points", show(raw, gap)),
        ("confidence gap, calibrated", show(calibrated, gap)),
        ("ECE, 15 bins", show(raw, ece)),
        ("ECE, calibrated", show(calibrated, ece)),
        ("NLL, nats", show(raw, nll)),
        ("NLL, calibrated", show(calibrated, nll)),
    ]
}

fn error(metrics: &Metrics, _: Option<&Intervals>, samples: u64) -> String {
    measured(metrics.error, ExactIntervals::of(metrics, samples, LEVEL).map(|interval| interval.error))
}

fn balanced_error(metrics: &Metrics, within: Option<&Intervals>, _: u64) -> String {
    let interval = within.and_then(|within| within.balanced_error);
    metrics.balanced_error.map_or("–".to_owned(), |error| measured(error, interval))
}

fn macro_f1(metrics: &Metrics, within: Option<&Intervals>, _: u64) -> String {
    let interval = within.and_then(|within| within.macro_f1);
    metrics.macro_f1.map_or("–".to_owned(), |f1| measured(f1, interval))
}

fn gap(metrics: &Metrics, _: Option<&Intervals>, samples: u64) -> String {
    signed_gap(metrics, samples)
}

fn ece(metrics: &Metrics, within: Option<&Intervals>, samples: u64) -> String {
    match samples {
        0..MIN_SAMPLES_FOR_ECE => format!("needs {} samples", grouped(MIN_SAMPLES_FOR_ECE)),
        _ => measured(metrics.ece_15, within.map(|within| within.ece_15)),
    }
}

fn nll(metrics: &Metrics, _: Option<&Intervals>, _: u64) -> String {
    format!("{:.3}", metrics.nll)
}

fn section(plot: &PlotView) -> Markup {
    let rows = plot.table.rows.len();
    html! {
        section id=(plot.name) {
            h2 { (plot.title) }
            p { (with_code(&plot.sentence)) }
            @if !plot.panels.is_empty() {
                div.panels {
                    @for panel in &plot.panels {
                        // Texts in a drawing were escaped by `svg::escaped`.
                        figure { (PreEscaped(panel.element())) }
                    }
                }
            }
            @for row in &plot.images {
                h3 { (row.title) }
                ul.images {
                    @for example in &row.examples {
                        (image(example))
                    }
                }
            }
            details {
                summary { "Data table" }
                (grid(&plot.table, &plot.title))
                @if rows > MAX_ROWS {
                    p.notes {
                        "The first " (MAX_ROWS) " of " (grouped(rows as u64)) " rows; " (plot.name) ".csv has all of them."
                    }
                }
            }
        }
        "\n"
    }
}

fn image(example: &ExamplePrediction) -> Markup {
    let confidence = example.calibrated.unwrap_or(example.confidence);
    let label = if example.label == example.predicted {
        format!("{}, confidence {:.0}%", example.label, 100.0 * confidence)
    } else {
        format!(
            "predicted {}, confidence {:.0}%; labelled {}",
            example.predicted,
            100.0 * confidence,
            example.label
        )
    };
    let name = example.name.as_deref().unwrap_or_default();
    let image = example.images.as_ref().and_then(|[small, large]| {
        let small = data_url(SIDES[0] as u32, SIDES[0] as u32, small)?;
        let large = data_url(SIDES[1] as u32, SIDES[1] as u32, large)?;
        Some(html! {
            img src=(small) srcset={ (small) " 48w, " (large) " 96w" } sizes="96px" width="96" height="96"
                alt=(name) title=(name);
        })
    });
    html! {
        li { (image.unwrap_or_default()) span { (label) } }
    }
}

/// Returns the first rows of a table, which scrolls horizontally if it is too wide.
fn grid(table: &DataTable, title: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead {
                    tr {
                        @for column in &table.columns {
                            th scope="col" { (column) }
                        }
                    }
                }
                tbody {
                    @for row in table.rows.iter().take(MAX_ROWS) {
                        tr {
                            @for cell in row {
                                td class=[number_class(cell)] { (cell.shown()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn number_class(cell: &TableCell) -> Option<&'static str> {
    (!matches!(cell, TableCell::Text(_))).then_some("n")
}

/// Encodes an RGB image as a data URL; `None` if it cannot be encoded.
pub fn data_url(width: u32, height: u32, pixels: &[u8]) -> Option<String> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_url_needs_all_pixels() {
        assert_eq!(data_url(2, 2, &[0; 11]), None);
        assert!(data_url(2, 2, &[0; 12]).unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
    }
}
