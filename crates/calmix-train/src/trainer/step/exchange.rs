//! The exchange between the two halves of a step: gathers the input of the plan from all processes.
//!
//! One all-gather over all processes: heartbeat, status of the batch, labelled margins of all groups, and the sums for the base
//! algorithm. One all-gather in each group: ids, logits, features and APM of its rows. With one group the two are one. All
//! messages have a fixed size. A single process neither sends nor encodes anything: the plan borrows its rows.

use std::borrow::Cow;
use std::ops::Range;

use calmix_core::matrix::Matrix;
use calmix_core::micro_batching::MicroBatchRows;
use calmix_core::observation::{Observation, PlanInput, RowMargins, Rows};
use calmix_core::pseudo::{Base, BaseState, PseudoLabels, Sums};

use super::visits::BatchVisits;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::{GroupMembership, ParallelLayout};
use crate::trainer::ranks::sync::{BatchStatus, Heartbeat};
use crate::trainer::ranks::wire::{Decoder, Encoder};

/// The gathered data of a step.
pub(crate) struct Gathered<'a> {
    pub(crate) heartbeats: Vec<Heartbeat>,
    pub(crate) status: BatchStatus,
    /// The labelled rows of all groups, in the order of groups, micro-batches and rows.
    pub(crate) labelled_ids: Cow<'a, [u64]>,
    pub(crate) margins: Cow<'a, [f64]>,
    /// Sums over all micro-batches.
    pub(crate) sums: Sums,
    /// The groups of which this process runs micro-batches.
    pub(crate) groups: Vec<GroupRows<'a>>,
}

/// All rows of a group's batch.
#[derive(Debug, Default)]
pub(crate) struct GroupRows<'a> {
    pub(crate) labelled: BatchRows<'a>,
    labels: Cow<'a, [u32]>,
    pub(crate) unlabelled: BatchRows<'a>,
    apm: Option<Vec<f64>>,
    /// The numbers per row: logits, features.
    widths: [usize; 2],
}

/// The labelled or the unlabelled rows of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchRows<'a> {
    pub(crate) ids: Cow<'a, [u64]>,
    pub(crate) logits: Cow<'a, [f32]>,
    features: Cow<'a, [f32]>,
}

/// Gathers the data of a step from all processes.
pub(crate) fn gather<'a>(
    layout: &ParallelLayout,
    seen: Observation<'a>,
    visits: &'a BatchVisits,
    heartbeat: Heartbeat,
    status: &BatchStatus,
) -> Result<Gathered<'a>, TrainError> {
    let groups = || layout.memberships().iter();
    if layout.processes.size() == 1 {
        return Ok(Gathered {
            heartbeats: vec![heartbeat],
            status: status.clone(),
            labelled_ids: seen.labelled.ids.into(),
            margins: visits.margins.as_slice().into(),
            sums: add_up(&visits.sums),
            groups: groups().map(|group| GroupRows::borrowed(&seen, visits, group)).collect(),
        });
    }
    // With one group, its rows are in the same message, which saves a collective.
    let one_group = layout.groups() == 1;
    let mut message = Encoder::default();
    message.add(&heartbeat.bytes());
    message.add(&status.short());
    // The length prefixes of the two lists that are empty without a micro-batch.
    let fixed = message.len() + 2 * size_of::<u64>();
    message.add(seen.labelled.ids);
    message.add(&visits.margins);
    visits.sums.iter().for_each(|sums| message.add(&sums.to_vec()));
    if one_group {
        groups().for_each(|group| encode_rows(&mut message, &seen, visits, group));
    }
    let (mut heartbeats, mut statuses, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    let (mut labelled_ids, mut margins) = (Vec::new(), Vec::new());
    let mut rows = GroupRows::empty_like(&seen, visits);
    let micro_batches = layout.micro_batches_by_rank();
    let message = padded(message.bytes(), fixed, layout.local().len(), &micro_batches);
    for (message, micro_batches) in layout.processes.all_gather_fixed(&message)?.iter().zip(micro_batches) {
        let mut message = Decoder::new(message);
        let unreadable = || TrainError::UnreadableMessage(None);
        heartbeats.push(Heartbeat::read(&message.list::<u8>()?).ok_or_else(unreadable)?);
        statuses.push(<[u64; 3]>::try_from(message.list()?).map_err(|_| unreadable())?);
        message.read(&mut labelled_ids)?;
        message.read(&mut margins)?;
        for _ in micro_batches.clone() {
            sums.push(Sums::from_slice(&message.list()?));
        }
        if one_group {
            for _ in micro_batches {
                rows.decode(&mut message)?;
            }
        }
    }
    let gathered_groups = if one_group {
        vec![rows]
    } else {
        groups().map(|group| gather_group(group, &seen, visits)).collect::<Result<_, _>>()?
    };
    Ok(Gathered {
        heartbeats,
        status: status.add_up(&statuses, &layout.processes)?,
        labelled_ids: labelled_ids.into(),
        margins: margins.into(),
        sums: add_up(&sums),
        groups: gathered_groups,
    })
}

/// Gathers the rows of a group from the processes that run its micro-batches.
fn gather_group<'a>(
    group: &GroupMembership,
    seen: &Observation<'a>,
    visits: &'a BatchVisits,
) -> Result<GroupRows<'a>, TrainError> {
    if group.processes.size() == 1 {
        return Ok(GroupRows::borrowed(seen, visits, group));
    }
    let mut message = Encoder::default();
    encode_rows(&mut message, seen, visits, group);
    let mut rows = GroupRows::empty_like(seen, visits);
    let message = padded(message.bytes(), 0, group.micro_batches().len(), group.members());
    for (message, micro_batches) in group.processes.all_gather_fixed(&message)?.iter().zip(group.members()) {
        let mut message = Decoder::new(message);
        for _ in micro_batches.clone() {
            rows.decode(&mut message)?;
        }
    }
    Ok(rows)
}

/// Pads a message to the length of the longest one, that of the process with the most micro-batches, because all messages of a
/// gather have the same length. A message has `fixed` bytes, and the same number of bytes for each micro-batch.
fn padded(mut message: Vec<u8>, fixed: usize, local: usize, micro_batches: &[Range<usize>]) -> Vec<u8> {
    let max_count = micro_batches.iter().map(Range::len).max().unwrap_or(0);
    let each = message.len().saturating_sub(fixed) / local.max(1);
    message.resize(fixed + each * max_count, 0);
    message
}

/// Encodes the rows of the group's micro-batches on this process, micro-batch by micro-batch.
fn encode_rows(message: &mut Encoder, seen: &Observation<'_>, visits: &BatchVisits, group: &GroupMembership) {
    for micro_batch in group.local.clone() {
        let MicroBatchRows { labelled: x, unlabelled: u } = group.rows(micro_batch);
        encode_batch_rows(message, &seen.labelled.range(x.clone()));
        message.add(seen.labels.get(x).unwrap_or_default());
        encode_batch_rows(message, &seen.unlabelled.range(u));
        let apm = visits.micro_batches.get(micro_batch).and_then(|visit| visit.apm.as_deref());
        message.add(apm.unwrap_or_default());
    }
}

fn encode_batch_rows(message: &mut Encoder, rows: &Rows<'_>) {
    message.add(rows.ids);
    message.add(rows.logits.data());
    message.add(rows.features.data());
}

impl<'a> GroupRows<'a> {
    /// Borrows the rows of a group whose micro-batches all run on this process.
    fn borrowed(seen: &Observation<'a>, visits: &BatchVisits, group: &GroupMembership) -> Self {
        let MicroBatchRows { labelled: x, unlabelled: u } = group.local_rows();
        let visits = visits.micro_batches.get(group.local.clone()).unwrap_or_default();
        let apm: Option<Vec<&[f32]>> = visits.iter().map(|visit| visit.apm.as_deref()).collect();
        let rows = |rows: Rows<'a>| BatchRows {
            ids: rows.ids.into(),
            logits: rows.logits.data().into(),
            features: rows.features.data().into(),
        };
        Self {
            labelled: rows(seen.labelled.range(x.clone())),
            labels: seen.labels.get(x).unwrap_or_default().into(),
            unlabelled: rows(seen.unlabelled.range(u)),
            apm: apm.map(|apm| apm.concat().into_iter().map(f64::from).collect()),
            widths: widths(seen),
        }
    }

    fn empty_like(seen: &Observation<'_>, visits: &BatchVisits) -> Self {
        let averages = visits.micro_batches.first().is_some_and(|visit| visit.apm.is_some());
        Self { apm: averages.then(Vec::new), widths: widths(seen), ..Self::default() }
    }

    /// Decodes and adds the rows of the next micro-batch.
    fn decode(&mut self, message: &mut Decoder<'_>) -> Result<(), TrainError> {
        self.labelled.decode(message)?;
        message.read(self.labels.to_mut())?;
        self.unlabelled.decode(message)?;
        let apm = message.list::<f32>()?;
        if let Some(all) = &mut self.apm {
            all.extend(apm.into_iter().map(f64::from));
        }
        Ok(())
    }

    /// Returns the input of the group's plan.
    pub(crate) fn known<'b>(
        &'b self,
        aum: Option<&'b [f64]>,
        sums: &'b Sums,
    ) -> Result<PlanInput<'b>, TrainError> {
        let margins = aum.zip(self.apm.as_deref()).map(|(aum, apm)| RowMargins { aum, apm });
        let seen = Observation {
            labelled: self.labelled.rows(self.widths)?,
            labels: &self.labels,
            unlabelled: self.unlabelled.rows(self.widths)?,
        };
        Ok(PlanInput { observation: seen, margins, sums })
    }
}

impl BatchRows<'_> {
    fn decode(&mut self, message: &mut Decoder<'_>) -> Result<(), TrainError> {
        message.read(self.ids.to_mut())?;
        message.read(self.logits.to_mut())?;
        message.read(self.features.to_mut())
    }

    fn rows(&self, [classes, features]: [usize; 2]) -> Result<Rows<'_>, TrainError> {
        let matrix = |numbers, width| {
            Matrix::new(numbers, self.ids.len(), width).map_err(|_| TrainError::UnreadableMessage(None))
        };
        Ok(Rows {
            ids: &self.ids,
            logits: matrix(&self.logits, classes)?,
            features: matrix(&self.features, features)?,
        })
    }
}

/// Gathers the pseudo-labels of the only group for the second pass of the released code, by one all-gather of its logits. The
/// statistics of the base algorithm count the batch a second time. `None` if a logit is not finite.
pub(crate) fn gather_again(
    layout: &ParallelLayout,
    seen: &Observation<'_>,
    base: &Base,
    state: &mut BaseState,
) -> Result<Option<PseudoLabels>, TrainError> {
    let mut message = Encoder::default();
    for micro_batch in layout.partition().micro_batches {
        message.add(seen.labelled.logits.range(micro_batch.labelled).data());
        message.add(seen.unlabelled.logits.range(micro_batch.unlabelled).data());
    }
    let (classes, mut sums, mut logits) = (seen.classes(), Vec::new(), Vec::new());
    let mut is_finite = true;
    let micro_batches = layout.micro_batches_by_rank();
    let message = padded(message.bytes(), 0, layout.local().len(), &micro_batches);
    for (message, micro_batches) in layout.processes.all_gather_fixed(&message)?.iter().zip(micro_batches) {
        let mut message = Decoder::new(message);
        for _ in micro_batches {
            let (x, u): (Vec<f32>, Vec<f32>) = (message.list()?, message.list()?);
            is_finite &= x.iter().chain(&u).all(|logit| logit.is_finite());
            sums.push(base.sums(matrix(&x, classes)?, matrix(&u, classes)?));
            logits.extend(u);
        }
    }
    if !is_finite {
        return Ok(None);
    }
    Ok(Some(base.pseudo_label(matrix(&logits, classes)?, &add_up(&sums), state)?))
}

fn matrix(numbers: &[f32], width: usize) -> Result<Matrix<'_>, TrainError> {
    Matrix::new(numbers, numbers.len() / width.max(1), width).map_err(|_| TrainError::UnreadableMessage(None))
}

fn widths(seen: &Observation<'_>) -> [usize; 2] {
    [seen.labelled.logits.width(), seen.labelled.features.width()]
}

/// Adds the sums of all micro-batches, in order.
fn add_up(all: &[Sums]) -> Sums {
    let mut sums = all.first().cloned().unwrap_or_default();
    all.iter().skip(1).for_each(|next| sums.add(next));
    sums
}
