//! The worker's end of the protocol in `xtask/src/bench/worker.rs`.

use std::hint::black_box;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use anyhow::{Result, bail};
use rustix::time::{ClockId, clock_gettime};

/// Announces that the case is ready, then repeats it on command. The result of a repetition is hidden from the optimiser and
/// dropped outside the measured time.
pub(crate) fn serve<T>(repetition: impl FnMut() -> Result<T>) -> Result<()> {
    serve_with_metrics(repetition, |_| String::new())
}

/// Serves repetitions that also return metrics, as `name=number` separated by spaces.
pub(crate) fn serve_with_metrics<T>(
    repetition: impl FnMut() -> Result<T>,
    metrics: impl Fn(&T) -> String,
) -> Result<()> {
    let start = Instant::now();
    answer(repetition, || start.elapsed().as_secs_f64(), metrics)
}

/// Serves repetitions that are measured in CPU time. They must work in this thread and return a number.
pub(crate) fn serve_cpu(repetition: impl FnMut() -> Result<f64>) -> Result<()> {
    let cpu_seconds = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    };
    answer(repetition, cpu_seconds, |result| format!("result={result:.9}"))
}

fn answer<T>(
    mut repetition: impl FnMut() -> Result<T>,
    now: impl Fn() -> f64,
    metrics: impl Fn(&T) -> String,
) -> Result<()> {
    write_line("ready")?;
    for line in stdin().lock().lines() {
        match line?.trim() {
            "run" => {
                let start = now();
                let result = black_box(repetition());
                let seconds = now() - start;
                write_line(&format!("{seconds:.9} {}", metrics(&result?)))?;
            }
            "quit" => break,
            other => bail!("`{other}` is neither `run` nor `quit`"),
        }
    }
    Ok(())
}

fn write_line(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", line.trim_end())?;
    Ok(out.flush()?)
}
