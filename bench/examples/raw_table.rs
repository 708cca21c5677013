//! Writes a prepared dataset of small raw images in many files, to train on more samples than any published dataset has:
//! `raw_table OUT SAMPLES FILES`.
//!
//! OUT gets `images/`, the files, and `table/`, their prepared table: SAMPLES images of 4×4 grey pixels in ten classes for
//! training, and 1,000 more for testing. Every image is the brightness of its class and noise. `cargo run --release
//! --no-default-features -p calmix-bench --example raw_table OUT 100000000 1000`
#![allow(clippy::print_stdout)]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use calmix_core::rng::{Domain, Seed};
use calmix_data::manifest::{Encoding, ManifestBuilder, PixelLayout};

const SIDE: usize = 4;
const PIXELS: usize = SIDE * SIDE;
const CLASSES: u64 = 10;
const TEST: u64 = 1_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, samples, files] = &arguments[..] else { bail!("the arguments are OUT SAMPLES FILES") };
    let samples: u64 = samples.parse().with_context(|| format!("`{samples}` is not a count"))?;
    let files: u64 = files.parse().with_context(|| format!("`{files}` is not a count"))?;
    ensure!(files > 0 && samples.is_multiple_of(files), "every file has as many samples as the others");
    let out = Path::new(out);
    let images = out.join("images");
    fs::create_dir_all(&images)?;
    let side = SIDE as u32;
    let encoding = Encoding::Raw { width: side, height: side, layout: PixelLayout::Grey };
    let classes = (0..CLASSES).map(|class| format!("class-{class}")).collect();
    let mut builder = ManifestBuilder::new(&out.join("table"), classes, encoding)?;
    builder.subset("train");
    for file in 0..files {
        let count = samples / files;
        write_file(&mut builder, &images, &format!("train-{file:05}.bin"), file * count, count)?;
    }
    builder.subset("test");
    write_file(&mut builder, &images, "test.bin", samples, TEST)?;
    let prepared = builder.finish()?;
    println!("{} samples, data {}", samples + TEST, prepared.header.fingerprint);
    Ok(())
}

/// Writes a file of samples and adds them to the table.
fn write_file(
    builder: &mut ManifestBuilder,
    images: &Path,
    name: &str,
    first: u64,
    count: u64,
) -> Result<()> {
    let path = images.join(name);
    let mut file = BufWriter::new(File::create(&path)?);
    let part = builder.part(name, count * PIXELS as u64)?;
    for sample in first..first + count {
        let class = sample % CLASSES;
        let mut stream = Seed(0).stream(Domain::Init, 0, sample);
        let mut pixels = [0; PIXELS];
        for pixel in &mut pixels {
            *pixel = (20 * class) as u8 + stream.index(56) as u8;
        }
        file.write_all(&pixels)?;
        builder.sample(part, (sample - first) * PIXELS as u64, &pixels, Some(class as u32))?;
    }
    file.flush().with_context(|| format!("cannot write {}", path.display()))
}
