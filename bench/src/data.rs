//! A weak and a strong view of each image: `decoded|jpeg SIZE COUNT FOLDER`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use calmix_core::rng::Seed;
use calmix_data::augment::{Augment, Scratch};
use calmix_formats::decode::{DecodeLimits, decode};
use calmix_formats::image::Image;

/// Prepares the case. A repetition makes both views of every image, into one batch each, in a new epoch every time. As in the
/// loader, the memory of a batch is reused. It returns the last bytes of the batches.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<[Option<u8>; 2]>> {
    let &[form @ ("decoded" | "jpeg"), size, count, folder] = case else {
        bail!("the cases of data are `decoded|jpeg SIZE COUNT FOLDER`, not {case:?}");
    };
    let size: u32 = size.parse().with_context(|| format!("`{size}` is not a size"))?;
    let count: usize = count.parse().with_context(|| format!("`{count}` is not a count"))?;
    let augment = if size == 224 { Augment::imagenet() } else { Augment::usb(size) };
    let files = chosen(Path::new(folder), count)?;
    let decoded =
        if form == "decoded" { files.iter().map(load).collect::<Result<Vec<Image>>>()? } else { Vec::new() };

    let (mut scratch, mut epoch) = (Scratch::default(), 0);
    let batch = vec![0; files.len() * augment.bytes()];
    let mut views = [batch.clone(), batch];
    Ok(move || {
        epoch += 1;
        let [weak, strong] = views.each_mut().map(|batch| batch.chunks_exact_mut(augment.bytes()));
        for ((id, file), (weak, strong)) in (0..).zip(&files).zip(weak.zip(strong)) {
            let loaded;
            let image = if let Some(image) = decoded.get(id) {
                image
            } else {
                loaded = load(file)?;
                &loaded
            };
            augment.weak(image, Seed(1), epoch, id as u64, &mut scratch, weak)?;
            augment.strong(image, Seed(1), epoch, id as u64, &mut scratch, strong)?;
        }
        Ok(views.each_ref().map(|batch| batch.last().copied()))
    })
}

fn load(file: impl AsRef<Path>) -> Result<Image> {
    let file = file.as_ref();
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    decode(&bytes, &DecodeLimits::default()).with_context(|| file.display().to_string())
}

/// Returns `count` of the images, evenly spread; images are repeated if there are fewer.
fn chosen(folder: &Path, count: usize) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let suffix = path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
            if path.is_dir() {
                folders.push(path);
            } else if suffix.is_some_and(|suffix| ["jpg", "jpeg", "png"].contains(&suffix.as_str())) {
                found.push(path);
            }
        }
    }
    ensure!(!found.is_empty(), "there are no images in {}", folder.display());
    found.sort();
    let step = (found.len() / count.max(1)).max(1);
    Ok((0..count).map(|n| found[n * step % found.len()].clone()).collect())
}
