//! What the processes of a run have to agree on: that it is the same run, when it stops, that nobody's weights have
//! gone astray, and whom all others wait for.

use std::time::Duration;

use calmix_core::observation::ObservationError;
use calmix_data::loader::{Batch, Skipped};
use calmix_dist::Processes;
use serde::{Deserialize, Serialize};

use super::error::TrainError;
use super::together::{from_all, garbled};
use crate::events::Note;

/// What a process says of itself before the first step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Credentials {
    /// The version of calmix, and that of libtorch.
    pub(super) version: String,
    /// The hash of what may not differ in the recipe.
    pub(super) recipe: String,
    /// The fingerprint of the dataset.
    pub(super) dataset: String,
    /// The hash of the labels that are kept.
    pub(super) labels: String,
}

impl Credentials {
    /// Refuses processes that would train something else, or that cannot even open what they should train.
    pub(super) fn check(own: Result<Self, TrainError>, processes: &Processes) -> Result<(), TrainError> {
        strangers(&from_all(processes, own)?)
    }
}

/// The first process whose credentials are not those of process 0.
fn strangers(all: &[Credentials]) -> Result<(), TrainError> {
    let Some(first) = all.first() else { return Ok(()) };
    for (process, other) in all.iter().enumerate() {
        let pairs = [
            ("version", &first.version, &other.version),
            ("recipe", &first.recipe, &other.recipe),
            ("dataset", &first.dataset, &other.dataset),
            ("set of labels", &first.labels, &other.labels),
        ];
        if let Some((what, here, there)) = pairs.into_iter().find(|(_, here, there)| here != there) {
            let (here, there) = (here.clone(), there.clone());
            return Err(TrainError::Stranger { process, what, here, there });
        }
    }
    Ok(())
}

/// What a process says before every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Word {
    /// The step that it is about to make.
    pub(super) step: u64,
    /// Whether it was told to stop.
    pub(super) stop: bool,
    /// How long it worked on the step before, waiting for others not counted.
    pub(super) busy: Duration,
    /// Its weights in a few bytes, every so often.
    pub(super) weights: u64,
}

impl Word {
    const BYTES: usize = 25;

    fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let busy = u64::try_from(self.busy.as_micros()).unwrap_or(u64::MAX);
        let numbers = [self.step, busy, self.weights].into_iter().flat_map(u64::to_le_bytes);
        bytes.iter_mut().zip(numbers.chain([u8::from(self.stop)])).for_each(|(to, byte)| *to = byte);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let [step, busy, weights] = <[[u8; 8]; 3]>::try_from(numbers).ok()?.map(u64::from_le_bytes);
        Some(Self { step, stop: rest.first()? == &1, busy: Duration::from_micros(busy), weights })
    }

    /// Tells all others and hears them.
    pub(super) fn exchange(self, processes: &Processes) -> Result<Vec<Self>, TrainError> {
        if processes.size() == 1 {
            return Ok(vec![self]);
        }
        let heard = processes.gather_equal(&self.bytes())?;
        let read = |bytes: &Vec<u8>| Self::read(bytes);
        heard.iter().map(read).collect::<Option<_>>().ok_or(TrainError::Garbled(None))
    }
}

/// Whether all processes are at the same step with the same weights; else who is not.
pub(super) fn astray(words: &[Word]) -> Result<(), TrainError> {
    for (what, of) in [("step", (|word| word.step) as fn(&Word) -> u64), ("weights", |word| word.weights)] {
        let values: Vec<u64> = words.iter().map(of).collect();
        let usual = most_common(&values);
        let odd: Vec<usize> =
            (0..values.len()).filter(|&process| values.get(process).copied() != usual).collect();
        if !odd.is_empty() {
            let step = words.first().map_or(0, |word| word.step);
            return Err(TrainError::Astray { step, what, processes: odd, of: words.len() });
        }
    }
    Ok(())
}

/// What most say; of several the one that is said first.
fn most_common(values: &[u64]) -> Option<u64> {
    let count = |value: u64| values.iter().filter(|&&other| other == value).count();
    let most = values.iter().map(|&value| count(value)).max()?;
    values.iter().copied().find(|&value| count(value) == most)
}

/// Finds out whom all others wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct Laggard {
    sums: Vec<Duration>,
    steps: u32,
    named: Option<usize>,
}

impl Laggard {
    /// Steps over which work is compared.
    const WINDOW: u32 = 10;

    /// Hears how long everybody worked; every so often, names who takes half as long again as the others.
    pub(super) fn hear(&mut self, words: &[Word]) -> Option<Note> {
        self.sums.resize(words.len(), Duration::ZERO);
        self.sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += word.busy);
        self.steps += 1;
        if self.steps < Self::WINDOW || words.len() < 2 {
            return None;
        }
        let sums = std::mem::take(&mut self.sums);
        self.steps = 0;
        let slowest = sums.iter().enumerate().max_by_key(|&(_, sum)| *sum).map(|(process, _)| process)?;
        let mut others: Vec<Duration> =
            sums.iter().enumerate().filter(|&(process, _)| process != slowest).map(|(_, &sum)| sum).collect();
        others.sort_unstable();
        let usual = *others.get(others.len() / 2)?;
        let took = *sums.get(slowest)?;
        let is_slow =
            took > usual * 3 / 2 && took.saturating_sub(usual) > Duration::from_millis(10) * Self::WINDOW;
        let news = is_slow && self.named != Some(slowest);
        self.named = is_slow.then_some(slowest);
        news.then(|| Note {
            step: words.first().map_or(0, |word| word.step),
            text: format!(
                "all wait for process {slowest}: it takes {} ms a step, the others {} ms",
                (took / Self::WINDOW).as_millis(),
                (usual / Self::WINDOW).as_millis()
            ),
            hint: "look at what else runs on its machine, and at its disk and its network".to_owned(),
        })
    }
}

/// What the processes found out about the batch of a step, before anything is planned on it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Census {
    /// Samples that were seen.
    pub(super) seen: u64,
    /// Corrupt ones that others took the place of.
    pub(super) skipped: Vec<(u64, String)>,
    /// Numbers that are not finite: which batch, what, which row, which sample.
    odd: Option<(bool, bool, usize, u64)>,
}

impl Census {
    pub(super) fn of(batch: &Batch, checked: &Result<(), ObservationError>) -> Self {
        let odd = match checked {
            Err(ObservationError::NotFinite { batch, what, row, sample }) => {
                Some((*batch == "labelled", *what == "logits", *row, *sample))
            }
            _ => None,
        };
        Self {
            seen: (batch.labelled.ids.len() + batch.unlabelled.ids.len()) as u64,
            skipped: batch.skipped.iter().map(|Skipped { id, problem, .. }| (*id, problem.clone())).collect(),
            odd,
        }
    }

    /// Adds up what all processes found.
    pub(super) fn exchange(self, processes: &Processes) -> Result<Self, TrainError> {
        if processes.size() == 1 {
            return Ok(self);
        }
        // Hardly ever is there anything to tell but a number, which takes one exchange.
        let quiet = self.skipped.is_empty() && self.odd.is_none();
        let mut short = [0; 9];
        short.iter_mut().zip(self.seen.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        short[8] = u8::from(quiet);
        let heard = processes.gather_equal(&short)?;
        let mut sum = Self::default();
        for bytes in &heard {
            sum.seen += bytes.first_chunk().map_or(0, |seen| u64::from_le_bytes(*seen));
        }
        if heard.iter().all(|bytes| bytes.get(8) == Some(&1)) {
            return Ok(sum);
        }
        let said = serde_json::to_vec(&self).map_err(garbled)?;
        for said in processes.gather_bytes(&said)? {
            let census: Self = serde_json::from_slice(&said).map_err(garbled)?;
            sum.skipped.extend(census.skipped);
            sum.odd = sum.odd.or(census.odd);
        }
        Ok(sum)
    }

    /// What is not finite, if anything is anywhere.
    pub(super) fn problem(&self) -> Option<ObservationError> {
        let (labelled, logits, row, sample) = self.odd?;
        let batch = if labelled { "labelled" } else { "unlabelled" };
        let what = if logits { "logits" } else { "features" };
        Some(ObservationError::NotFinite { batch, what, row, sample })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(busy: u64) -> Word {
        Word { step: 3, stop: false, busy: Duration::from_millis(busy), weights: 7 }
    }

    #[test]
    fn words_are_read_as_they_are_said() {
        let said = Word { stop: true, ..word(1234) };
        assert_eq!(Word::read(&said.bytes()), Some(said));
        assert_eq!(Word::read(&[0; 3]), None);
    }

    #[test]
    fn who_has_other_weights_is_named() {
        let mut words = vec![word(1); 4];
        assert!(astray(&words).is_ok());
        words[2].weights = 8;
        let error = astray(&words).unwrap_err().to_string();
        assert!(error.contains("process 2") && error.contains("weights"), "{error}");
        words[2] = Word { step: 4, ..word(1) };
        assert!(astray(&words).unwrap_err().to_string().contains("step"));
    }

    #[test]
    fn the_slow_one_is_named_within_twenty_steps_and_once() {
        let mut laggard = Laggard::default();
        let mut words = vec![word(100); 4];
        let mut hear = |words: &[Word], n: usize| -> Vec<String> {
            (0..n).filter_map(|_| laggard.hear(words)).map(|note| note.text).collect()
        };
        assert!(hear(&words, 50).is_empty());
        words[3].busy += Duration::from_millis(300);
        let notes = hear(&words, 20);
        assert_eq!(notes, ["all wait for process 3: it takes 400 ms a step, the others 100 ms"]);
        assert!(hear(&words, 100).is_empty());
        words[3] = word(100);
        assert!(hear(&words, 20).is_empty());
        words[0].busy += Duration::from_millis(300);
        assert_eq!(hear(&words, 20).len(), 1);
    }

    #[test]
    fn a_stranger_is_refused_by_what_differs() {
        let own =
            Credentials { version: "1".into(), recipe: "a".into(), dataset: "b".into(), labels: "c".into() };
        assert!(strangers(&[own.clone(), own.clone()]).is_ok());
        for (other, what) in [
            (Credentials { version: "2".into(), ..own.clone() }, "version"),
            (Credentials { recipe: "2".into(), ..own.clone() }, "recipe"),
            (Credentials { dataset: "2".into(), ..own.clone() }, "dataset"),
            (Credentials { labels: "2".into(), ..own.clone() }, "set of labels"),
        ] {
            let error = strangers(&[own.clone(), own.clone(), other]).unwrap_err().to_string();
            assert!(error.contains("process 2") && error.contains(what), "{error}");
        }
    }
}
