//! The memory of every sample, on the process that owns it.
//!
//! Sample `id` belongs to part `id mod G·K`, and so to the process that runs that part: who owns what follows from the
//! run alone, and a checkpoint has one file for each part. In a step every process sends the rows of its parts to their
//! owners and gets back what the plan asks for; an owner takes in the rows of all groups in the order of the batch. So
//! the exchange is as large as the batch, and what is remembered does not depend on who runs what.

use calmix_core::method::Method;
use calmix_core::samples::{LocalState, StateError};

use super::question::{Answer, Kind, Question, Taken, lost, numbers};
use super::samples::Before;
use super::team::Team;

/// The samples that this process owns: a state for each of its parts.
pub(super) struct Owners {
    pub(super) states: Vec<LocalState>,
    classes: usize,
    /// What rows were like before this step, where it may have to be taken back.
    undo: Option<Vec<(usize, Before)>>,
}

impl Owners {
    /// Before the first step, for `samples` samples in all.
    pub(super) fn new(
        team: &Team,
        method: &Method,
        classes: usize,
        labelled: &[u64],
        samples: usize,
    ) -> Self {
        let all = team.all();
        let state = |part: usize| {
            let owned: Vec<u64> = labelled.iter().copied().filter(|&id| part_of(id, all) == part).collect();
            method.local_state(classes, &owned, (samples + all - 1 - part) / all)
        };
        Self { states: team.parts().map(state).collect(), classes, undo: None }
    }

    /// From now on a step can be taken back.
    pub(super) fn may_take_back(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// The step counts.
    pub(super) fn keep(&mut self) {
        self.undo = None;
    }

    /// Takes the step back.
    pub(super) fn take_back(&mut self) -> Result<(), StateError> {
        for (state, before) in self.undo.take().unwrap_or_default().into_iter().rev() {
            if let Some(state) = self.states.get_mut(state) {
                before.restore(state)?;
            }
        }
        Ok(())
    }

    /// Answers one question of each group that is here. All processes of the run come here at the same time, with
    /// questions of the same kind.
    pub(super) fn answer(
        &mut self,
        team: &Team,
        questions: Vec<Question>,
    ) -> Result<Vec<Answer>, StateError> {
        match questions.first() {
            Some(Question::Sums(_)) => sums(team, questions),
            Some(_) => self.rows(team, &questions),
            None => Ok(Vec::new()),
        }
    }

    fn rows(&mut self, team: &Team, questions: &[Question]) -> Result<Vec<Answer>, StateError> {
        let mixed = || lost("groups of one step ask different things");
        let kind = questions.first().map(Question::kind).ok_or_else(mixed)?;
        if questions.iter().any(|question| question.kind() != kind) {
            return Err(mixed());
        }
        // To the owners.
        let mut letters = vec![Vec::new(); team.processes.size()];
        let mut owners = Vec::new();
        for question in questions {
            question.rows(|id, row| {
                let owner = team.owner(part_of(id, team.all()));
                owners.push(owner);
                if let Some(letter) = letters.get_mut(owner) {
                    letter.extend_from_slice(&id.to_le_bytes());
                    letter.extend_from_slice(row);
                }
            });
        }
        let letters = team.processes.exchange_bytes(&letters).map_err(exchange)?;
        // From all processes in their order, which is the order of the rows.
        let replies = self.take_in(team, kind, &letters)?;
        let replies = team.processes.exchange_bytes(&replies).map_err(exchange)?;
        // Back to the rows.
        let reply = kind.reply();
        let mut next = vec![0; replies.len()];
        let mut back = Vec::with_capacity(owners.len() * reply);
        for owner in owners {
            let at = next.get_mut(owner).ok_or_else(|| lost("a reply from nobody"))?;
            let bytes = replies.get(owner).and_then(|bytes| bytes.get(*at..*at + reply));
            back.extend_from_slice(bytes.ok_or_else(|| lost("a reply that is too short"))?);
            *at += reply;
        }
        // And to the whole circle of each group.
        let mut answers = Vec::new();
        let mut rest = back.as_slice();
        for (question, circle) in questions.iter().zip(team.circles()) {
            let (own, others) = rest.split_at(rest.len().min(question.len() * reply));
            rest = others;
            let all = circle.processes.gather_bytes(own).map_err(exchange)?;
            answers.push(kind.read(&all.concat()));
        }
        Ok(answers)
    }

    /// What the samples here make of the rows of all processes: a reply to each process.
    fn take_in(&mut self, team: &Team, kind: Kind, letters: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, StateError> {
        let width = kind.width(self.classes);
        let (all, first) = (team.all(), team.parts().start);
        let mut of_states = vec![Taken::default(); self.states.len()];
        let mut order = Vec::new();
        for (from, letter) in letters.iter().enumerate() {
            for row in letter.chunks(8 + width) {
                let (id, row) = row.split_first_chunk().ok_or_else(|| lost("half a row"))?;
                let id = u64::from_le_bytes(*id);
                let state = part_of(id, all).wrapping_sub(first);
                let taken = of_states.get_mut(state).ok_or(StateError::UnknownSample { sample: id })?;
                // Labelled samples are known by their ids, all others by their place among those of the part.
                taken.ids.push(if kind == Kind::Labelled { id } else { id / all as u64 });
                taken.rows.extend_from_slice(row);
                order.push((from, state));
            }
        }
        let mut made = Vec::with_capacity(of_states.len());
        for (n, (state, taken)) in self.states.iter_mut().zip(&of_states).enumerate() {
            if let Some(undo) = &mut self.undo {
                let (labelled, others) = if kind == Kind::Labelled {
                    (&taken.ids[..], &[][..])
                } else {
                    (&[][..], &taken.ids[..])
                };
                undo.push((n, Before::of(state, labelled, others)));
            }
            made.push(kind.visit(state, taken, width)?.into_iter());
        }
        let mut replies = vec![Vec::new(); letters.len()];
        for (to, state) in order {
            let reply = made.get_mut(state).and_then(Iterator::next);
            let reply = reply.ok_or_else(|| lost("a row without a reply"))?;
            if let Some(letter) = replies.get_mut(to) {
                letter.extend_from_slice(&reply.to_le_bytes()[..kind.reply()]);
            }
        }
        Ok(replies)
    }
}

/// Adds up numbers over all groups, in the order of the groups, whoever runs them.
fn sums(team: &Team, questions: Vec<Question>) -> Result<Vec<Answer>, StateError> {
    let mut spoken = Vec::new();
    let count = questions.len();
    for (question, circle) in questions.into_iter().zip(team.circles()) {
        let Question::Sums(numbers) = question else {
            return Err(lost("groups of one step ask different things"));
        };
        if circle.leads() {
            spoken.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
    }
    let all = team.processes.gather_bytes(&spoken).map_err(exchange)?.concat();
    let numbers: Vec<f64> = numbers(&all, f64::from_le_bytes).collect();
    let groups = team.groups();
    if groups == 0 || !numbers.len().is_multiple_of(groups) {
        return Err(lost("sums of different lengths"));
    }
    let width = numbers.len() / groups;
    let mut total = numbers.get(..width).unwrap_or_default().to_vec();
    for group in numbers.chunks_exact(width.max(1)).skip(1) {
        total.iter_mut().zip(group).for_each(|(sum, number)| *sum += number);
    }
    Ok((0..count).map(|_| Answer::Sums(total.clone())).collect())
}

fn part_of(id: u64, parts: usize) -> usize {
    // A remainder is below the number of parts.
    (id % parts.max(1) as u64) as usize
}

/// The exchange with other processes failed.
pub(super) fn exchange(error: calmix_dist::DistError) -> StateError {
    StateError::Exchange(Box::new(error))
}
