//! `cargo xtask wheels`: wheels of the Python library for each platform, of the program that links libtorch for Linux on x86-64, a
//! platform-independent wheel of weights, and the test of all.

mod build;
mod crate_licences;
mod distribution;
mod platform;
mod weights;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::human_time::human_time;
use crate::setup::libtorch;
use crate::setup::venv::{self, TORCH};
use crate::workspace;
use build::{Build, tool};
use distribution::{Distribution, EXECUTABLE, FILE, with_fields};
use platform::{PLATFORMS, Platform};

/// The tag of the wheels that link libtorch. The newest glibc that their files need is 2.34, that of RHEL 9; `auditwheel show`
/// confirms it in the test.
const WITH_LIBTORCH: &str = "py3-none-manylinux_2_34_x86_64";
/// The files of PyTorch's package in `calmix-cpu`. libtorch_cpu.so needs two more libraries, which are NVIDIA's and are
/// dependencies, as for PyTorch itself.
const LIBRARIES: [&str; 3] = ["libc10.so", "libgomp.so.1", "libtorch_cpu.so"];
/// The distributions, in build order.
const NAMES: [&str; 4] = ["calmix-torch", "calmix-cpu", "calmix-weights", "calmix"];

/// The options on the command line.
struct Options<'a> {
    profile: &'a str,
    folder: PathBuf,
    names: Vec<&'a str>,
    /// The platforms of the library.
    platforms: Vec<&'static Platform>,
}

/// Builds wheels into a folder, or tests the wheels in it.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    if let ["test", rest @ ..] = arguments {
        return test(&parse(rest)?.folder);
    }
    build(&parse(arguments)?)
}

/// Builds the wheels of all platforms into a folder.
pub(crate) fn build_all(folder: &Path) -> Result<()> {
    build(&Options {
        profile: "release",
        folder: folder.to_owned(),
        names: NAMES.to_vec(),
        platforms: PLATFORMS.iter().collect(),
    })
}

/// Returns the file names of all wheels of a version.
pub(crate) fn file_names(version: &str) -> Vec<String> {
    let mut names = vec![format!("calmix_weights-{}-{}.whl", weights::VERSION, weights::TAG)];
    names.extend(["calmix_cpu", "calmix_torch"].map(|name| format!("{name}-{version}-{WITH_LIBTORCH}.whl")));
    names.extend(PLATFORMS.map(|platform| format!("calmix-{version}-{}.whl", library_tag(&platform))));
    names
}

fn parse<'a>(arguments: &[&'a str]) -> Result<Options<'a>> {
    let folder = std::path::absolute("dist")?;
    let mut options = Options { profile: "release", folder, names: Vec::new(), platforms: Vec::new() };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--profile" => {
                options.profile = arguments.next().context("--profile needs a profile of cargo")?;
            }
            "--out" => {
                let folder = arguments.next().context("--out needs a folder")?;
                options.folder = std::path::absolute(folder)
                    .with_context(|| format!("{folder:?} is not a folder name"))?;
            }
            "--target" => match *arguments.next().context("--target needs a platform or `all`")? {
                "all" => options.platforms.extend(&PLATFORMS),
                triple => options.platforms.push(Platform::named(triple)?),
            },
            name if NAMES.contains(&name) => options.names.push(name),
            other => bail!("wheels does not know {other:?}; the wheels are {}", NAMES.join(", ")),
        }
    }
    if options.names.is_empty() {
        // The other wheels do not depend on the platform, or exist for one alone.
        options.names = if options.platforms.is_empty() { NAMES.to_vec() } else { vec!["calmix"] };
    }
    if options.platforms.is_empty() {
        options.platforms.push(&PLATFORMS[0]);
    }
    Ok(options)
}

fn build(options: &Options) -> Result<()> {
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "wheels are built on Linux and x86-64 alone, for every platform"
    );
    let start = Instant::now();
    let build = Build::new(options.profile)?;
    fs::create_dir_all(&options.folder)?;
    for name in NAMES.iter().filter(|name| options.names.contains(name)) {
        match *name {
            "calmix-torch" => built(|| torch(&build, &options.folder))?,
            "calmix-cpu" => built(|| cpu(&build, &options.folder))?,
            "calmix-weights" => built(|| weights::wheel(&build.stage, &options.folder))?,
            _ => {
                for platform in &options.platforms {
                    built(|| library(&build, platform, &options.folder))?;
                }
            }
        }
    }
    println!("wheels: done in {}", human_time(start.elapsed()));
    Ok(())
}

/// Builds a wheel and prints its size.
fn built(build: impl FnOnce() -> Result<PathBuf>) -> Result<()> {
    let began = Instant::now();
    let wheel = build()?;
    let megabytes = fs::metadata(&wheel)?.len() as f64 / 1e6;
    println!("wheels: {} ({megabytes:.1} MB) in {}", wheel.display(), human_time(began.elapsed()));
    Ok(())
}

/// Builds the wheel of the program for images alone; PyTorch is a dependency.
fn torch(build: &Build, dist: &Path) -> Result<PathBuf> {
    let torch = libtorch::package(&venv::python(venv::PYTORCH)?)?;
    let distribution = new_distribution(build, "calmix-torch", "torch", &torch)?;
    finished(&distribution, "torch", WITH_LIBTORCH, dist)
}

/// Builds the wheel of the program for images with the CPU part of libtorch.
fn cpu(build: &Build, dist: &Path) -> Result<PathBuf> {
    let torch = libtorch::package(&venv::python(venv::PYTORCH)?)?;
    let distribution = new_distribution(build, "calmix-cpu", "cpu", &torch)?;
    for library in LIBRARIES {
        // Two folders below site-packages, as in PyTorch's package, so that they find NVIDIA's libraries.
        let place = format!("calmix_cpu/lib/{library}");
        distribution.copy(&torch.join("lib").join(library), &place, EXECUTABLE)?;
    }
    distribution.copy(&empty_libtorch(build)?, "calmix_cpu/lib/libtorch.so", EXECUTABLE)?;
    let licences = workspace::root().join("bindings/cpu/licences");
    distribution.copy_licences(&licences, "")?;
    let notice = fs::read_to_string(licences.join("NOTICE"))?;
    distribution.write(&distribution.info("licenses/NOTICE"), &filled(&notice, distribution.version()))?;
    let packages = torch.parent().context("PyTorch is not in a folder of packages")?;
    let version = TORCH.replace("==", "-");
    distribution.copy_licences(&packages.join(format!("{version}.dist-info/licenses")), "pytorch/")?;
    finished(&distribution, "cpu", WITH_LIBTORCH, dist)
}

/// Builds the wheel of the Python library: its modules, the extension module, the program without libtorch, and the extras.
fn library(build: &Build, platform: &Platform, dist: &Path) -> Result<PathBuf> {
    let built = build.library(platform)?;
    let distribution = Distribution::new(&build.stage, "calmix", &build.version)?;
    let project = workspace::root().join("bindings/python");
    distribution.copy_folder(&project.join("python"))?;
    distribution.copy(&built.join(platform.library()), platform.module(), EXECUTABLE)?;
    let program = platform.program();
    let script = format!("calmix-{}.data/scripts/{program}", distribution.version());
    distribution.copy(&built.join(program), &script, EXECUTABLE)?;
    // maturin, the build backend of the project, reads pyproject.toml; it compiles nothing here.
    let metadata = build.stage.join("metadata");
    workspace::empty_folder(&metadata)?;
    let mut maturin = Command::new(tool("maturin")?);
    maturin.args(["pep517", "write-dist-info", "--locked", "--interpreter"]).arg(tool("python")?);
    maturin.arg("--metadata-directory").arg(&metadata).current_dir(project);
    venv::run(&mut maturin)?;
    let place = distribution.info("METADATA");
    distribution.copy(&metadata.join(&place), &place, FILE)?;
    complete_library(&distribution, platform)?;
    distribution.pack(dist, &library_tag(platform))
}

/// Returns the tag of the wheel of the Python library: one file for Python 3.10 and all later versions.
fn library_tag(platform: &Platform) -> String {
    format!("cp310-abi3-{}", platform.tag)
}

/// Adds what maturin leaves out of the library: the licences and the extras.
fn complete_library(distribution: &Distribution, platform: &Platform) -> Result<()> {
    add_licences(distribution, &["calmix", "calmix-python"], platform)?;
    let metadata = fs::read_to_string(distribution.path(&distribution.info("METADATA")))?;
    distribution.write_metadata(&with_extras(&metadata, distribution.version()))
}

/// Creates a distribution with the common files of both programs for images.
fn new_distribution(build: &Build, name: &str, folder: &str, torch: &Path) -> Result<Distribution> {
    let program = build.torch_program(torch)?;
    let distribution = Distribution::new(&build.stage, name, &build.version)?;
    let package = distribution.module();
    let launcher = workspace::root().join(format!("bindings/{folder}/{package}/__init__.py"));
    distribution.copy(&launcher, &format!("{package}/__init__.py"), FILE)?;
    distribution.copy(&program, &format!("{package}/calmix-torch"), EXECUTABLE)?;
    let entry = format!("[console_scripts]\ncalmix-torch = {package}:main\n");
    distribution.write(&distribution.info("entry_points.txt"), &entry)?;
    add_licences(&distribution, &["calmix-torch"], &PLATFORMS[0])?;
    Ok(distribution)
}

/// Adds the licences of calmix, and those of the crates that are compiled into these packages of the workspace.
fn add_licences(distribution: &Distribution, packages: &[&str], platform: &Platform) -> Result<()> {
    let crates = crate_licences::text(packages, platform)?;
    distribution.write(&distribution.info("licenses/rust-crates.txt"), &crates)?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let place = distribution.info(&format!("licenses/{licence}"));
        distribution.copy(&workspace::root().join(licence), &place, FILE)?;
    }
    Ok(())
}

fn finished(distribution: &Distribution, folder: &str, tag: &str, dist: &Path) -> Result<PathBuf> {
    let template = workspace::root().join(format!("bindings/{folder}/METADATA"));
    let template =
        fs::read_to_string(&template).with_context(|| format!("cannot read {}", template.display()))?;
    distribution.write_metadata(&filled(&template, distribution.version()))?;
    distribution.pack(dist, tag)
}

/// Fills the versions into a template.
fn filled(template: &str, version: &str) -> String {
    template.replace("VERSION", version).replace("TORCH", TORCH.trim_start_matches("torch=="))
}

/// Adds the extras with the program for images, in the same version as the library.
fn with_extras(metadata: &str, version: &str) -> String {
    let mut extras = Vec::new();
    for extra in ["cpu", "torch"] {
        let provides = format!("Provides-Extra: {extra}\n");
        if !metadata.contains(&provides) {
            extras.push(format!("Requires-Dist: calmix-{extra}=={version} ; extra == '{extra}'\n{provides}"));
        }
    }
    with_fields(metadata, &extras.concat())
}

/// Builds an empty library in place of the one that loads the CUDA part of libtorch.
///
/// The program links it by name, so that GPUs are found where PyTorch is installed. One program serves both distributions.
fn empty_libtorch(build: &Build) -> Result<PathBuf> {
    let library = build.stage.join("libtorch.so");
    let mut command = Command::new("cc");
    command.args(["-shared", "-nostdlib", "-Wl,-soname,libtorch.so", "-Wl,--build-id=none", "-o"]);
    venv::run(command.arg(&library).args(["-x", "c", "/dev/null"]))?;
    Ok(library)
}

/// Installs the wheels of a folder into new environments and runs them.
fn test(folder: &Path) -> Result<()> {
    let script = workspace::root().join("bindings/tests/test_wheels.py");
    let mut command = Command::new(tool("python")?);
    command.arg(script).env("CALMIX_DIST", folder).env("CALMIX_PYTORCH", venv::python(venv::PYTORCH)?);
    let status = command.status().context("cannot start the test of the wheels")?;
    ensure!(status.success(), "the test of the wheels ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_have_the_library_version() {
        let metadata = "Name: calmix\nVersion: 1.2.3\n\nText.\n\nMore.\n";
        let with = with_extras(metadata, "1.2.3");
        assert!(
            with.contains("Requires-Dist: calmix-cpu==1.2.3 ; extra == 'cpu'\nProvides-Extra: cpu\n"),
            "{with}"
        );
        assert!(with.ends_with("Provides-Extra: torch\n\nText.\n\nMore.\n"), "{with}");
        assert_eq!(with_extras(&with, "1.2.3"), with, "an extra that is there stays as it is");
        let bare = with_extras("Name: calmix\nVersion: 1.2.3\n", "1.2.3");
        assert!(bare.ends_with("Provides-Extra: torch\n"), "without a description: {bare}");
    }

    #[test]
    fn licences_are_in_the_library() {
        let stage = std::env::temp_dir().join(format!("calmix-licences-{}", std::process::id()));
        let library = Distribution::new(&stage, "calmix", "1.2.3").expect("a folder");
        let metadata = library.info("METADATA");
        library.write(&metadata, "Metadata-Version: 2.4\nName: calmix\n\nText.\n").expect("maturin's part");
        complete_library(&library, &PLATFORMS[0]).expect("licences and extras");
        let metadata = fs::read_to_string(library.path(&metadata)).expect("metadata");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let copied = fs::read(library.path(&library.info(&format!("licenses/{licence}"))));
            let own = fs::read(workspace::root().join(licence)).expect("a licence of calmix");
            assert!(copied.is_ok_and(|copied| copied == own), "{licence} is not in the wheel");
            assert!(metadata.contains(&format!("\nLicense-File: {licence}\n")), "{metadata}");
        }
        assert!(metadata.contains("\nLicense-File: rust-crates.txt\n"), "{metadata}");
        fs::remove_dir_all(&stage).expect("the folder of the test");
    }

    #[test]
    fn launcher_needs_the_linked_torch() {
        let launcher = workspace::root().join("bindings/torch/calmix_torch/__init__.py");
        let launcher = fs::read_to_string(launcher).expect("the launcher of calmix-torch");
        let version = TORCH.trim_start_matches("torch==");
        assert!(launcher.contains(&format!("TORCH = \"{version}\"\n")));
    }

    #[test]
    fn unknown_wheel_is_refused() {
        let refused = parse(&["calmix-gpu"]).err().expect("no such wheel").to_string();
        assert!(refused.contains("calmix-gpu") && refused.contains("calmix-cpu"), "{refused}");
        let options = parse(&["--profile", "dist", "calmix-cpu"]).expect("valid");
        assert_eq!((options.profile, options.names), ("dist", vec!["calmix-cpu"]));
        let options = parse(&["--target", "aarch64-apple-darwin"]).expect("valid");
        assert_eq!(options.names, ["calmix"], "the only wheel with a platform to choose");
        assert_eq!(parse(&["--target", "all"]).expect("valid").platforms.len(), PLATFORMS.len());
    }
}
