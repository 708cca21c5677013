//! How a run is kept: every process writes its part of a checkpoint, the first one commits what all have written.

use std::sync::Arc;

use super::error::TrainError;
use super::kept;
use super::moment::Moment;
use super::session::Session;
use super::together::{from_all, from_first};
use crate::checkpoint::{Parts, Writer, Written};
use crate::events::Note;
use crate::run::Mark;

impl Session<'_> {
    /// Makes a checkpoint of the state as it is, if there is none of it.
    pub(super) fn keep(&mut self) -> Result<(), TrainError> {
        if self.kept == Some(self.step) || self.step == 0 {
            return Ok(());
        }
        let (step, learner) = (self.step, &self.learner);
        let processes = &learner.team.processes;
        let journal = self.record.mark();
        let begun = self.checkpoints.as_mut().map(|checkpoints| -> Result<_, TrainError> {
            let journal = journal?;
            Ok((checkpoints.begin(step)?, journal))
        });
        let folder = |begun: &Result<(Writer<'_>, Mark), TrainError>| match begun {
            Ok((writer, _)) => Ok(writer.parts().folder().to_owned()),
            Err(error) => Err(TrainError::Unsupported(error.to_string())),
        };
        let folder = from_first(processes, begun.as_ref().map(folder));
        let begun = begun.transpose()?;
        let folder = folder?;
        let parts = match &begun {
            Some((writer, _)) => writer.parts().clone(),
            None => Parts::new(folder, Arc::clone(&self.disk)),
        };
        let write = || -> Result<Vec<Written>, TrainError> {
            let mut files = kept::sample_files(step, learner)?;
            if learner.team.leads() {
                files.extend(kept::files(step, learner, &self.progress, &self.resolved.to_toml())?);
            }
            Ok(files.iter().map(|(name, bytes)| parts.write(name, bytes)).collect::<Result<_, _>>()?)
        };
        let own = write();
        learner.watch.tell(Moment::Keep, step);
        let written = from_all(processes, own)?.concat();
        let identity = self.identity.clone();
        let committed = begun.map(|(writer, journal)| writer.commit(identity, journal, written));
        let trouble = committed
            .map(|committed| committed.map(|committed| committed.trouble.map(|error| error.to_string())));
        let trouble = from_first(processes, trouble)?;
        self.kept = Some(self.step);
        if let Some(trouble) = trouble {
            let text = format!("an old checkpoint could not be removed: {trouble}");
            let hint = "the new one is whole; remove the old one by hand".to_owned();
            self.record.aside(Note { step: self.step, text, hint })?;
        }
        Ok(())
    }
}
