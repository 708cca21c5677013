//! The part of the groups' plans that this process executes. A mixture is made where its first image is; the weak view
//! of its partner travels there as pixels, in one all-to-all whose lengths follow from the plan.

use std::collections::{BTreeMap, BTreeSet};

use calmix_core::mixup::{Mix, Row};
use calmix_core::plan::StepPlan;
use calmix_data::loader::TrainBatch;
use calmix_engine::shard_plan::{Image, LocalPlan, Mixture, ShardPlan};

use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::{GroupMembership, ParallelLayout};

/// Cuts the plans of the groups of this process into the plans of its shards, and fetches the partners that other
/// processes have.
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
        let at_hand = |row| match group.local_row(row) {
            Some(Row::Labelled(here)) => Image::Labelled(here),
            Some(Row::Unlabelled(here)) => Image::Weak(here),
            // The engine refuses a missing partner.
            None => Image::Partner(partners.get(&row).map_or(usize::MAX, |n| fetched + n)),
        };
        local.shards.extend(group.shards().map(|shard| shard_plan(group, shard, plan, classes, &at_hand)));
    }
    Ok(local)
}

/// The plan of one shard of a group.
fn shard_plan(
    group: &GroupMembership,
    shard: usize,
    plan: &StepPlan,
    classes: usize,
    at_hand: &dyn Fn(Row) -> Image,
) -> ShardPlan {
    let pseudo = plan.pseudo.of_rows(group.rows(shard).unlabelled);
    let mut of_shard = ShardPlan { pseudo, ..ShardPlan::default() };
    for (n, mix) in plan.mixes.iter().enumerate() {
        if group.shard_of(mix.a) == shard {
            let target = plan.targets.get(n * classes..(n + 1) * classes);
            of_shard.targets.extend_from_slice(target.unwrap_or_default());
            of_shard.mixes.push(Mixture::of(mix, at_hand));
        }
    }
    of_shard
}

/// Adds the partners that this process mixes and others have to `pixels`, and returns which is where.
fn fetch(
    group: &GroupMembership,
    plan: &StepPlan,
    batch: &TrainBatch,
    pixels: &mut Vec<u8>,
) -> Result<BTreeMap<Row, usize>, TrainError> {
    if group.processes.size() == 1 || plan.mixes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (own, size, image) = (group.processes.rank(), group.processes.size(), image_bytes(batch));
    // Which rows of process `from` process `to` needs: every process of the group knows all of them.
    let needed = |from: usize, to: usize| -> BTreeSet<Row> {
        let owner = |row| group.owner(group.shard_of(row));
        let needs = |mix: &&Mix| from != to && owner(mix.a) == to && owner(mix.b) == from;
        plan.mixes.iter().filter(needs).map(|mix| mix.b).collect()
    };
    let mut send = Vec::new();
    let mut send_lengths = Vec::with_capacity(size);
    for to in 0..size {
        let rows = needed(own, to);
        send_lengths.push(rows.len() * image);
        for row in rows {
            let view = group.local_row(row).and_then(|here| match here {
                Row::Labelled(i) => batch.labelled.pixels.get(i * image..(i + 1) * image),
                Row::Unlabelled(j) => batch.unlabelled.weak.get(j * image..(j + 1) * image),
            });
            send.extend_from_slice(view.unwrap_or_default());
        }
    }
    let (mut places, mut receive_lengths) = (BTreeMap::new(), Vec::with_capacity(size));
    for from in 0..size {
        let rows = needed(from, own);
        receive_lengths.push(rows.len() * image);
        for row in rows {
            let next = places.len();
            places.insert(row, next);
        }
    }
    pixels.extend(group.processes.all_to_all_known(&send, &send_lengths, &receive_lengths)?);
    Ok(places)
}

/// Bytes of an image.
fn image_bytes(batch: &TrainBatch) -> usize {
    batch.labelled.pixels.len() / batch.labelled.ids.len().max(1)
}
