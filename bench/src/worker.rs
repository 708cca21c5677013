//! This end of the protocol in `xtask/src/bench/worker.rs`.

use std::hint::black_box;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use anyhow::{Result, bail};
use rustix::time::{ClockId, clock_gettime};

/// Announces that the case is ready, then repeats it on command. The result of a repetition is kept from the
/// optimiser and dropped outside the measured time.
pub(crate) fn serve<T>(repetition: impl FnMut() -> Result<T>) -> Result<()> {
    serve_telling(repetition, |_| String::new())
}

/// The same, with metrics of each repetition beside its time: `name=number` with spaces between them.
pub(crate) fn serve_telling<T>(
    repetition: impl FnMut() -> Result<T>,
    metrics: impl Fn(&T) -> String,
) -> Result<()> {
    let start = Instant::now();
    answer(repetition, || start.elapsed().as_secs_f64(), metrics)
}

/// The same in seconds of the processor instead of the clock, of a repetition that works in this thread and results in
/// a number.
pub(crate) fn serve_cpu(repetition: impl FnMut() -> Result<f64>) -> Result<()> {
    let worked = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    };
    answer(repetition, worked, |result| format!("result={result:.9}"))
}

fn answer<T>(
    mut repetition: impl FnMut() -> Result<T>,
    now: impl Fn() -> f64,
    metrics: impl Fn(&T) -> String,
) -> Result<()> {
    say("ready")?;
    for line in stdin().lock().lines() {
        match line?.trim() {
            "run" => {
                let start = now();
                let result = black_box(repetition());
                let seconds = now() - start;
                say(&format!("{seconds:.9} {}", metrics(&result?)))?;
            }
            "quit" => break,
            other => bail!("`{other}` is neither `run` nor `quit`"),
        }
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", line.trim_end())?;
    Ok(out.flush()?)
}
