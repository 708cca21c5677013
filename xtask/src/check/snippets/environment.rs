//! The environment of snippets: the programs and the Python package of this tree, and the packages that the documentation
//! imports.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::Job;
use super::inline::{self, Help};
use super::scenes::Scene;
use crate::check::python;
use crate::check::tier::Tier;
use crate::setup::{DUCKDB, MLFLOW, MOTO, ONNX, PYARROW, onnxruntime, venv};
use crate::workspace;

/// A scene whose blocks fail.
static SAMPLE: Scene = Scene { document: "sample", heading: "", fixtures: &[] };

/// The environment of scenes: programs, interpreter and packages.
pub(super) struct Environment {
    /// The folder of the scenes.
    folder: PathBuf,
    /// The folder of the programs.
    built: PathBuf,
    python: PathBuf,
    variables: BTreeMap<&'static str, String>,
}

impl Environment {
    /// Builds the programs and the Python package, and finds the packages that the snippets import.
    pub(super) fn new(tier: Tier) -> Result<Self> {
        let built = python::build()?;
        let python = venv::python(python::TESTS)?;
        let torch = venv::python(venv::PYTORCH)?;
        let mut packages = vec![
            python::package(&built)?,
            // PyTorch comes first, because its NumPy may differ from that of the others.
            venv::site_packages(&torch)?,
            venv::site_packages(&venv::python(&[PYARROW])?)?,
            venv::site_packages(&venv::python(&[DUCKDB])?)?,
            venv::site_packages(&venv::python(ONNX)?)?,
        ];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut interpreters = vec![python.clone(), torch];
        if tier == Tier::Nightly {
            // Servers, in the last place: the packages of the others come first.
            let servers = venv::python(MLFLOW)?;
            packages.push(venv::site_packages(&servers)?);
            interpreters.push(servers);
        }
        let folder_of = |python: &PathBuf| python.parent().unwrap_or(Path::new("")).to_owned();
        let programs: Vec<PathBuf> = interpreters.iter().map(folder_of).collect();
        let path = [built.clone()].into_iter().chain(programs).chain(std::env::split_paths(&path));
        let joined = |paths: &mut dyn Iterator<Item = PathBuf>| {
            std::env::join_paths(paths).map(|joined| joined.to_string_lossy().into_owned())
        };
        let mut variables = BTreeMap::new();
        variables.insert("PATH", joined(&mut path.into_iter())?);
        variables.insert("PYTHONPATH", joined(&mut packages.into_iter())?);
        variables.insert("PYTHONDONTWRITEBYTECODE", "1".to_owned());
        // Set the path, because the cache is in the home folder, and scenes have their own.
        variables.insert("ORT_DYLIB_PATH", onnxruntime::library()?.display().to_string());
        variables.insert("MOTO_PYTHON", venv::python(&[MOTO])?.display().to_string());
        // Scenes run in parallel, and libtorch's threads spin while they wait for each other.
        variables.insert("OMP_NUM_THREADS", "1".to_owned());
        let folder = python::target_folder()?.join("snippets");
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot clear {}", folder.display()))?;
        }
        Ok(Self { folder, built, python, variables })
    }

    /// Checks the commands in running text, and returns their number.
    pub(super) fn check_inline(&self, documents: &[String]) -> Result<usize> {
        let general = self.help(&[])?;
        let mut help = Help::from([(String::new(), general.clone())]);
        for name in inline::commands_in(&general) {
            let mut text = self.help(&[name])?;
            // `calmix weights` has subcommands.
            for inner in inline::commands_in(&text.clone()) {
                text.push_str(&self.help(&[name, inner])?);
            }
            help.insert(name.to_owned(), text);
        }
        let mut problems = Vec::new();
        let mut count = 0;
        for document in documents.iter().filter(|path| !super::is_module(path)) {
            for command in inline::inline_commands(&super::read(document)?) {
                count += 1;
                let problem = inline::problem(&command.text, &help);
                problems.extend(problem.map(|it| format!("{document}:{}: {it}", command.line)));
            }
        }
        ensure!(problems.is_empty(), "commands in running text are wrong:\n  {}", problems.join("\n  "));
        Ok(count)
    }

    /// Returns the help of a calmix command.
    fn help(&self, command: &[&str]) -> Result<String> {
        let output = Command::new(self.built.join("calmix")).args(command).arg("--help").output();
        let output = output.context("cannot start calmix")?;
        String::from_utf8(output.stdout).context("the help of calmix is not text")
    }

    /// Runs one failing block of each kind and checks that it is reported, because a check that finds nothing proves nothing.
    pub(super) fn check_failures(&self) -> Result<()> {
        let samples = [
            ("sh", "true\nfalse\ntrue\n"),
            ("python", "1 / 0\n"),
            ("sql", "SELECT nothing\n"),
            ("transcript", "$ echo done\nfailed\n"),
            ("transcript", "$ false\n"),
            ("output", "failed\n"),
        ];
        let blocks = samples.iter().enumerate();
        let blocks = blocks.map(|(index, (kind, text))| json!({ "line": index, "kind": kind, "text": text }));
        let job = Job { scene: &SAMPLE, blocks: blocks.collect() };
        let printed = self.run_scene("sample", &job).err().map(|error| error.to_string()).unwrap_or_default();
        for (index, (kind, _)) in samples.iter().enumerate() {
            let is_named = printed.contains(&format!("sample:{index}: the block fails"));
            ensure!(is_named, "a block of kind `{kind}` fails and is not named:\n{printed}");
        }
        Ok(())
    }

    /// Runs all scenes, one per core at a time, and names every block that fails.
    pub(super) fn run_all(&self, jobs: &[Job]) -> Result<()> {
        let next = Mutex::new(jobs.iter().enumerate());
        let failures = Mutex::new(BTreeMap::new());
        let work = || {
            loop {
                let taken = next.lock().ok().and_then(|mut rest| rest.next());
                let Some((number, job)) = taken else { return };
                let start = Instant::now();
                let outcome = self.run_scene(&number.to_string(), job);
                report(job, start.elapsed(), outcome.as_deref().ok());
                if let (Err(error), Ok(mut failures)) = (outcome, failures.lock()) {
                    failures.insert(number, format!("{error:#}"));
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        let failures: Vec<String> = failures.into_inner().unwrap_or_default().into_values().collect();
        if !failures.is_empty() {
            bail!("{}\n{} of {} scenes failed", failures.join("\n"), failures.len(), jobs.len());
        }
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot clear {}", self.folder.display()))
    }

    /// Runs the blocks of a scene in a new folder; returns the ones that took long.
    fn run_scene(&self, name: &str, job: &Job) -> Result<String> {
        let scene = job.scene;
        let folder = self.folder.join(name);
        let home = folder.join("home");
        let working_folder = folder.join("here");
        for folder in [&home, &working_folder] {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let root = workspace::root();
        let description = json!({
            "document": scene.document,
            "root": root,
            "fixtures": scene.fixtures,
            "blocks": job.blocks,
        });
        let mut command = Command::new(&self.python);
        command.arg(root.join("xtask/src/check/snippets/run_scene.py")).current_dir(&working_folder);
        // The result must not depend on the user's settings or weights.
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if ["CALMIX_", "XDG_", "AWS_", "MLFLOW_"].iter().any(|begin| name_text.starts_with(begin)) {
                command.env_remove(&name);
            }
        }
        command.env("HOME", &home).envs(&self.variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start python")?;
        let mut input = child.stdin.take().context("python has no standard input")?;
        input.write_all(description.to_string().as_bytes()).context("python does not read its input")?;
        drop(input);
        let output = child.wait_with_output().context("cannot wait for python")?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).trim_end().to_owned();
        ensure!(output.status.success(), "{printed}");
        Ok(printed)
    }
}

/// Prints how a scene ended and which blocks took long; `None` if it failed.
fn report(job: &Job, took: Duration, printed: Option<&str>) {
    let Scene { document, heading, .. } = job.scene;
    let place = if heading.is_empty() { (*document).to_owned() } else { format!("{document}, {heading}") };
    let outcome = if printed.is_some() { "passed" } else { "failed" };
    println!("   {outcome} in {:>5.1} s: {place}", took.as_secs_f64());
    for line in printed.unwrap_or_default().lines() {
        println!("      {line}");
    }
}
