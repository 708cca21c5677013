//! The batches of a training, one for each step in order. Vectors that are not in memory are read by a thread of their own while
//! the step before is computed.

use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::Scope;

use super::batch::{Batch, Batches};
use crate::error::HeadError;

/// Batches that wait while the next is read. On a single core the threads then take turns once in so many steps.
const AHEAD: usize = 2;

/// The batches of all steps, from the first.
pub(crate) enum StepBatches<'a> {
    /// Drawn when they are needed.
    Drawn {
        batches: Box<Batches<'a>>,
        /// The next step.
        step: u64,
    },
    /// Drawn ahead by another thread.
    Ahead {
        ready: Receiver<Result<Batch, HeadError>>,
        /// Batches whose memory is used again.
        used: Sender<Batch>,
    },
}

impl<'a> StepBatches<'a> {
    /// The batches of steps 0 to `steps`. A thread that reads ahead ends with its receiver.
    pub(crate) fn new<'scope>(batches: Batches<'a>, steps: u64, scope: &'scope Scope<'scope, '_>) -> Self
    where
        'a: 'scope,
    {
        let mut batches = Box::new(batches);
        if batches.are_in_memory() {
            return Self::Drawn { batches, step: 0 };
        }
        let (send, ready) = sync_channel(AHEAD);
        let (used, unused) = channel::<Batch>();
        scope.spawn(move || {
            for step in 0..steps {
                let mut batch = unused.try_recv().unwrap_or_default();
                let drawn = batches.draw(step, &mut batch);
                let is_last = drawn.is_err();
                if send.send(drawn.map(|()| batch)).is_err() || is_last {
                    return;
                }
            }
        });
        Self::Ahead { ready, used }
    }

    /// Puts the next batch into the place of the one before.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<(), HeadError> {
        match self {
            Self::Drawn { batches, step } => {
                batches.draw(*step, batch)?;
                *step += 1;
            }
            Self::Ahead { ready, used } => {
                let ended = || HeadError::Read("the thread that reads vectors has ended".to_owned());
                let next = ready.recv().map_err(|_| ended())??;
                // The reader has ended if it is after the last step: then this memory is not needed.
                used.send(std::mem::replace(batch, next)).ok();
            }
        }
        Ok(())
    }
}
