use calmix_core::rng::{Domain, Seed, Stream};

use super::*;

const DELTA: f64 = 0.05;
const REPEATS: usize = 2_000;

fn is_exhaustive() -> bool {
    std::env::var_os("CALMIX_EXHAUSTIVE").is_some_and(|value| value == "1")
}

fn counts(answers: u64, wrong: u64) -> AnswerCounts {
    AnswerCounts { answers, wrong }
}

/// The largest number of errors with which a limit is shown, by the number of answers (from one); −1 if none is.
fn most_errors(rows: Option<u64>, limit: f64, looks: u64) -> Vec<i64> {
    let test = LimitTest::new(rows, limit, DELTA).unwrap();
    let mut most = -1;
    (1..=looks)
        .map(|answers| {
            // With one more answer, at most one more error is allowed.
            let next = counts(answers, (most + 1) as u64);
            if next.wrong <= answers && test.null.ln_evidence(next) >= test.needed {
                most += 1;
            }
            most
        })
        .collect()
}

/// L(M) and the mixture, term by term as the module's documentation defines them.
fn brute_force(rows: u64, limit_errors: u64, counts: AnswerCounts) -> f64 {
    let falling = |x: u64, factors: u64| (0..factors).map(|k| x as f64 - k as f64).product::<f64>();
    let likelihood = |errors: u64| {
        falling(errors, counts.wrong) * falling(rows - errors, counts.right()) / falling(rows, counts.answers)
    };
    let share = limit_errors as f64 / rows as f64;
    let a = 10.0 * share;
    let b = 30.0 - a;
    let rising = |x: f64, factors: u64| (0..factors).map(|k| x + k as f64).product::<f64>();
    let choose = |k: u64| falling(rows, k) / falling(k, k);
    let weight = |k: u64| choose(k) * rising(a, k) * rising(b, rows - k) / rising(30.0, rows);
    let total: f64 = (0..limit_errors).map(weight).sum();
    let mixed: f64 = (0..limit_errors).map(|k| weight(k) / total * likelihood(k)).sum();
    (0.3 * likelihood(0) + 0.7 * mixed) / likelihood(limit_errors)
}

#[test]
fn evidence_is_its_definition_on_small_pools() {
    for rows in 1..=14 {
        for errors in 1..=rows {
            let null = Null::at_least(Errors::Count { errors, rows });
            for answers in 0..=rows {
                for wrong in 0..=answers.min(errors) {
                    let counts = counts(answers, wrong);
                    let evidence = libm::exp(null.ln_evidence(counts));
                    if counts.right() > rows - errors {
                        assert_eq!(evidence, f64::INFINITY);
                        continue;
                    }
                    let expected = brute_force(rows, errors, counts);
                    let close = (evidence - expected).abs() <= 1e-10 * expected.max(1e-3);
                    assert!(close, "{rows} rows, {errors} errors, {counts:?}: {evidence} {expected}");
                }
            }
        }
    }
}

/// Exact, by recursion over all sequences of answers: the probability that a limit is ever shown although one more row is wrong
/// than it allows.
#[test]
fn false_probability_is_below_delta_exactly() {
    for (rows, limit) in [(200, 0.01), (200, 0.05), (200, 0.1), (1_000, 0.02), (1_000, 0.05), (60, 0.5)] {
        let errors = (limit * rows as f64).floor() as u64 + 1;
        let most = most_errors(Some(rows), limit, rows);
        let mut alive = vec![1.0];
        let mut shown = 0.0;
        for (answers, &most) in (0..rows).zip(&most) {
            let mut next = vec![0.0; alive.len() + 1];
            for (wrong, probability) in (0..).zip(&alive) {
                let p = (errors - (wrong as u64).min(errors)) as f64 / (rows - answers) as f64;
                next[wrong] += probability * (1.0 - p);
                next[wrong + 1] += probability * p;
            }
            let rejected = usize::try_from(most + 1).unwrap().min(next.len());
            shown += next[..rejected].iter().sum::<f64>();
            next[..rejected].fill(0.0);
            alive = next;
        }
        assert!(shown <= DELTA, "{rows} rows, limit {limit}: {shown}");
        assert!(shown > 0.2 * DELTA, "{rows} rows, limit {limit}: {shown} wastes answers");
    }
}

/// A sequence of nested shares at the boundary: the numbers of wrong rows in each, beyond those of the smaller ones.
struct World {
    sizes: Vec<u64>,
    wrong: Vec<u64>,
}

impl World {
    /// Answers rows in random order; returns whether the first share that has too many errors is certified, and with it all
    /// before it. `most` is the table of each share.
    fn is_falsely_certified(&self, most: &[Vec<i64>], is_true: &[bool], stream: &mut Stream) -> bool {
        let mut left: Vec<u64> = Vec::new();
        let mut left_wrong = self.wrong.clone();
        for (share, &rows) in self.sizes.iter().enumerate() {
            left.push(rows - if share == 0 { 0 } else { self.sizes[share - 1] });
        }
        let mut answers = vec![0_usize; left.len()];
        let mut wrong = vec![0_i64; left.len()];
        let mut shown = vec![false; left.len()];
        let looks = most.iter().map(Vec::len).max().unwrap();
        let mut rows = *self.sizes.last().unwrap();
        while rows > 0 && answers[left.len() - 1] < looks {
            // The row belongs to a ring between two shares, and is wrong or right.
            let mut row = stream.below(rows);
            let ring = left.iter().position(|&size| {
                let is_here = row < size;
                row -= if is_here { 0 } else { size };
                is_here
            });
            let ring = ring.unwrap();
            let is_wrong = row < left_wrong[ring];
            left[ring] -= 1;
            left_wrong[ring] -= u64::from(is_wrong);
            rows -= 1;
            for share in ring..left.len() {
                answers[share] += 1;
                wrong[share] += i64::from(is_wrong);
                if let Some(&most) = most[share].get(answers[share] - 1) {
                    shown[share] |= wrong[share] <= most;
                }
            }
            let certified = shown.iter().position(|&shown| !shown).unwrap_or(shown.len());
            if is_true[..certified].iter().any(|&is_true| !is_true) {
                return true;
            }
        }
        false
    }
}

/// False certificates at the boundary, where every look could be the last, with one share and with sequences of three whose
/// first, second or third share is the first with too many errors.
#[test]
fn false_certificates_are_rare_at_the_boundary() {
    let bound = DELTA + 2.0 * (DELTA * (1.0 - DELTA) / REPEATS as f64).sqrt();
    for limit in [0.01_f64, 0.02, 0.05, 0.1] {
        // A limit of 1% is not shown before 320 answers.
        let looks = if is_exhaustive() { 10_000 } else { (6.0 / limit).max(300.0) as u64 };
        for rows in [200, 2_000, 20_000, 1_000_000] {
            let mut sequences = vec![vec![rows]];
            if is_exhaustive() || rows == 200 || rows == 20_000 {
                sequences.push(vec![rows / 4, rows / 2, rows]);
            }
            for (kind, shares) in sequences.into_iter().enumerate() {
                let allowed = |size: u64| (limit * size as f64).floor() as u64;
                let most: Vec<Vec<i64>> =
                    shares.iter().map(|&size| most_errors(Some(size), limit, looks.min(size))).collect();
                for first_false in 0..shares.len() {
                    let mut wrong = Vec::new();
                    let mut total = 0;
                    for (share, &size) in shares.iter().enumerate() {
                        let errors = if share < first_false { allowed(size) / 5 } else { allowed(size) + 1 };
                        wrong.push(errors - total);
                        total = errors;
                    }
                    let world = World { sizes: shares.clone(), wrong };
                    let is_true: Vec<bool> = (0..shares.len()).map(|share| share < first_false).collect();
                    let seed = Seed(rows + kind as u64);
                    let is_false = |repeat: &u64| {
                        let mut stream = seed.stream(Domain::Bootstrap, first_false as u64, *repeat);
                        world.is_falsely_certified(&most, &is_true, &mut stream)
                    };
                    let found = (0..REPEATS as u64).filter(is_false).count() as f64 / REPEATS as f64;
                    let cell = format!("limit {limit}, {shares:?} rows, share {first_false}: {found}");
                    assert!(found <= bound, "{cell}");
                }
            }
        }
    }
}

#[test]
fn few_answers_without_error_suffice() {
    let needed =
        |rows, limit| most_errors(rows, limit, 1_000).iter().position(|&most| most >= 0).unwrap() + 1;
    for (limit, at_most) in [(0.05, 66), (0.02, 159)] {
        for rows in [Some(1_000), Some(6_000), Some(20_000), Some(1_000_000), None] {
            let answers = needed(rows, limit);
            assert!(answers <= at_most, "{rows:?} rows, limit {limit}: {answers}");
            // Without looks on the way, so many are needed: 0.95ⁿ ≤ 0.05.
            let fixed = (libm::log(DELTA) / libm::log(1.0 - limit)).ceil() as usize;
            assert!(rows.is_some_and(|rows| rows < 6_000) || answers >= fixed, "{rows:?} {answers} {fixed}");
        }
    }
}

#[test]
fn endless_rows_are_the_limit_of_many() {
    for share in [0.01, 0.05, 0.3] {
        let endless = Null::at_least(Errors::Share(share));
        let rows = 1_u64 << 31;
        let errors = (share * rows as f64) as u64;
        // The tail of so many rows would take seconds, so their likelihood is compared.
        let edge = Errors::Count { errors, rows };
        for counts in [counts(10, 0), counts(100, 3), counts(900, 20)] {
            let near = edge.ln_likelihood(counts);
            let expected = endless.errors.ln_likelihood(counts);
            assert!((near - expected).abs() < 1e-4 * counts.answers as f64, "{near} {expected}");
        }
        let many = Null::at_least(Errors::Count { errors: (share * 1e6) as u64, rows: 1_000_000 });
        for counts in [counts(10, 0), counts(100, 3), counts(300, 5)] {
            let near = many.ln_evidence(counts);
            let expected = endless.ln_evidence(counts);
            assert!((near - expected).abs() < 2e-3 * expected.abs().max(1.0), "{counts:?} {near} {expected}");
        }
    }
}

/// On every small pool and all answers: the hypotheses that are rejected lie on one side, so bisection finds the bound, and
/// further errors never help.
#[test]
fn evidence_is_monotone() {
    for rows in [5, 12, 40] {
        for answers in 1..=rows {
            for wrong in 0..=answers {
                let counts = counts(answers, wrong);
                let low = |errors| Null::at_most(Errors::Count { errors, rows }).ln_evidence(counts);
                let high = |errors| Null::at_least(Errors::Count { errors, rows }).ln_evidence(counts);
                for errors in wrong.max(1)..rows {
                    let context = format!("{rows} rows, {counts:?}, {errors} errors");
                    for needed in [libm::log(10.0), libm::log(20.0), libm::log(100.0)] {
                        assert!(high(errors) < needed || high(errors + 1) >= needed, "{context}");
                        let is_low = low(errors + 1) >= needed;
                        assert!(!is_low || low(errors) >= needed, "{context}");
                    }
                    let next = AnswerCounts { answers, wrong: wrong + 1 };
                    if wrong < answers {
                        let more = Null::at_least(Errors::Count { errors, rows }).ln_evidence(next);
                        assert!(more <= high(errors) + 1e-9, "{context}: {more}");
                    }
                }
            }
        }
    }
}

#[test]
fn bounds_of_a_whole_pool_are_exact() {
    let mut bound = ErrorBound::new(Some(40), DELTA).unwrap();
    for row in 0..40 {
        bound.observe(row % 4 == 0).unwrap();
        assert!(bound.low() <= 0.25 && bound.high() >= 0.25, "{bound:?}");
    }
    assert_eq!((bound.low(), bound.high()), (0.25, 0.25));
    assert!(bound.observe(false).is_err());
}

/// Both sides of the bound, on a pool and on a stream, at every look: each is broken in at most 5%.
#[test]
fn bounds_hold_at_every_look() {
    let repeats = if is_exhaustive() { 2_000 } else { 200 };
    let limit = DELTA + 3.0 * (DELTA * (1.0 - DELTA) / repeats as f64).sqrt();
    for (rows, share) in [(Some(500), 0.04), (None, 0.04), (None, 0.3)] {
        let mut broken = [0, 0];
        for repeat in 0..repeats {
            let mut stream = Seed(5).stream(Domain::Bootstrap, rows.unwrap_or(0), repeat);
            let mut left = rows.map(|rows| ((share * rows as f64) as u64, rows));
            let mut bound = ErrorBound::new(rows, DELTA).unwrap();
            for _ in 0..120 {
                let is_wrong = match &mut left {
                    Some((wrong, rows)) => {
                        let is_wrong = stream.below(*rows) < *wrong;
                        *wrong -= u64::from(is_wrong);
                        *rows -= 1;
                        is_wrong
                    }
                    None => stream.uniform() < share,
                };
                let before = bound.clone();
                bound.observe(is_wrong).unwrap();
                assert!(bound.low() >= before.low() && bound.high() <= before.high());
            }
            broken[0] += u32::from(bound.low() > share);
            broken[1] += u32::from(bound.high() < share);
        }
        for broken in broken {
            let found = f64::from(broken) / repeats as f64;
            assert!(found <= limit, "{rows:?} {share}: {found}");
        }
    }
}

#[test]
fn hostile_numbers_are_refused() {
    for limit in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(LimitTest::new(Some(100), limit, DELTA).is_err());
        assert!(LimitTest::new(None, DELTA, limit).is_err() && ErrorBound::new(None, limit).is_err());
    }
    assert!(LimitTest::new(Some(0), 0.05, DELTA).is_err() && ErrorBound::new(Some(0), DELTA).is_err());
    assert!(LimitTest::new(Some(u64::MAX), 0.05, DELTA).is_err());
    let mut test = LimitTest::new(Some(1), 0.05, DELTA).unwrap();
    test.observe(false).unwrap();
    // The only row is right, so none is wrong.
    assert_eq!(test.shown_at(), Some(1));
    assert!(test.observe(false).is_err());
}
