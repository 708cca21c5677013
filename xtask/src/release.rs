//! `cargo xtask release`: everything of a release but the upload. It builds all wheels, and finds what a registry would refuse or a
//! user would stumble over. `.github/workflows/publish.yml` uploads.

mod checkers;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::wheels;
use crate::workspace;

/// The largest file that PyPI takes, unless it has raised the limit of the project.
const MAX_PYPI_BYTES: u64 = 100_000_000;

/// The options on the command line.
struct Options<'a> {
    folder: PathBuf,
    /// Whether to check the wheels in the folder instead of building them.
    is_built: bool,
    /// The tag of git that is published.
    tag: Option<&'a str>,
}

/// Builds and checks all that is published, and names everything that is wrong.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = parse(arguments)?;
    let version = env!("CARGO_PKG_VERSION");
    let mut problems = text::problems(&workspace::root(), version)?;
    if let Some(tag) = options.tag.filter(|tag| *tag != format!("v{version}")) {
        problems.push(format!("the tag is {tag}, but Cargo.toml has version {version}"));
    }
    if !options.is_built {
        wheels::build_all(&options.folder)?;
    }
    let expected = wheels::file_names(version);
    let (there, missing): (Vec<_>, Vec<_>) =
        expected.iter().map(|name| options.folder.join(name)).partition(|path| path.is_file());
    problems.extend(missing.iter().map(|path| format!("{} is missing", path.display())));
    problems.extend(checkers::problems(&there)?);
    for path in &there {
        let bytes = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
        println!("release: {} bytes, {}", bytes, name(path));
        if bytes > MAX_PYPI_BYTES {
            println!("release: PyPI takes it only if the limit of its project was raised (pypi.org/help)");
        }
    }
    if !problems.is_empty() {
        bail!("calmix {version} cannot be published:\n  {}", problems.join("\n  "));
    }
    println!("release: calmix {version} can be published; nothing was uploaded");
    Ok(())
}

fn parse<'a>(arguments: &[&'a str]) -> Result<Options<'a>> {
    let mut options = Options { folder: std::path::absolute("dist")?, is_built: false, tag: None };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--out" => {
                let folder = arguments.next().context("--out needs a folder")?;
                options.folder = std::path::absolute(folder)
                    .with_context(|| format!("{folder:?} is not a folder name"))?;
            }
            "--built" => options.is_built = true,
            "--tag" => options.tag = Some(arguments.next().context("--tag needs a tag of git")?),
            other => bail!("release does not know {other:?}"),
        }
    }
    Ok(options)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
