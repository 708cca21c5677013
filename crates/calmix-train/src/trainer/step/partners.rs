//! The part of the groups' plans that this process executes. A mixture is computed by the process of its first image; the weak
//! view of the partner is sent there as pixels, in one all-to-all whose lengths follow from the plan.

use std::collections::{BTreeMap, BTreeSet};

use calmix_core::mixup::{Mix, Row};
use calmix_core::plan::StepPlan;
use calmix_data::loader::TrainBatch;
use calmix_engine::micro_batch_plan::{Image, LocalPlan, MicroBatchPlan, Mixture};

use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::{GroupMembership, ParallelLayout};

/// Splits the plans of this process's groups into plans of its micro-batches, and fetches the partners that other processes have.
pub(crate) fn local_plan(
    layout: &ParallelLayout,
    plans: &[StepPlan],
    batch: &TrainBatch,
    classes: usize,
) -> Result<LocalPlan, TrainError> {
    let mut local = LocalPlan::default();
    for (group, plan) in layout.memberships().iter().zip(plans) {
        let fetched = local.partners.len() / image_bytes(batch).max(1);
        let partners = fetch(group, plan, batch, &mut local.partners)?;
        let image_of = |row| match group.local_row(row) {
            Some(Row::Labelled(i)) => Image::Labelled(i),
            Some(Row::Unlabelled(j)) => Image::Weak(j),
            // An index that does not exist makes the engine refuse the plan.
            None => Image::Partner(partners.get(&row).map_or(usize::MAX, |n| fetched + n)),
        };
        for micro_batch in group.micro_batches() {
            local.micro_batches.push(micro_batch_plan(group, micro_batch, plan, classes, &image_of));
        }
    }
    Ok(local)
}

/// Returns the plan of one micro-batch of a group.
fn micro_batch_plan(
    group: &GroupMembership,
    micro_batch: usize,
    plan: &StepPlan,
    classes: usize,
    image_of: &dyn Fn(Row) -> Image,
) -> MicroBatchPlan {
    let pseudo = plan.pseudo.of_rows(group.rows(micro_batch).unlabelled);
    let mut planned = MicroBatchPlan { pseudo, ..MicroBatchPlan::default() };
    for (n, mix) in plan.mixes.iter().enumerate() {
        if group.micro_batch_of(mix.a) == micro_batch {
            let target = plan.targets.get(n * classes..(n + 1) * classes);
            planned.targets.extend_from_slice(target.unwrap_or_default());
            planned.mixes.push(Mixture::of(mix, image_of));
        }
    }
    planned
}

/// Fetches the partners that this process mixes and others have. Appends them to `pixels`, and returns the index of each.
fn fetch(
    group: &GroupMembership,
    plan: &StepPlan,
    batch: &TrainBatch,
    pixels: &mut Vec<u8>,
) -> Result<BTreeMap<Row, usize>, TrainError> {
    if group.processes.size() == 1 || plan.mixes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rank = group.processes.rank();
    let size = group.processes.size();
    let image = image_bytes(batch);
    // The rows of process `from` that process `to` needs. Every process of the group can compute this from the plan.
    let needed = |from: usize, to: usize| -> BTreeSet<Row> {
        let owner = |row| group.owner(group.micro_batch_of(row));
        let needs = |mix: &&Mix| from != to && owner(mix.a) == to && owner(mix.b) == from;
        plan.mixes.iter().filter(needs).map(|mix| mix.b).collect()
    };
    let mut send = Vec::new();
    let mut send_lengths = Vec::with_capacity(size);
    for to in 0..size {
        let rows = needed(rank, to);
        send_lengths.push(rows.len() * image);
        for row in rows {
            let view = group.local_row(row).and_then(|row| match row {
                Row::Labelled(i) => batch.labelled.pixels.get(i * image..(i + 1) * image),
                Row::Unlabelled(j) => batch.unlabelled.weak.get(j * image..(j + 1) * image),
            });
            send.extend_from_slice(view.unwrap_or_default());
        }
    }
    let (mut places, mut receive_lengths) = (BTreeMap::new(), Vec::with_capacity(size));
    for from in 0..size {
        let rows = needed(from, rank);
        receive_lengths.push(rows.len() * image);
        for row in rows {
            let next = places.len();
            places.insert(row, next);
        }
    }
    pixels.extend(group.processes.all_to_all_known(&send, &send_lengths, &receive_lengths)?);
    Ok(places)
}

fn image_bytes(batch: &TrainBatch) -> usize {
    batch.labelled.pixels.len() / batch.labelled.ids.len().max(1)
}
