//! `calmix push`: sends the metrics of a run to a tracking server.

#[cfg(feature = "https")]
mod send;

use anyhow::Result;

use crate::args::push::PushArgs;
use crate::error::exit::Exit;

impl PushArgs {
    #[cfg(not(feature = "https"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub fn run(self) -> Result<Exit> {
        Err(crate::error::CliError::without_https("calmix push").into())
    }

    /// Sends on a thread of its own, so that a signal is handled while a server does not answer. The next push does not
    /// send again what has arrived by then.
    #[cfg(feature = "https")]
    pub fn run(self) -> Result<Exit> {
        use std::sync::atomic::Ordering;
        use std::sync::mpsc::{self, RecvTimeoutError};
        use std::thread;

        use crate::process::stop::{POLL_INTERVAL, Stop};
        use crate::terminal::status;

        let stop = Stop::listen()?;
        let (sender, ended) = mpsc::channel();
        let sending = thread::spawn(move || {
            // After a signal, the receiver is gone.
            let _ = sender.send(self.send());
        });
        loop {
            match ended.recv_timeout(POLL_INTERVAL) {
                Ok(sent) => return sent.map(|()| Exit::Done),
                Err(RecvTimeoutError::Timeout) if stop.flag().load(Ordering::Relaxed) => {
                    status("stopped; the same command sends the rest");
                    return Ok(stop.exit());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // The thread ended without a result, so it panicked: continue the panic here.
                    if let Err(panic) = sending.join() {
                        std::panic::resume_unwind(panic);
                    }
                    return Ok(Exit::Failed);
                }
            }
        }
    }
}
