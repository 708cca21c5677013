//! This end of the protocol in `xtask/src/bench/worker.rs`.

use std::hint::black_box;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use anyhow::{Result, bail};

/// Says that the case is ready, then repeats it on command. What a repetition returns is kept from the
/// optimiser and dropped outside the measured time.
pub(crate) fn serve<T>(mut repetition: impl FnMut() -> T) -> Result<()> {
    say("ready")?;
    for line in stdin().lock().lines() {
        match line?.trim() {
            "run" => {
                let start = Instant::now();
                let result = black_box(repetition());
                let seconds = start.elapsed().as_secs_f64();
                drop(result);
                say(&format!("{seconds:.9}"))?;
            }
            "quit" => break,
            other => bail!("`{other}` is neither `run` nor `quit`"),
        }
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
