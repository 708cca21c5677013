//! The partner of a sample in a mixture: one of the k least similar candidates, drawn at random (Algorithm 1,
//! lines 9–10).

use crate::mixup::cosine::cosine_similarities;
use crate::rng::{Domain, Seed, occurrences};
use crate::settings::limit::{AT_LEAST_ONE, SHARE};
use crate::settings::{choice, rule};

rule! {
    /// The number of least similar candidates in the draw: the paper's k.
    Dissimilar {
        /// A share of the pool, as in the paper ("5%").
        ///
        /// At least one: the ablation's "5%, 10%, 15% dissimilar samples" (12 of 224 at 5%).
        Fraction(fraction: f64) = "fraction",
        /// A fixed number, as in the released code (15).
        Count(count: u32) = "count",
        /// All candidates, whatever their similarity: the ablation's k = 0.
        Any = "any",
    }
    DissimilarKeys {
        dissimilar: DissimilarWord = Fraction;
        /// k as a share of the pool of candidates.
        fraction: f64 = 0.05, SHARE;
        /// k as a number.
        count: u32 = 15, AT_LEAST_ONE;
    }
}

choice! {
    /// The space in which similarity is measured. The paper's conclusion mentions "difficulty and feature dissimilarity"; the
    /// released code compares pixels.
    Space {
        /// The pooled features of the weak view.
        ///
        /// The input of the classifier.
        Feature = "feature",
        /// The normalised pixels of the weak view, as in the released code.
        Pixel = "pixel",
        /// The logits of the weak view.
        Logit = "logit",
    }
}

choice! {
    /// Whether a labelled image may be mixed with itself if it is also among the unlabelled images.
    SameSource {
        /// No: an image mixed with itself adds no information.
        Excluded = "excluded",
        /// Yes, as in the released code.
        Allowed = "allowed",
    }
}

/// A sample that can be one side of a pair.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The sample's id, which seeds its draw and identifies the image.
    pub id: u64,
    /// The vector of the sample in the space in which similarity is measured.
    pub vector: &'a [f32],
}

/// The rule by which partners are drawn.
#[derive(Debug, Clone, Copy)]
pub struct PairRule {
    /// The rule for k.
    pub dissimilar: Dissimilar,
    /// Whether a sample may be paired with itself.
    pub same_source: SameSource,
}

impl Dissimilar {
    /// Returns k for a pool of `pool` candidates: at most `pool`, and at least one if the pool is not empty.
    pub fn k(self, pool: usize) -> usize {
        let k = match self {
            Self::Any => pool,
            Self::Count(k) => k as usize,
            Self::Fraction(share) => libm::ceil(share * pool as f64) as usize,
        };
        k.max(1).min(pool)
    }
}

impl PairRule {
    /// Draws the partner of each anchor, as an index into `pool`; `None` if no candidate of the pool is allowed.
    ///
    /// The draw of an anchor depends on its id and on the members of the pool, not on the order of either: equal
    /// similarities are ordered by id, then by position.
    pub fn partners(
        &self,
        anchors: &[Candidate<'_>],
        pool: &[Candidate<'_>],
        seed: Seed,
        step: u64,
    ) -> Vec<Option<usize>> {
        let similarities = match self.dissimilar {
            Dissimilar::Any => vec![0.0; anchors.len() * pool.len()],
            _ => cosine_similarities(&vectors(anchors), &vectors(pool)),
        };
        let k = self.dissimilar.k(pool.len());
        let mut ranked = Vec::with_capacity(pool.len());
        let mut partner = |row: usize, anchor: &Candidate<'_>, occurrence| {
            let mut stream = seed.stream(Domain::Partner, step, anchor.id).occurrence(occurrence);
            let row = &similarities[row * pool.len()..(row + 1) * pool.len()];
            let allowed = |id| self.same_source == SameSource::Allowed || id != anchor.id;
            ranked.clear();
            ranked.extend(
                pool.iter()
                    .zip(row)
                    .enumerate()
                    .filter(|(_, (c, _))| allowed(c.id))
                    .map(|(i, (c, &s))| (s, c.id, i)),
            );
            if ranked.is_empty() {
                return None;
            }
            let rank = stream.index(k.min(ranked.len()));
            let order = |a: &(f32, u64, usize), b: &(f32, u64, usize)| {
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
            };
            let (_, &mut (_, _, chosen), _) = ranked.select_nth_unstable_by(rank, order);
            Some(chosen)
        };
        let nth = occurrences(anchors.iter().map(|anchor| anchor.id));
        anchors.iter().zip(nth).enumerate().map(|(row, (anchor, n))| partner(row, anchor, n)).collect()
    }
}

fn vectors<'a>(candidates: &[Candidate<'a>]) -> Vec<&'a [f32]> {
    candidates.iter().map(|c| c.vector).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: [(u64, [f32; 2]); 4] =
        [(10, [1.0, 0.0]), (11, [-1.0, 0.0]), (12, [0.0, 1.0]), (13, [-0.9, 0.1])];

    fn candidates(of: &[(u64, [f32; 2])]) -> Vec<Candidate<'_>> {
        of.iter().map(|(id, v)| Candidate { id: *id, vector: v }).collect()
    }

    fn partner_ids(rule: PairRule, anchor: (u64, [f32; 2]), steps: u64) -> Vec<u64> {
        let anchor = [anchor];
        let mut drawn: Vec<u64> = (0..steps)
            .filter_map(|step| rule.partners(&candidates(&anchor), &candidates(&POOL), Seed(1), step)[0])
            .map(|i| POOL[i].0)
            .collect();
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    }

    #[test]
    fn k_is_a_count_or_a_share_of_the_pool() {
        assert_eq!(Dissimilar::Fraction(0.05).k(224), 12);
        assert_eq!(Dissimilar::Fraction(0.0).k(224), 1);
        assert_eq!((Dissimilar::Count(15).k(224), Dissimilar::Count(15).k(3)), (15, 3));
        assert_eq!((Dissimilar::Any.k(5), Dissimilar::Count(4).k(0)), (5, 0));
    }

    #[test]
    fn partners_are_the_k_least_similar() {
        let rule = |dissimilar| PairRule { dissimilar, same_source: SameSource::Excluded };
        let anchor = (1, [2.0, 0.0]);
        assert_eq!(partner_ids(rule(Dissimilar::Count(1)), anchor, 20), [11]);
        assert_eq!(partner_ids(rule(Dissimilar::Fraction(0.5)), anchor, 40), [11, 13]);
        assert_eq!(partner_ids(rule(Dissimilar::Any), anchor, 60), [10, 11, 12, 13]);
    }

    #[test]
    fn a_sample_never_meets_itself_unless_allowed() {
        let anchor = (11, [1.0, 0.0]);
        let excluded = PairRule { dissimilar: Dissimilar::Count(1), same_source: SameSource::Excluded };
        assert_eq!(partner_ids(excluded, anchor, 10), [13]);
        let allowed = PairRule { same_source: SameSource::Allowed, ..excluded };
        assert_eq!(partner_ids(allowed, anchor, 10), [11]);
        let alone = [(11, [1.0, 0.0])];
        assert_eq!(excluded.partners(&candidates(&alone), &candidates(&alone), Seed(1), 0), [None]);
    }

    #[test]
    fn an_anchor_that_occurs_twice_draws_twice() {
        let rule = PairRule { dissimilar: Dissimilar::Any, same_source: SameSource::Excluded };
        let twice = [(1, [1.0, 0.0]); 2];
        let differ = (0..40)
            .map(|step| rule.partners(&candidates(&twice), &candidates(&POOL), Seed(1), step))
            .filter(|drawn| drawn[0] != drawn[1])
            .count();
        assert!((20..40).contains(&differ), "{differ} of 40, expected about 30");
    }
}
