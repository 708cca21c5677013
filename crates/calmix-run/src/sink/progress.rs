//! Shows the progress of a run on a terminal or in a log.
//!
//! A terminal has one line that is redrawn: a bar, the rate, the time left and the most important metrics; a narrow terminal
//! shows fewer of them. A log gets one plain line per interval. An interval is the time between two calls of [`Sink::pace`].
//! Other work of a run, such as its last evaluation, has similar lines with a name and a count.
//!
//! Written by hand because progress bar crates own the terminal, the clock and a thread, while this needs one line, an
//! external writer and the same output in every test.

mod line;
pub mod phrase;
mod work_line;

use std::io::{self, Write};

use calmix_io::shown::shown_lines;
use calmix_io::text::{counted, grouped};
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::{MIN_SAMPLES_FOR_ECE, Metrics};
use calmix_metrics::predictions::{EvalModel, EvalSet};

use super::{Sink, Work, WorkProgress, at};
use crate::error::RunError;
use crate::events::{Event, Finished, Note, Pace, Step};
use line::{Priority, Segment, fitted, joined};
use phrase::{ece_in_words, measured, over_or_under, percent, pseudo_in_words, rough_time, signed_gap};
use work_line::work_line;

const SINK_NAME: &str = "the terminal";
/// Moves the cursor to the first column and clears the line.
const REDRAW: &str = "\r\x1b[K";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";
/// The minimum number of seconds between two lines about the same work, on a terminal and in a log.
const WORK_INTERVAL_TERMINAL: f64 = 0.5;
const WORK_INTERVAL_LOG: f64 = 10.0;

/// The style of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStyle {
    /// Output for a terminal: one line, redrawn at every interval.
    Terminal {
        /// The width of the terminal, which limits the redrawn line.
        columns: usize,
        /// Whether warnings may be coloured.
        colour: bool,
    },
    /// Output for a file or a pipe: a new line at every interval, without control characters.
    Plain,
}

/// A sink that shows the progress of a run.
#[derive(Debug)]
pub struct Progress<W> {
    to: W,
    style: ProgressStyle,
    last_step: u64,
    step: Option<Step>,
    /// The latest metrics of the EMA model, on the validation split if any.
    metrics: Option<(EvalSet, String)>,
    /// Whether the terminal's current line shows the bar.
    drawn: bool,
    /// Whether the time left was shown before the first interval.
    estimated: bool,
    /// The noun for a sample.
    sample: &'static str,
    /// The last shown work, and when it was shown, in seconds since its start.
    work: Option<(Work, f64)>,
}

impl<W: Write> Progress<W> {
    /// Shows a run that ends after `last_step` updates.
    pub fn new(to: W, style: ProgressStyle, last_step: u64) -> Self {
        Self {
            to,
            style,
            last_step,
            step: None,
            metrics: None,
            drawn: false,
            estimated: false,
            sample: "image",
            work: None,
        }
    }

    /// Sets the noun for a sample; the default is "image".
    #[must_use]
    pub fn with_sample_word(self, sample: &'static str) -> Self {
        Self { sample, ..self }
    }

    /// Writes a permanent line in a single write, because the writer may be shared.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let clear = if std::mem::take(&mut self.drawn) { REDRAW } else { "" };
        self.to.write_all(format!("{clear}{line}\n").as_bytes())
    }

    fn remember(&mut self, evaluation: &Evaluation) {
        let better = self
            .metrics
            .as_ref()
            .is_none_or(|(split, _)| *split == evaluation.split || evaluation.split == EvalSet::Validation);
        if evaluation.model == EvalModel::Ema && evaluation.split.is_evaluated() && better {
            let on = if evaluation.split == EvalSet::Validation { "val" } else { evaluation.split.word() };
            let metrics = format!(
                "{on} error {}  {}",
                percent(evaluation.metrics.error),
                if evaluation.samples >= MIN_SAMPLES_FOR_ECE {
                    format!("ECE {}", percent(evaluation.metrics.ece_15))
                } else {
                    format!("gap {:>+6.1}", 100.0 * evaluation.metrics.confidence_gap)
                }
            );
            self.metrics = Some((evaluation.split, metrics));
        }
    }

    /// Returns the segments of a status line, with the same widths in every line.
    fn status(&self, pace: &Pace) -> Vec<Segment> {
        let total = grouped(self.last_step);
        let step = format!("step {:>width$}/{total}", grouped(pace.step), width = total.len());
        let mut parts = vec![(Priority::Always, step)];
        if let Some(step) = &self.step {
            parts.push((Priority::Loss, format!("loss {:>6.3}", step.loss.total)));
            let used = step.utilisation.map(|used| format!("used {:>3.0}%", 100.0 * used));
            parts.extend(used.map(|used| (Priority::Used, used)));
        }
        if let Some((_, metrics)) = &self.metrics {
            parts.push((Priority::Metrics, metrics.clone()));
        }
        let rate = grouped(pace.images_per_second.round() as u64);
        parts.push((Priority::Rate, format!("{rate:>5} img/s")));
        parts.push((Priority::Waiting, format!("wait {:>3.0}%", 100.0 * pace.waiting)));
        let others = pace.processes.map(|processes| format!("others {:>3.0}%", 100.0 * processes.waiting));
        parts.extend(others.map(|others| (Priority::Waiting, others)));
        // Evaluations follow the last step and have their own lines.
        let left = pace.left_seconds.filter(|_| pace.step < self.last_step);
        let left = left.map(|seconds| format!("left {}", rough_time(seconds)));
        parts.extend(left.map(|left| (Priority::Always, left)));
        parts
    }

    /// Shows a line with a bar filled to `done` of `all`, replacing the previous line on a terminal.
    fn show(&mut self, parts: Vec<Segment>, done: u64, all: u64) -> io::Result<()> {
        let ProgressStyle::Terminal { columns, .. } = self.style else {
            return self.line(&joined(&parts));
        };
        // A full row would move the cursor to the next one, and the line could not be redrawn.
        let room = columns.saturating_sub(1);
        let line = fitted(parts, (done, all), room);
        self.drawn = true;
        self.to.write_all(format!("{REDRAW}{line}").as_bytes())?;
        self.to.flush()
    }

    /// Returns whether a line about this work is due: immediately on a terminal, only for long work in a log.
    fn is_work_due(&self, progress: &WorkProgress) -> bool {
        let shown =
            self.work.filter(|(work, seconds)| *work == progress.work && *seconds <= progress.seconds);
        match (self.style, shown) {
            (ProgressStyle::Terminal { .. }, None) => true,
            (ProgressStyle::Terminal { .. }, Some((_, last))) => {
                progress.seconds >= last + WORK_INTERVAL_TERMINAL
            }
            (ProgressStyle::Plain, last) => {
                progress.seconds >= last.map_or(0.0, |(_, last)| last) + WORK_INTERVAL_LOG
            }
        }
    }

    fn note(&mut self, note: &Note) -> io::Result<()> {
        let (start, end) = match self.style {
            ProgressStyle::Terminal { colour: true, .. } => (YELLOW, PLAIN),
            ProgressStyle::Terminal { .. } | ProgressStyle::Plain => ("", ""),
        };
        let Note { step, text, hint } = note;
        let text = shown_lines(text);
        let hint = shown_lines(hint);
        // A note of step 0 is about the run as a whole, even if the run is resumed later.
        let at = if *step == 0 { String::new() } else { format!(" at step {}", grouped(*step)) };
        self.line(&format!("{start}warning{at}: {text}{end}; {hint}"))
    }

    /// Writes metrics with intervals as a permanent line, because they are final results.
    fn result(&mut self, of: &Evaluation) -> io::Result<()> {
        let Some(intervals) = &of.intervals else { return Ok(()) };
        let gap = |metrics: &Metrics| format!("confidence gap {}", signed_gap(metrics, of.samples));
        let calibrated = of.calibrated.as_ref().map(|calibrated| {
            let by = match calibrated.temperature {
                Some(temperature) => format!("at temperature {:.2}", temperature.value()),
                None => format!("with {}", calibrated.kind.name()),
            };
            format!(
                "; {by}: {}{}",
                gap(&calibrated.metrics),
                ece_in_words(calibrated.metrics.ece_15, of.samples)
            )
        });
        self.line(&format!(
            "{} ({}) after {}: error {}, {}{}{}",
            of.split.word(),
            of.model.word(),
            counted(of.step, "step"),
            measured(of.metrics.error, Some(intervals.error)),
            gap(&of.metrics),
            ece_in_words(of.metrics.ece_15, of.samples),
            calibrated.unwrap_or_default(),
        ))
    }

    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        self.line(&format!("finished after {}", counted(finished.step, "step")))?;
        for (rule, selected) in &finished.selected {
            let metrics = &selected.metrics;
            let mark = if selected.chosen_on_test { ", selected on the test split (optimistic)" } else { "" };
            self.line(&format!(
                "  {:<15}  {} error {}, {}{}{mark}",
                rule.word(),
                selected.on.word(),
                percent(metrics.error),
                over_or_under(metrics.confidence_gap),
                ece_in_words(metrics.ece_15, selected.samples),
            ))?;
        }
        if let Some(pseudo) = &finished.pseudo {
            self.line(&pseudo_in_words(pseudo))?;
        }
        Ok(())
    }
}

impl<W: Write> Sink for Progress<W> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        let written = match event {
            Event::Step(step) => {
                self.step = Some(Step::clone(step));
                Ok(())
            }
            Event::Evaluation(evaluation) => {
                self.remember(evaluation);
                self.result(evaluation)
            }
            Event::Note(note) => self.note(note),
            Event::Finished(finished) => self.finished(finished),
        };
        at(SINK_NAME, written)
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        // The same for a log, whose first estimate comes early.
        self.estimated = true;
        let written = self.show(self.status(pace), pace.step, self.last_step);
        at(SINK_NAME, written)
    }

    /// Redraws the line on a terminal; a log gets only one such line, before the first interval.
    fn current_pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        let again = std::mem::replace(&mut self.estimated, true);
        if again && self.style == ProgressStyle::Plain { Ok(()) } else { self.pace(pace) }
    }

    fn work(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        if !self.is_work_due(progress) {
            return Ok(());
        }
        self.work = Some((progress.work, progress.seconds));
        let written = self.show(work_line(progress, self.sample), progress.done, progress.total);
        at(SINK_NAME, written)
    }

    fn flush(&mut self) -> Result<(), RunError> {
        at(SINK_NAME, self.to.flush())
    }
}
