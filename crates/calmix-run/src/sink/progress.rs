//! The progress of a run, for the person who waits for it.
//!
//! On a terminal one line is drawn over and over: a bar, the rate, the time left and the figures that matter; where it
//! is narrow, what matters less is left out.
//! Elsewhere, in the log of a job, there is one plain line an interval. An interval is what lies between two calls
//! of [`Sink::pace`].
//!
//! Written here and not taken from a crate of progress bars: those own the terminal, the clock and a thread, while
//! this needs one line, a writer from outside and the same output in every test.

mod line;
pub mod phrase;

use std::io::{self, Write};

use calmix_core::shown::shown_lines;

use super::{Sink, SinkError, at};
use crate::events::{EvalModel, EvalSet, Evaluation, Event, Finished, Note, Pace, Step};
use line::{Segment, Worth, fitted, whole};
use phrase::{grouped, measured, over_or_under, percent, pseudo_in_words, rough_time};

const WHAT: &str = "the terminal";
/// Back to the first column, and clear what stands there.
const REDRAW: &str = "\r\x1b[K";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// Where the lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStyle {
    /// A terminal this many columns wide: one line, drawn again at every interval.
    Terminal {
        /// Its width, which no line exceeds.
        columns: usize,
        /// Whether warnings may be coloured.
        colour: bool,
    },
    /// A file or a pipe: a new line at every interval, no control characters.
    Plain,
}

/// Shows how a run goes.
#[derive(Debug)]
pub struct Progress<W> {
    to: W,
    style: ProgressStyle,
    last_step: u64,
    step: Option<Step>,
    /// The latest figures of the EMA model, of validation where there is one.
    figures: Option<(EvalSet, f64, f64)>,
    /// Whether a bar stands on the current line of the terminal.
    drawn: bool,
}

impl<W: Write> Progress<W> {
    /// Shows a run that ends after `last_step` updates.
    pub fn new(to: W, style: ProgressStyle, last_step: u64) -> Self {
        Self { to, style, last_step, step: None, figures: None, drawn: false }
    }

    /// A line that stays.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let clear = if std::mem::take(&mut self.drawn) { REDRAW } else { "" };
        writeln!(self.to, "{clear}{line}")
    }

    fn remember(&mut self, seen: &Evaluation) {
        let better =
            self.figures.is_none_or(|(split, ..)| split == seen.split || seen.split == EvalSet::Validation);
        if seen.model == EvalModel::Ema && seen.split != EvalSet::Labelled && better {
            self.figures = Some((seen.split, seen.figures.error, seen.figures.ece_15));
        }
    }

    /// The parts of a line, each as wide in one line as in the next.
    fn status(&self, pace: &Pace) -> Vec<Segment> {
        let total = grouped(self.last_step);
        let step = format!("step {:>width$}/{total}", grouped(pace.step), width = total.len());
        let mut parts = vec![(Worth::Step, step)];
        if let Some(step) = &self.step {
            parts.push((Worth::Loss, format!("loss {:>6.3}", step.loss.total)));
            let used = step.utilisation.map(|used| format!("used {:>3.0} %", 100.0 * used));
            parts.extend(used.map(|used| (Worth::Used, used)));
        }
        if let Some((split, error, ece)) = self.figures {
            let on = if split == EvalSet::Validation { "val" } else { split.name() };
            parts.push((Worth::Most, format!("{on} error {}  ECE {}", percent(error), percent(ece))));
        }
        let rate = grouped(pace.images_per_second.round() as u64);
        parts.push((Worth::Most, format!("{rate:>5} img/s")));
        parts.push((Worth::Waiting, format!("wait {:>3.0} %", 100.0 * pace.waiting)));
        let others = pace.processes.map(|processes| format!("others {:>3.0} %", 100.0 * processes.waiting));
        parts.extend(others.map(|others| (Worth::Waiting, others)));
        let left = pace.left_seconds.map(|seconds| format!("left {}", rough_time(seconds)));
        parts.extend(left.map(|left| (Worth::Most, left)));
        parts
    }

    fn draw(&mut self, pace: &Pace, columns: usize) -> io::Result<()> {
        // A full row would move the cursor to the next one, and the line could not be drawn over.
        let room = columns.saturating_sub(1);
        let line = fitted(self.status(pace), (pace.step, self.last_step), room);
        self.drawn = true;
        write!(self.to, "{REDRAW}{line}")?;
        self.to.flush()
    }

    fn note(&mut self, note: &Note) -> io::Result<()> {
        let (start, end) = match self.style {
            ProgressStyle::Terminal { colour: true, .. } => (YELLOW, PLAIN),
            ProgressStyle::Terminal { .. } | ProgressStyle::Plain => ("", ""),
        };
        let Note { step, text, hint } = note;
        let (text, hint) = (shown_lines(text), shown_lines(hint));
        self.line(&format!("{start}warning at step {}: {text}{end}; {hint}", grouped(*step)))
    }

    /// Figures with their intervals are results, and stay.
    fn result(&mut self, of: &Evaluation) -> io::Result<()> {
        let Some(intervals) = &of.intervals else { return Ok(()) };
        let scaled = of.scaled.as_ref().map(|scaled| {
            let limits = scaled.intervals.as_ref().map(|intervals| intervals.ece_15);
            let ece = measured(scaled.figures.ece_15, limits);
            let gap = over_or_under(scaled.figures.confidence_gap);
            format!("; at temperature {:.2}: ECE {ece}, {gap}", scaled.temperature.value())
        });
        self.line(&format!(
            "{} ({}) after {} steps: error {}  ECE with 15 bins {}, {}{}",
            of.split.name(),
            of.model.name(),
            grouped(of.step),
            measured(of.figures.error, Some(intervals.error)),
            measured(of.figures.ece_15, Some(intervals.ece_15)),
            over_or_under(of.figures.confidence_gap),
            scaled.unwrap_or_default(),
        ))
    }

    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        self.line(&format!("finished after {} steps", grouped(finished.step)))?;
        for (rule, selected) in &finished.selected {
            let figures = &selected.figures;
            let mark = if selected.chosen_on_test { ", chosen on the test split" } else { "" };
            self.line(&format!(
                "  {:<15}  {} error {}  ECE with 15 bins {}, {}{mark}",
                rule.name(),
                selected.on.name(),
                percent(figures.error),
                percent(figures.ece_15),
                over_or_under(figures.confidence_gap)
            ))?;
        }
        if let Some(pseudo) = &finished.pseudo {
            self.line(&pseudo_in_words(pseudo))?;
        }
        Ok(())
    }
}

impl<W: Write> Sink for Progress<W> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
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
        at(WHAT, written)
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), SinkError> {
        let written = match self.style {
            ProgressStyle::Terminal { columns, .. } => self.draw(pace, columns),
            ProgressStyle::Plain => self.line(&whole(&self.status(pace))),
        };
        at(WHAT, written)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        at(WHAT, self.to.flush())
    }
}
