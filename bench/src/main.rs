//! The program on calmix's side of `cargo xtask bench`: `calmix-bench NAME ARGUMENTS` prepares one case and repeats it on
//! command.
//!
//! To add a bench, add a module here and an arm in `main`; `xtask/src/bench/catalogue.rs` lists the cases.
#![forbid(unsafe_code)]

mod data;
#[cfg(feature = "engine")]
mod features;
mod measures;
#[cfg(feature = "engine")]
mod micro_batches;
mod order;
mod plan;
#[cfg(feature = "engine")]
mod predict;
#[cfg(feature = "engine")]
mod processes;
#[cfg(feature = "engine")]
mod step;
mod worker;

use anyhow::{Result, bail};

/// The allocator of the `calmix` binary.
#[cfg(all(feature = "engine", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["plan", case @ ..] => worker::serve(plan::prepare(case)?),
        ["data", case @ ..] => worker::serve(data::prepare(case)?),
        ["order", case @ ..] => worker::serve(order::prepare(case)?),
        ["measures", case @ ..] => worker::serve_cpu(measures::prepare(case)?),
        #[cfg(feature = "engine")]
        ["step", case @ ..] => worker::serve(step::prepare(case)?),
        #[cfg(feature = "engine")]
        ["predict" | "photos", case @ ..] => worker::serve(predict::prepare(case)?),
        #[cfg(feature = "engine")]
        ["features", case @ ..] => worker::serve(features::prepare(case)?),
        #[cfg(feature = "engine")]
        ["micro-batches", case @ ..] => worker::serve(micro_batches::prepare(case)?),
        #[cfg(feature = "engine")]
        ["processes", case @ ..] => {
            worker::serve_with_metrics(processes::prepare(case)?, processes::Metrics::line)
        }
        #[cfg(feature = "engine")]
        ["processes-follow", case @ ..] => processes::follow(case),
        _ => bail!(
            "usage: calmix-bench plan|data|order|measures|step|predict|photos|features|micro-batches|processes CASE, and then `run` and `quit` on standard input"
        ),
    }
}
