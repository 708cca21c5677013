//! The rows of a group, gathered from its circle; and its plan, cut into what the parts here have to do. Every process
//! of the circle makes the same plan, and pixels never travel: an image that belongs to a part elsewhere is read again.

use std::collections::BTreeMap;
use std::ops::Range;

use calmix_core::matrix::Matrix;
use calmix_core::mixup::Row;
use calmix_core::observation::{Observation, Rows};
use calmix_core::plan::StepPlan;
use calmix_core::pseudo::PseudoLabels;
use calmix_core::samples::StateError;
use calmix_data::loader as data;
use calmix_engine::task::{Image, Mixture, Task, Tasks};

use super::owners::exchange;
use super::packed::{Packed, Unpacked};
use super::team::Team;

/// All rows of a group's batch.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) labelled: Side,
    pub(super) labels: Vec<u32>,
    pub(super) unlabelled: Side,
}

/// The labelled or the unlabelled rows.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) ids: Vec<u64>,
    pub(super) epochs: Vec<u64>,
    logits: Vec<f32>,
    features: Vec<f32>,
}

/// Rows that are here, as the network saw them and as the loader knows them.
pub(super) struct Seen<'a> {
    pub(super) observation: &'a Observation<'a>,
    pub(super) batch: &'a data::Batch,
}

impl Group {
    /// Gathers the rows of every group that this process takes part in.
    pub(super) fn gather(team: &Team, seen: &Seen<'_>) -> Result<Vec<Self>, StateError> {
        let mut at = (0, 0);
        let mut groups = Vec::new();
        for circle in team.circles() {
            let rows = circle.rows();
            let (x, u) = (at.0 + rows.labelled.len(), at.1 + rows.unlabelled.len());
            let mut packed = Packed::default();
            side(&mut packed, &seen.observation.labelled, &seen.batch.labelled.epochs, at.0..x);
            packed.add(seen.observation.labels.get(at.0..x).unwrap_or_default());
            side(&mut packed, &seen.observation.unlabelled, &seen.batch.unlabelled.epochs, at.1..u);
            at = (x, u);
            let mut group = Self::default();
            for letter in circle.processes.gather_bytes(&packed.bytes()).map_err(exchange)? {
                let mut letter = Unpacked::new(&letter);
                group.labelled.read(&mut letter)?;
                letter.read(&mut group.labels)?;
                group.unlabelled.read(&mut letter)?;
            }
            groups.push(group);
        }
        Ok(groups)
    }

    /// What the network said about the group.
    pub(super) fn observation(&self) -> Result<Observation<'_>, StateError> {
        let Self { labelled, labels, unlabelled } = self;
        // There is always a labelled row, and not always an unlabelled one.
        let rows = labelled.ids.len().max(1);
        let widths = [labelled.logits.len() / rows, labelled.features.len() / rows];
        Ok(Observation { labelled: labelled.rows(widths)?, labels, unlabelled: unlabelled.rows(widths)? })
    }
}

impl Side {
    fn rows(&self, [classes, features]: [usize; 2]) -> Result<Rows<'_>, StateError> {
        let matrix = |numbers, width| {
            let damaged = |_| StateError::Damaged { what: "rows of a group" };
            Matrix::new(numbers, self.ids.len(), width).map_err(damaged)
        };
        Ok(Rows {
            ids: &self.ids,
            logits: matrix(&self.logits, classes)?,
            features: matrix(&self.features, features)?,
        })
    }

    fn read(&mut self, letter: &mut Unpacked<'_>) -> Result<(), StateError> {
        letter.read(&mut self.ids)?;
        letter.read(&mut self.epochs)?;
        letter.read(&mut self.logits)?;
        letter.read(&mut self.features)
    }
}

fn side(packed: &mut Packed, rows: &Rows<'_>, epochs: &[u64], range: Range<usize>) {
    packed.add(rows.ids.get(range.clone()).unwrap_or_default());
    packed.add(epochs.get(range.clone()).unwrap_or_default());
    for matrix in [rows.logits, rows.features] {
        let numbers: Vec<f32> = range.clone().flat_map(|row| matrix.row(row)).copied().collect();
        packed.add(&numbers);
    }
}

/// Some rows of a list.
pub(super) fn some<T: Clone>(all: &[T], rows: &Range<usize>) -> Vec<T> {
    all.get(rows.clone()).unwrap_or_default().to_vec()
}

/// Cuts the plans of the groups that are here into the tasks of the parts that are here. A mixture is made where its
/// first image is; `view` makes the weak view of a row that is elsewhere.
pub(super) fn tasks<E>(
    team: &Team,
    groups: &[Group],
    plans: &[StepPlan],
    classes: usize,
    mut view: impl FnMut(&Group, Row, &mut Vec<u8>) -> Result<(), E>,
) -> Result<Tasks, E> {
    let mut tasks = Tasks { mixing: plans.iter().any(|plan| !plan.mixes.is_empty()), ..Tasks::default() };
    let mut first = (0, 0);
    let mut count = 0;
    for ((circle, group), plan) in team.circles().iter().zip(groups).zip(plans) {
        let here = circle.rows();
        let mut borrowed = BTreeMap::new();
        for part in &circle.parts {
            let pseudo = PseudoLabels {
                labels: some(&plan.pseudo.labels, &part.unlabelled),
                weights: some(&plan.pseudo.weights, &part.unlabelled),
            };
            let mut task = Task { pseudo, ..Task::default() };
            for (n, mix) in plan.mixes.iter().enumerate() {
                let owned = match mix.a {
                    Row::Labelled(i) => part.labelled.contains(&i),
                    Row::Unlabelled(j) => part.unlabelled.contains(&j),
                };
                if !owned {
                    continue;
                }
                task.targets
                    .extend_from_slice(plan.targets.get(n * classes..(n + 1) * classes).unwrap_or_default());
                let mixture = Mixture::of(mix, |row| match row {
                    Row::Labelled(i) if here.labelled.contains(&i) => {
                        Image::Labelled(first.0 + i - here.labelled.start)
                    }
                    Row::Unlabelled(j) if here.unlabelled.contains(&j) => {
                        Image::Weak(first.1 + j - here.unlabelled.start)
                    }
                    row => Image::Borrowed(*borrowed.entry(row).or_insert_with(|| {
                        count += 1;
                        count - 1
                    })),
                });
                task.mixes.push(mixture);
            }
            tasks.parts.push(task);
        }
        let mut rows: Vec<(Row, usize)> = borrowed.into_iter().collect();
        rows.sort_by_key(|&(_, n)| n);
        for (row, _) in rows {
            view(group, row, &mut tasks.borrowed)?;
        }
        first = (first.0 + here.labelled.len(), first.1 + here.unlabelled.len());
    }
    Ok(tasks)
}
