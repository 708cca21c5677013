//! The page itself.

use std::fmt::Write as _;

use calmix_core::counted::{counted, grouped};
use calmix_run::evaluate::{ENOUGH_FOR_ECE, ExactLimits, Figures, Intervals, LEVEL};
use calmix_run::examples::SIDES;
use calmix_run::sink::phrase::{measured, signed_gap};

use super::encode::data_url;
use crate::figure::examples::ExamplePrediction;
use crate::figure::{self, DataTable, FigureView, TableCell};
use crate::report::{RunReport, RunsReport};
use crate::svg::{STYLE, escaped};

/// How the page looks; the colours of drawings are in [`STYLE`].
const LOOK: &str = include_str!("page.css");

/// Rows of a table in the page; the rest is in its CSV file.
const ROWS: usize = 60;

/// The report as one HTML file. With `refresh`, a browser loads it again every so many seconds.
pub fn html(report: &RunsReport, refresh: Option<u32>) -> String {
    let names: Vec<&str> = report.runs.iter().map(|run| run.name.as_str()).collect();
    let title = escaped(&format!("calmix report: {}", names.join(", ")));
    let refresh = refresh.map(|seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n"));
    let figures = figure::all(report);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"calmix report\">\n{}\
         <title>{title}</title>\n<style>{LOOK}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        refresh.unwrap_or_default()
    );
    for run in &report.runs {
        page += &verdict(run, report.runs.len() > 1);
    }
    page += &overview(report);
    page += "<nav aria-label=\"Figures\"><ul>";
    for figure in &figures {
        let _ =
            write!(page, "<li><a href=\"#{}\">{}</a></li>", escaped(&figure.name), escaped(&figure.title));
    }
    page += "</ul></nav>\n";
    for figure in &figures {
        page += &section(figure);
    }
    let version = escaped(&report.calmix);
    let _ = write!(
        page,
        "</main>\n<footer><p>Made by calmix {version} from the files of the run; every number can be computed again from \
         them. ECE: 15 bins of equal width, closed on the left.</p></footer>\n</body>\n</html>\n"
    );
    page
}

fn verdict(run: &RunReport, named: bool) -> String {
    let verdict = &run.verdict;
    let mut text = String::from("<section class=\"verdict\">");
    if named {
        let _ = write!(text, "<h2>{}</h2>", escaped(&run.name));
    }
    let _ = write!(text, "<p class=\"headline\">{}</p>", escaped(&verdict.headline));
    let _ = write!(text, "<p class=\"trust\">{}</p>", escaped(&verdict.trust));
    let _ = write!(text, "<p class=\"notes\">{}</p>", escaped(&verdict.notes.join(" ")));
    if run.chosen_on_test {
        text += "<p class=\"notes\">The test split chose this model and measures it: its figures are optimistic.</p>";
    }
    if !run.finished {
        let (step, steps) = (grouped(run.step), counted(run.summary.steps, "step"));
        let _ =
            write!(text, "<p class=\"notes\">The run has not ended: it is at step {step} of {steps}.</p>");
    }
    text + "</section>\n"
}

/// What the runs are and how good: a column each.
fn overview(report: &RunsReport) -> String {
    let columns: Vec<Vec<(&str, String)>> = report.runs.iter().map(facts).collect();
    let mut text = String::from(
        "<section><h2>At a glance</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"At a glance\">\
         <table><thead><tr><th scope=\"col\">run</th>",
    );
    for run in &report.runs {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escaped(&run.name));
    }
    text += "</tr></thead><tbody>";
    for (at, (name, _)) in columns.first().into_iter().flatten().enumerate() {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escaped(name));
        for (_, value) in columns.iter().filter_map(|column| column.get(at)) {
            let _ = write!(text, "<td>{}</td>", escaped(value));
        }
        text += "</tr>";
    }
    text + "</tbody></table></div><p class=\"notes\">In brackets: 95 % limits, exact for error and gap, by bootstrap for the \
            ECE. The gap is the mean confidence minus the share of right answers.</p></section>\n"
}

/// What a run is and how good, each with its name: the same names for every run.
fn facts(run: &RunReport) -> Vec<(&'static str, String)> {
    let summary = &run.summary;
    let method = match summary.pairing.as_str() {
        "none" => summary.base.clone(),
        pairing => format!("{} with {pairing}", summary.base),
    };
    let labels = format!(
        "{} labelled, {} held out, {} unlabelled",
        grouped(summary.labelled as u64),
        grouped(summary.validation as u64),
        grouped(summary.unlabelled)
    );
    let seen = run.judged.as_ref().map(|judged| &judged.evaluation);
    let samples = seen.map_or(0, |seen| seen.samples);
    let raw = seen.map(|seen| (&seen.figures, seen.intervals.as_ref()));
    let mapped = seen.and_then(|seen| seen.calibrated.as_ref());
    let map = mapped.map_or("none".to_owned(), |map| match map.temperature {
        Some(temperature) => format!("temperature {:.2}", temperature.value()),
        None => map.kind.name().to_owned(),
    });
    let map = mapped.map_or(map.clone(), |mapped| {
        format!("{map}, fitted on {}", counted(mapped.fitted_samples, "label"))
    });
    let mapped = mapped.map(|mapped| (&mapped.figures, mapped.intervals.as_ref()));
    let show = |of: Option<(&Figures, Option<&Intervals>)>,
                how: fn(&Figures, Option<&Intervals>, u64) -> String| {
        of.map_or("–".to_owned(), |(figures, intervals)| how(figures, intervals, samples))
    };
    vec![
        ("dataset", format!("{}, {}", summary.dataset, counted(summary.classes as u64, "class"))),
        ("images", labels),
        ("method", method),
        ("network", format!("{} at {} pixels", summary.network, summary.size)),
        ("seeds", format!("{}, of labels {}", summary.seed, summary.label_seed)),
        ("calibration", map),
        ("error", show(mapped.or(raw), error)),
        ("gap, points", show(raw, gap)),
        ("gap, calibrated", show(mapped, gap)),
        ("ECE, 15 bins", show(raw, ece)),
        ("ECE, calibrated", show(mapped, ece)),
        ("NLL, nats", show(raw, nll)),
        ("NLL, calibrated", show(mapped, nll)),
    ]
}

fn error(figures: &Figures, _: Option<&Intervals>, samples: u64) -> String {
    measured(figures.error, ExactLimits::of(figures, samples, LEVEL).map(|limits| limits.error))
}

fn gap(figures: &Figures, _: Option<&Intervals>, samples: u64) -> String {
    signed_gap(figures, samples)
}

fn ece(figures: &Figures, within: Option<&Intervals>, samples: u64) -> String {
    match samples {
        0..ENOUGH_FOR_ECE => format!("needs {} images", grouped(ENOUGH_FOR_ECE)),
        _ => measured(figures.ece_15, within.map(|within| within.ece_15)),
    }
}

fn nll(figures: &Figures, _: Option<&Intervals>, _: u64) -> String {
    format!("{:.3}", figures.nll)
}

fn section(figure: &FigureView) -> String {
    let (name, title) = (escaped(&figure.name), escaped(&figure.title));
    let mut text = format!("<section id=\"{name}\"><h2>{title}</h2><p>{}</p>", escaped(&figure.sentence));
    if !figure.panels.is_empty() {
        text += "<div class=\"panels\">";
        for panel in &figure.panels {
            let _ = write!(text, "<figure>{}</figure>", panel.element());
        }
        text += "</div>";
    }
    for row in &figure.pictures {
        let _ = write!(text, "<h3>{}</h3><ul class=\"pictures\">", row.title);
        for example in &row.of {
            text += &picture(example);
        }
        text += "</ul>";
    }
    let rows = figure.table.rows.len();
    let more = if rows > ROWS {
        format!(
            "<p class=\"notes\">The first {ROWS} of {} rows; {name}.csv has all.</p>",
            grouped(rows as u64)
        )
    } else {
        String::new()
    };
    let cut = DataTable {
        columns: figure.table.columns.clone(),
        rows: figure.table.rows.iter().take(ROWS).cloned().collect(),
    };
    let _ = writeln!(
        text,
        "<details><summary>The numbers</summary>{}{more}</details></section>",
        grid(&cut, &figure.title)
    );
    text
}

fn picture(example: &ExamplePrediction) -> String {
    let said = example.calibrated.unwrap_or(example.confidence);
    let label = if example.label == example.predicted {
        format!("{}, {:.0} % sure", example.label, 100.0 * said)
    } else {
        format!("says {}, {:.0} % sure; is {}", example.predicted, 100.0 * said, example.label)
    };
    let image = example.pictures.as_ref().and_then(|[small, large]| {
        let (small, large) = (data_url(small, SIDES[0])?, data_url(large, SIDES[1])?);
        let name = escaped(example.name.as_deref().unwrap_or_default());
        Some(format!(
            "<img src=\"{small}\" srcset=\"{small} 48w, {large} 96w\" sizes=\"96px\" width=\"96\" height=\"96\" \
             alt=\"{name}\" title=\"{name}\">"
        ))
    });
    format!("<li>{}<span>{}</span></li>", image.unwrap_or_default(), escaped(&label))
}

/// A table that scrolls by itself where it is too wide.
fn grid(table: &DataTable, title: &str) -> String {
    let mut text = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><thead><tr>",
        escaped(title)
    );
    for column in &table.columns {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escaped(column));
    }
    text += "</tr></thead><tbody>";
    for row in &table.rows {
        text += "<tr>";
        for cell in row {
            let class = if matches!(cell, TableCell::Text(_)) { "" } else { " class=\"n\"" };
            let _ = write!(text, "<td{class}>{}</td>", escaped(&cell.shown()));
        }
        text += "</tr>";
    }
    text + "</tbody></table></div>"
}
