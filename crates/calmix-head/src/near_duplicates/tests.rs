use std::collections::BTreeSet;

use calmix_core::rng::{Domain, Seed, Stream};

use calmix_core::matrix::Matrix;

use super::*;
use crate::projection::Projection;

fn link_by_features(samples: LabelledFeatures<'_>, stop: &AtomicBool) -> Result<Vec<u32>, HeadError> {
    link_copies(samples, stop, |_, _| Ok(false))
}

const WIDTH: usize = 24;
const CLASSES: u32 = 5;

/// Samples of five Gaussian classes: `labels` originals per class, copies of the first `copies` originals, and unlabelled rows.
struct World {
    features: Vec<f32>,
    classes: Vec<u32>,
    unlabelled: Vec<f32>,
    /// The row of the original of each label.
    originals: Vec<usize>,
}

impl World {
    fn new(labels: usize, copies: usize, unlabelled: usize, seed: u64) -> Self {
        let mut stream = Seed(seed).stream(Domain::Init, 0, 0);
        let centres: Vec<f32> = (0..CLASSES as usize * WIDTH).map(|_| stream.normal() as f32).collect();
        let mut world =
            Self { features: Vec::new(), classes: Vec::new(), unlabelled: Vec::new(), originals: Vec::new() };
        for row in 0..labels * CLASSES as usize {
            let class = row as u32 % CLASSES;
            world.features.extend(sample(&centres, class, &mut stream));
            world.classes.push(class);
            world.originals.push(row);
        }
        for original in 0..copies {
            world.add_copy(original, 0.1, &mut stream);
        }
        for row in 0..unlabelled {
            world.unlabelled.extend(sample(&centres, row as u32 % CLASSES, &mut stream));
        }
        world
    }

    fn add_copy(&mut self, original: usize, noise: f32, stream: &mut Stream) {
        let copy: Vec<f32> = self.features[original * WIDTH..][..WIDTH]
            .iter()
            .map(|number| number + noise * stream.normal() as f32)
            .collect();
        self.features.extend(copy);
        self.classes.push(self.classes[original]);
        self.originals.push(original);
    }

    fn groups(&self) -> Vec<u32> {
        with_samples(&self.features, &self.classes, &self.unlabelled, |samples| {
            link_by_features(samples, &AtomicBool::new(false)).unwrap()
        })
    }

    /// The share of copies in the group of their original, and that of labels in a group with another original.
    fn found(&self) -> [f64; 2] {
        let groups = self.groups();
        let copies: Vec<usize> = (0..groups.len()).filter(|&row| self.originals[row] != row).collect();
        let recalled = copies.iter().filter(|&&row| groups[row] == groups[self.originals[row]]).count();
        let mut wrong = 0;
        for (row, group) in groups.iter().enumerate() {
            let mut others = (0..groups.len()).filter(|&other| groups[other] == *group);
            wrong += usize::from(others.any(|other| self.originals[other] != self.originals[row]));
        }
        [recalled as f64 / copies.len().max(1) as f64, wrong as f64 / groups.len() as f64]
    }
}

fn sample(centres: &[f32], class: u32, stream: &mut Stream) -> Vec<f32> {
    let centre = &centres[class as usize * WIDTH..][..WIDTH];
    centre.iter().map(|number| number + stream.normal() as f32).collect()
}

fn with_samples<T>(
    features: &[f32],
    classes: &[u32],
    unlabelled: &[f32],
    work: impl FnOnce(LabelledFeatures<'_>) -> T,
) -> T {
    let rows = (features.len() + unlabelled.len()) / WIDTH;
    let mut mean = vec![0.0; WIDTH];
    for row in features.chunks_exact(WIDTH).chain(unlabelled.chunks_exact(WIDTH)) {
        mean.iter_mut().zip(row).for_each(|(mean, number)| *mean += number / rows as f32);
    }
    work(LabelledFeatures {
        features: Matrix::new(features, classes.len(), WIDTH).unwrap(),
        classes,
        unlabelled: Matrix::new(unlabelled, unlabelled.len() / WIDTH, WIDTH).unwrap(),
        projection: &Projection::new(mean, Vec::new()).unwrap(),
    })
}

#[test]
fn copies_are_linked_and_distinct_samples_are_not() {
    for (labels, unlabelled) in [(4, 0), (4, 500), (10, 0), (40, 0), (40, 2_000)] {
        for share in [0.0, 0.4, 1.0] {
            let copies = (share * f64::from(CLASSES) * labels as f64) as usize;
            let world = World::new(labels, copies, unlabelled, labels as u64);
            let [recalled, wrong] = world.found();
            let cell = format!("{labels} labels, {unlabelled} unlabelled, share {share}");
            assert!(copies == 0 || recalled >= 0.95, "{cell}: {recalled} of the copies");
            assert!(wrong <= 0.02, "{cell}: {wrong} of distinct labels");
        }
    }
}

#[test]
fn distinct_labels_are_seldom_linked() {
    let mut wrong = 0.0;
    for seed in 0..30 {
        wrong += World::new(20, 0, 300, seed).found()[1] / 30.0;
    }
    assert!(wrong <= 0.02, "{wrong}");
}

#[test]
fn labels_of_other_classes_are_not_linked() {
    let mut world = World::new(10, 10, 200, 3);
    assert!(LinkedCopies::of(&world.groups()).linked() >= 9);
    for row in 50..60 {
        world.classes[row] = (world.classes[row] + 1) % CLASSES;
    }
    assert_eq!(LinkedCopies::of(&world.groups()), LinkedCopies { labels: 60, groups: 60 });
}

#[test]
fn group_has_the_number_of_its_first_row() {
    let mut world = World::new(10, 0, 200, 5);
    let mut stream = Seed(9).stream(Domain::Init, 0, 0);
    for original in [7, 7, 7, 3] {
        world.add_copy(original, 0.02, &mut stream);
    }
    let groups = world.groups();
    assert_eq!(groups[..50], (0..50).collect::<Vec<u32>>());
    assert_eq!(groups[50..], [7, 7, 7, 3]);
}

#[test]
fn chain_is_not_one_group() {
    // Each sample is near to the one before, and the last one far from the first.
    let mut world = World::new(10, 0, 500, 11);
    let start = world.features[..WIDTH].to_vec();
    let end = world.features[CLASSES as usize * WIDTH..][..WIDTH].to_vec();
    for step in 1..10 {
        let part = step as f32 / 10.0;
        world.features.extend(start.iter().zip(&end).map(|(a, b)| a + part * (b - a)));
        world.classes.push(0);
        world.originals.push(0);
    }
    let groups = world.groups();
    let chain: BTreeSet<u32> = groups[50..].iter().copied().collect();
    assert!(chain.len() > 1 && chain.len() < 9, "{groups:?}");
}

#[test]
fn identical_vectors_without_distinct_ones_stay_alone() {
    // A table of few different rows: every label has more than ten equals.
    let mut features = Vec::new();
    for row in 0..60 {
        features.extend((0..WIDTH).map(|n| f32::from(u8::from(n % 3 == row % 3))));
    }
    let classes: Vec<u32> = (0..60).map(|row| row % 3).collect();
    let groups =
        with_samples(&features, &classes, &[], |samples| link_by_features(samples, &AtomicBool::new(false)));
    assert_eq!(groups.unwrap(), (0..60).collect::<Vec<u32>>());
}

#[test]
fn few_labels_are_linked_with_care() {
    for labels in [0, 1, 2, 3] {
        let world = World::new(5, 0, 0, 2);
        let features = &world.features[..labels * WIDTH];
        let groups = with_samples(features, &vec![0; labels], &[], |samples| {
            link_by_features(samples, &AtomicBool::new(false)).unwrap()
        });
        assert_eq!(groups, (0..labels as u32).collect::<Vec<u32>>());
    }
}

#[test]
fn comparison_decides_where_features_leave_doubt() {
    let mut world = World::new(20, 0, 300, 4);
    let mut stream = Seed(9).stream(Domain::Init, 0, 0);
    // Far enough from their originals that their features alone do not link most of them.
    for original in 0..60 {
        world.add_copy(original, 0.65, &mut stream);
    }
    let recalled = world.found()[0];
    let mut calls = 0;
    let groups = with_samples(&world.features, &world.classes, &world.unlabelled, |samples| {
        link_copies(samples, &AtomicBool::new(false), |row, lower| {
            assert!(lower < row && world.classes[row] == world.classes[lower]);
            calls += 1;
            Ok::<_, HeadError>(world.originals[row] == world.originals[lower])
        })
    });
    let groups = groups.unwrap();
    let linked = (100..160).filter(|&row| groups[row] as usize == world.originals[row]).count();
    assert!(linked as f64 / 60.0 > recalled + 0.05, "{linked} of 60 with the comparison, {recalled} without");
    assert!(calls < world.classes.len(), "{calls}");
}

#[test]
fn stop_ends_the_comparison() {
    let world = World::new(4, 0, 0, 1);
    let stop = AtomicBool::new(true);
    let stopped =
        with_samples(&world.features, &world.classes, &[], |samples| link_by_features(samples, &stop));
    assert!(matches!(stopped, Err(HeadError::Stopped)));
}
