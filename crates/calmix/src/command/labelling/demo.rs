//! `calmix demo`: the commands from images to a review, on shapes that it draws.

use std::fs;
use std::path::Path;

use anyhow::Result;
use calmix_core::rng::{Domain, Seed};
use calmix_formats::image::Image;
use calmix_io::atomic_file;
use calmix_io::shown::shown;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use clap::Parser;

use crate::args::labelling::demo::DemoArgs;
use crate::args::{Calmix, Command};
use crate::command::labelling::review;
use crate::command::train;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::shell_quoted;
use crate::output::preparation::weights_hint;
use crate::shapes::{SHAPES, draw};
use crate::terminal::{print, sentence};
use crate::trainer::Trainers;

const IMAGES: u64 = 300;
/// The first images have labels.
const LABELS: u64 = 60;
/// Every n-th label is wrong.
const WRONG_EVERY: u64 = 10;

pub(crate) fn run(args: &DemoArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    let folder = &args.folder;
    if folder.exists() {
        let message = format!("{} exists", shown(folder.display()));
        return Err(CliError::invalid(message).hint("calmix demo NEW_FOLDER").into());
    }
    if WeightsFolder::of_user().names().is_ok_and(|names| names.is_empty()) {
        let message = "the demo needs a pretrained backbone";
        return Err(CliError::invalid(message).hint(weights_hint()).into());
    }
    let shapes = folder.join("shapes");
    let wrong = write_images(&shapes)?;
    print(&format!(
        "{IMAGES} images of shapes in {}; labels.csv has {LABELS} labels, {} of them wrong on purpose\n",
        shown(shapes.display()),
        wrong.len()
    ))?;
    let run = folder.join("run");
    let report = folder.join("report.html");
    let commands = [
        vec!["train".to_owned(), "--data".to_owned(), text(&shapes), "--run-dir".to_owned(), text(&run)],
        vec!["report".to_owned(), text(&run), "--output".to_owned(), text(&report)],
        vec![
            "review".to_owned(),
            text(&run),
            "--count".to_owned(),
            "20".to_owned(),
            "--out".to_owned(),
            text(folder),
        ],
    ];
    for command in commands {
        let quoted: Vec<String> = command.iter().map(|word| shell_quoted(Path::new(word))).collect();
        print(&format!("\n$ calmix {}\n", quoted.join(" ")))?;
        let parsed = Calmix::try_parse_from(std::iter::once("calmix".to_owned()).chain(command))?;
        let exit = match parsed.command {
            Command::Train(args) => train::run(&args, trainers)?,
            Command::Report(args) => args.run()?,
            Command::Review(args) => review::run(&args)?,
            _ => Exit::Done,
        };
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    let found = reviewed(&folder.join("review.csv"), &wrong)?;
    let text = format!(
        "The review asks about {found} of the {} labels that were made wrong. On images of your own, begin with `calmix review \
         FOLDER`: it chooses the first ones to label.",
        wrong.len()
    );
    print(&format!("\n{}\n", sentence(&text)))?;
    Ok(Exit::Done)
}

/// Draws the images and writes the list of labels; returns the names of those with a wrong label.
fn write_images(folder: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    let mut list = csv::Writer::from_writer(Vec::new());
    list.write_record(["file", "label", "drawn"])?;
    let mut wrong = Vec::new();
    for n in 0..IMAGES {
        let mut stream = Seed(0).stream(Domain::Example, 2, n);
        let shape = stream.index(SHAPES.len());
        let name = format!("{n:03}.png");
        fs::write(folder.join(&name), png(&draw(shape, n))?)?;
        if n >= LABELS {
            continue;
        }
        let mut label = shape;
        if n % WRONG_EVERY == WRONG_EVERY - 1 {
            label = (shape + 1 + stream.index(SHAPES.len() - 1)) % SHAPES.len();
            wrong.push(name.clone());
        }
        list.write_record([name.as_str(), SHAPES[label], "random"])?;
    }
    let list = list.into_inner().map_err(csv::IntoInnerError::into_error)?;
    atomic_file::write(&folder.join("labels.csv"), &list)?;
    Ok(wrong)
}

fn png(image: &Image) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, image.width(), image.height());
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(image.pixels())?;
    writer.finish()?;
    Ok(bytes)
}

/// Counts the files that a review asks about because of their label.
fn reviewed(csv: &Path, files: &[String]) -> Result<usize> {
    let mut reader = csv::Reader::from_path(csv)?;
    let mut found = 0;
    for record in reader.records() {
        let record = record?;
        let is_checked = record.get(5) == Some("check");
        found += usize::from(
            is_checked && record.get(0).is_some_and(|file| files.iter().any(|name| name == file)),
        );
    }
    Ok(found)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
