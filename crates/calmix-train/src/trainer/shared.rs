//! What the groups of a step share while they plan: the memory of samples, and sums over all groups.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use calmix_core::matrix::Matrix;
use calmix_core::plan::PlanError;
use calmix_core::samples::{SampleState, StateError};

use super::groups::{Group, some};
use super::owners::Owners;
use super::question::{Answer, Question};
use super::team::{Rows, Team};

/// Makes a plan for each group that is here. Groups plan side by side and wait for each other where they share
/// something; what a plan says does not depend on who is first.
pub(super) fn plan_all<P: Send>(
    team: &Team,
    owners: &mut Owners,
    groups: &[Group],
    plan: impl Fn(usize, &Group, &mut Shared<'_>) -> Result<P, PlanError> + Sync,
) -> Result<Vec<P>, PlanError> {
    let circles = team.circles();
    if let ([group], [circle]) = (groups, circles) {
        let mut ask = |question| {
            let mut answers = owners.answer(team, vec![question])?;
            answers.pop().ok_or(StateError::Damaged { what: "no answer" })
        };
        return Ok(vec![plan(circle.group, group, &mut Shared { here: circle.rows(), ask: &mut ask })?]);
    }
    thread::scope(|scope| {
        let mut lines: Vec<Line<P>> = Vec::new();
        for (group, circle) in groups.iter().zip(circles) {
            let (to, questions) = mpsc::channel();
            let (answers, from) = mpsc::channel();
            let (number, here, plan) = (circle.group, circle.rows(), &plan);
            scope.spawn(move || {
                let made = plan(
                    number,
                    group,
                    &mut Shared { here, ask: &mut |question| post(&to, &from, question) },
                );
                // Nobody is left to be told if the other side has given up.
                let _ = to.send(Said::Made(made));
            });
            lines.push(Line { questions, answers });
        }
        converse(team, owners, &lines)
    })
}

/// A group that plans in a thread of its own.
struct Line<P> {
    questions: Receiver<Said<P>>,
    answers: Sender<Result<Answer, StateError>>,
}

/// What a group says.
enum Said<P> {
    Asks(Question),
    Made(Result<P, PlanError>),
}

fn post<P>(
    to: &Sender<Said<P>>,
    from: &Receiver<Result<Answer, StateError>>,
    question: Question,
) -> Result<Answer, StateError> {
    let gone = || StateError::Damaged { what: "another group gave up" };
    to.send(Said::Asks(question)).map_err(|_| gone())?;
    from.recv().map_err(|_| gone())?
}

/// Hears all groups, round by round, until all have a plan.
fn converse<P>(team: &Team, owners: &mut Owners, lines: &[Line<P>]) -> Result<Vec<P>, PlanError> {
    loop {
        let (mut questions, mut made) = (Vec::new(), Vec::new());
        for line in lines {
            match line.questions.recv() {
                Ok(Said::Asks(question)) => questions.push(question),
                Ok(Said::Made(plan)) => made.push(plan?),
                Err(_) => return Err(StateError::Damaged { what: "a group ended without a plan" }.into()),
            }
        }
        if questions.is_empty() {
            return Ok(made);
        }
        if !made.is_empty() {
            return Err(StateError::Damaged { what: "groups of one step ask different things" }.into());
        }
        for (line, answer) in lines.iter().zip(owners.answer(team, questions)?) {
            // A thread that is gone is noticed in the next round.
            let _ = line.answers.send(Ok(answer));
        }
    }
}

/// The memory of samples as one group reaches it: wherever it is.
pub(super) struct Shared<'a> {
    /// The rows of the group that are here.
    here: Rows,
    ask: &'a mut dyn FnMut(Question) -> Result<Answer, StateError>,
}

impl Shared<'_> {
    fn margins(&mut self, question: Question) -> Result<Vec<f64>, StateError> {
        match (self.ask)(question)? {
            Answer::Margins(margins) => Ok(margins),
            _ => Err(OTHER),
        }
    }
}

const OTHER: StateError = StateError::Damaged { what: "an answer to another question" };

impl SampleState for Shared<'_> {
    fn visit_labelled(&mut self, ids: &[u64], margins: &[f64]) -> Result<Vec<f64>, StateError> {
        let here = self.here.labelled.clone();
        self.margins(Question::Labelled(some(ids, &here), some(margins, &here)))
    }

    fn visit_unlabelled(
        &mut self,
        ids: &[u64],
        logits: Matrix<'_>,
        pseudo: &[u32],
    ) -> Result<Vec<f64>, StateError> {
        let here = self.here.unlabelled.clone();
        let rows = here.clone().flat_map(|row| logits.row(row)).copied().collect();
        self.margins(Question::Unlabelled(some(ids, &here), rows, some(pseudo, &here)))
    }

    fn remember_selected(
        &mut self,
        ids: &[u64],
        selected: &[Option<u32>],
    ) -> Result<Vec<Option<u32>>, StateError> {
        let here = self.here.unlabelled.clone();
        match (self.ask)(Question::Selected(some(ids, &here), some(selected, &here)))? {
            Answer::Labels(labels) => Ok(labels),
            _ => Err(OTHER),
        }
    }

    fn sum_over_groups(&mut self, sums: &mut [f64]) -> Result<(), StateError> {
        match (self.ask)(Question::Sums(sums.to_vec()))? {
            Answer::Sums(all) if all.len() == sums.len() => {
                sums.copy_from_slice(&all);
                Ok(())
            }
            _ => Err(OTHER),
        }
    }
}
