//! The logits of many vectors: one thread reads blocks ahead, and several threads share the rows of a block.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::{io, thread};

use anyhow::Result;
use calmix_data::error::DataError;
use calmix_formats::vectors::{VectorBlock, VectorSource};
use calmix_head::{HeadError, parallel};
use calmix_metrics::shift::ObservedRow;

use super::row::escaped;
use crate::model::vector_model::VectorModel;
use crate::predict::input::{LogitBatch, NamedInput};
use crate::process::stop::receive;

/// The maximum number of rows per block. Three blocks are in memory at a time: one is read, one waits, one is predicted.
pub const BLOCK_ROWS: usize = 4096;
/// The number of rows that one thread predicts at a time.
const ROWS_PER_TASK: usize = 256;

/// The batches of some rows of a source. The iterator ends early if the command has to stop.
#[derive(Debug)]
pub struct VectorBatches<'a> {
    model: &'a VectorModel,
    /// Each block, then `None` at the end.
    blocks: Receiver<Result<Option<VectorBlock>, DataError>>,
    /// The number of numbers per row, in all its views.
    numbers: usize,
    threads: usize,
    stop: &'a AtomicBool,
    is_over: bool,
}

impl<'a> VectorBatches<'a> {
    /// Starts to read `rows`. The vectors of the source must have the model's length.
    pub fn new(
        model: &'a VectorModel,
        source: VectorSource,
        rows: Range<u64>,
        threads: usize,
        stop: &'a AtomicBool,
    ) -> io::Result<Self> {
        let numbers = source.views() * source.width();
        let (sender, blocks) = mpsc::sync_channel(1);
        // The thread is never joined, because a file server may hang forever.
        let read = move || send(&source, rows, numbers, &sender);
        thread::Builder::new().name("vectors".to_owned()).spawn(read)?;
        Ok(Self { model, blocks, numbers, threads, stop, is_over: false })
    }

    fn batch(&self, block: VectorBlock) -> Result<LogitBatch> {
        let tasks: Vec<&[f32]> = block.vectors.chunks(ROWS_PER_TASK * self.numbers).collect();
        let model = self.model;
        let numbers = self.numbers;
        let predicted = parallel::run(tasks.len(), self.threads, |n| predict_task(model, tasks[n], numbers));
        let mut problems = Vec::new();
        let mut logits = Vec::new();
        let mut observed = Vec::new();
        for predicted_rows in predicted {
            let rows = predicted_rows?;
            problems.extend(rows.problems);
            logits.extend(rows.logits);
            observed.extend(rows.observed);
        }
        let mut ids = block.ids.unwrap_or_default().into_iter();
        let mut inputs = Vec::with_capacity(problems.len());
        for (row, problem) in (block.first..).zip(problems) {
            inputs.push(NamedInput { name: row_name(ids.next().as_deref(), row), problem });
        }
        Ok(LogitBatch { inputs, logits, features: None, observed })
    }
}

impl Iterator for VectorBatches<'_> {
    type Item = Result<LogitBatch>;

    fn next(&mut self) -> Option<Result<LogitBatch>> {
        if self.is_over {
            return None;
        }
        let block = receive(&self.blocks, self.stop, "the vectors");
        let block = block.and_then(|block| Ok(block.transpose()?.flatten())).transpose();
        self.is_over = !matches!(block, Some(Ok(_)));
        Some(block?.and_then(|block| self.batch(block)))
    }
}

/// Returns the name of a row: its id, or its number from 0.
pub fn row_name(id: Option<&str>, row: u64) -> String {
    id.map_or_else(|| row.to_string(), |id| escaped(id.as_bytes()))
}

/// Sends the blocks of these rows, then `None`.
fn send(
    source: &VectorSource,
    rows: Range<u64>,
    numbers: usize,
    sender: &SyncSender<Result<Option<VectorBlock>, DataError>>,
) {
    let mut left = rows.end.saturating_sub(rows.start);
    let mut blocks = source.unchecked_blocks(rows.start, BLOCK_ROWS);
    while left > 0 {
        // Too few rows: the receiver notices that the end is missing.
        let Some(block) = blocks.next() else { return };
        let block = block.map(|block| first_rows(block, left, numbers));
        left -= block.as_ref().map_or(left, |block| (block.vectors.len() / numbers) as u64);
        // An error means that the receiver is gone and needs nothing more.
        if sender.send(block.map(Some).map_err(DataError::from)).is_err() {
            return;
        }
    }
    let _ = sender.send(Ok(None));
}

/// The predictions of some rows.
struct TaskRows {
    /// The problem of each row, if any.
    problems: Vec<Option<String>>,
    /// The logits of the rows without one.
    logits: Vec<f32>,
    /// How these rows compare with the reference of the model.
    observed: Vec<ObservedRow>,
}

fn predict_task(model: &VectorModel, rows: &[f32], numbers: usize) -> Result<TaskRows, HeadError> {
    let mut problems = Vec::with_capacity(rows.len() / numbers);
    let mut vectors = Vec::with_capacity(rows.len());
    for row in rows.chunks_exact(numbers) {
        // Of several views, the first is the unaugmented sample.
        let vector = &row[..model.width()];
        let bad = vector.iter().position(|number| !number.is_finite());
        problems.push(bad.map(|column| format!("number {column} of the vector is {}", vector[column])));
        if bad.is_none() {
            vectors.extend_from_slice(vector);
        }
    }
    let mut logits = match model.logits(&vectors) {
        Ok(logits) => logits,
        Err(error) => {
            let kept = without_too_long(model, &vectors, &mut problems);
            if kept.len() == vectors.len() {
                return Err(error);
            }
            vectors = kept;
            model.logits(&vectors)?
        }
    };
    if logits.iter().any(|logit| !logit.is_finite()) {
        let classes = model.rule().info().classes.len();
        vectors = with_finite_logits(&vectors, &logits, model.width(), classes);
        logits = without_infinite(&logits, classes, &mut problems);
    }
    Ok(TaskRows { problems, logits, observed: model.shift_check().observe(&vectors)? })
}

/// Returns the vectors whose logits are finite.
fn with_finite_logits(vectors: &[f32], logits: &[f32], width: usize, classes: usize) -> Vec<f32> {
    let rows = vectors.chunks_exact(width).zip(logits.chunks_exact(classes));
    let finite = rows.filter(|(_, logits)| logits.iter().all(|logit| logit.is_finite()));
    finite.flat_map(|(vector, _)| vector).copied().collect()
}

/// Returns the vectors that are not too long; sets the problem of the others.
fn without_too_long(model: &VectorModel, vectors: &[f32], problems: &mut [Option<String>]) -> Vec<f32> {
    let mut kept = Vec::with_capacity(vectors.len());
    let readable = problems.iter_mut().filter(|problem| problem.is_none());
    for (problem, vector) in readable.zip(vectors.chunks_exact(model.width())) {
        if model.is_too_long(vector) {
            *problem = Some("the vector is longer than the largest 32-bit number".to_owned());
        } else {
            kept.extend_from_slice(vector);
        }
    }
    kept
}

/// Cuts a block after its first `rows` rows.
fn first_rows(mut block: VectorBlock, rows: u64, numbers: usize) -> VectorBlock {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    block.vectors.truncate(rows.saturating_mul(numbers));
    if let Some(ids) = &mut block.ids {
        ids.truncate(rows);
    }
    block
}

/// Returns the logits of the rows whose logits are finite; sets the problem of the others.
fn without_infinite(logits: &[f32], classes: usize, problems: &mut [Option<String>]) -> Vec<f32> {
    let mut finite = Vec::with_capacity(logits.len());
    let readable = problems.iter_mut().filter(|problem| problem.is_none());
    for (problem, row) in readable.zip(logits.chunks_exact(classes)) {
        if row.iter().all(|logit| logit.is_finite()) {
            finite.extend_from_slice(row);
        } else {
            let text = "the outputs of the head are not finite: the vector has huge numbers, or the weights are damaged";
            *problem = Some(text.to_owned());
        }
    }
    finite
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_infinite_logits_have_a_problem() {
        let unread = || Some("unread".to_owned());
        let mut problems = [None, unread(), None, None];
        let logits = [1.0, 2.0, f32::NAN, 3.0, 4.0, 5.0];
        assert_eq!(without_infinite(&logits, 2, &mut problems), [1.0, 2.0, 4.0, 5.0]);
        assert!(problems[0].is_none() && problems[1] == unread() && problems[3].is_none());
        assert!(problems[2].as_ref().unwrap().contains("not finite"));
    }

    #[test]
    fn block_is_cut_at_the_end_of_the_shard() {
        let ids = ["a", "b", "c"].map(str::to_owned).to_vec();
        let block =
            VectorBlock { first: 5, vectors: vec![0.0; 12], ids: Some(ids), ..VectorBlock::default() };
        let cut = first_rows(block.clone(), 2, 4);
        assert_eq!(cut.vectors.len(), 8);
        assert_eq!(cut.ids.unwrap(), ["a", "b"]);
        assert_eq!(first_rows(block.clone(), u64::MAX, 4), block);
    }

    #[test]
    fn row_without_id_is_named_by_its_number() {
        assert_eq!(row_name(None, 7), "7");
        assert_eq!(row_name(Some("a\nb"), 7), "a\\x0ab");
    }
}
