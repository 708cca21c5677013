//! The page of `calmix review` in Chromium: keys, storage, download, hostile names, accessibility, and thousands of rows.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use base64::prelude::{BASE64_STANDARD, Engine};
use calmix_core::rng::{Domain, Seed};
use calmix_report::review_page::{AuditSoFar, LivePool, Program, ReviewPage, ReviewRow, review_page};
use calmix_testkit::tier;

const REASONS: [&str; 5] = ["check", "random", "margin", "copies", "first"];
const CLASSES: [&str; 12] = [
    "aeroplane",
    "bird",
    "car",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck, large",
    "\"quoted\"",
    "unknown",
];
const HOSTILE: [&str; 4] = [
    "<img src=x onerror=\"window.hacked=1;alert(1)\">",
    "</script><script>window.hacked=1;alert(2)</script><!--",
    "\"'><svg onload=window.hacked=1>\u{202e}\u{2028}\n=HYPERLINK(\"http://192.0.2.1\")",
    "javascript:alert(3)",
];

/// Draws soft blobs with some noise, so that the size of its PNG is that of a photo.
fn thumbnail(side: u32, seed: u32) -> String {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut pixels = Vec::new();
    for at in 0..side * side {
        let across = (at % side) as f32 / side as f32 - 0.3 - 0.05 * (seed % 9) as f32;
        let down = (at / side) as f32 / side as f32 - 0.5;
        let blob = 150.0 * (-8.0 * (across * across + down * down)).exp();
        for channel in 0..3 {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let tint = (seed * (channel + 3) % 7) as f32 / 7.0;
            pixels.push((30.0 + blob * tint + 60.0 * down.abs()) as u8 + (state % 16) as u8);
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&bytes))
}

/// What the rows of a page borrow from.
struct Sample {
    file: String,
    image: Option<String>,
    fields: Vec<(String, String)>,
}

fn image_samples(count: u32, sides: [u32; 2]) -> Vec<Sample> {
    let sample = |at: u32| Sample {
        file: format!("photos/unlabelled/{at:04}.png"),
        image: Some(thumbnail(sides[at as usize % 2], at)),
        fields: Vec::new(),
    };
    (0..count).map(sample).collect()
}

/// Returns rows of all reasons. The page must leave out the predictions of the random ones.
fn rows<'a>(samples: &'a [Sample], classes: &'a [String]) -> Vec<ReviewRow<'a>> {
    let row = |(at, sample): (usize, &'a Sample)| {
        let why = REASONS[at % REASONS.len()];
        let class = |at: usize| Some(classes[at % classes.len()].as_str());
        ReviewRow {
            file: &sample.file,
            // Two answers of an earlier review, one of them of a class that the page does not list.
            label: match at {
                6 => class(1),
                8 => Some("heron"),
                _ => None,
            },
            given: matches!(why, "check" | "copies").then(|| class(at)).flatten(),
            predicted: (why != "first").then(|| class(at + 1)).flatten(),
            confidence: (why != "first").then_some(0.5 + (at % 50) as f64 / 101.0),
            why,
            drawn: match why {
                "random" => "random",
                "check" | "copies" => "given",
                _ => "chosen",
            },
            vector: None,
            image: sample.image.as_deref(),
            fields: &sample.fields,
        }
    };
    samples.iter().enumerate().map(row).collect()
}

fn write_page(folder: &Path, name: &str, samples: &[Sample], classes: &[String], title: &str) {
    let page = ReviewPage {
        title,
        command: "calmix label photos review.csv",
        storage_key: &format!("calmix-review-{name}-{title}"),
        classes,
        rows: &rows(samples, classes),
        csv_name: "review.csv",
        program: None,
    };
    fs::write(folder.join(name), review_page(&page)).unwrap();
}

/// Writes a page that learns: 800 vectors of four classes, 120 rows of them, and the true classes.
fn write_live_page(folder: &Path) {
    let classes = ["cat", "dog", "frog", "ship"].map(str::to_owned);
    let samples = image_samples(120, [64, 64]);
    let width = 64;
    let mut stream = Seed(5).stream(Domain::Init, 0, 0);
    let mut vectors = Vec::new();
    let mut truth = Vec::new();
    for _ in 0..800 {
        let class = stream.index(classes.len());
        truth.push(&classes[class]);
        let centre = |place: usize| if place % classes.len() == class { 0.45 } else { 0.0 };
        vectors.extend((0..width).map(|place| (centre(place) + stream.normal()) as f32));
    }
    let why = |at: usize| match at {
        _ if at % 10 > 6 => "random",
        0..20 => "first",
        _ => "margin",
    };
    let rows: Vec<ReviewRow<'_>> = samples
        .iter()
        .enumerate()
        .map(|(at, sample)| ReviewRow {
            file: &sample.file,
            label: None,
            given: None,
            predicted: None,
            confidence: None,
            why: why(at),
            drawn: if why(at) == "random" { "random" } else { "chosen" },
            vector: Some(at),
            image: sample.image.as_deref(),
            fields: &[],
        })
        .collect();
    let ids: Vec<u64> = (0..800).collect();
    let page = ReviewPage {
        title: "Review of photos",
        command: "calmix label photos review.csv",
        storage_key: "calmix-review-live",
        classes: &classes,
        rows: &rows,
        csv_name: "review.csv",
        program: Some(Program::Live(LivePool {
            ids: &ids,
            width,
            vectors: &vectors,
            labels: &[],
            folds: 10,
            seed: [0, 0],
        })),
    };
    fs::write(folder.join("live.html"), review_page(&page)).unwrap();
    fs::write(folder.join("live.json"), serde_json::to_vec(&truth).unwrap()).unwrap();
}

/// Writes a page of an audit: 70 rows whose labels are classes in turn, the first of an order of two shares.
fn write_audit_page(folder: &Path) {
    let classes = ["cat", "dog", "frog", "ship"].map(str::to_owned);
    let samples = image_samples(70, [64, 64]);
    let storage_key = "calmix-audit";
    let rows: Vec<ReviewRow<'_>> = samples
        .iter()
        .map(|sample| ReviewRow {
            file: &sample.file,
            label: None,
            given: None,
            predicted: None,
            confidence: None,
            why: "random",
            drawn: "audit",
            vector: None,
            image: sample.image.as_deref(),
            fields: &[],
        })
        .collect();
    let label = |(at, sample): (usize, &Sample)| {
        let text = [storage_key, &sample.file, &classes[at % classes.len()]].join("\n");
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest.as_ref().iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
    };
    let labels: Vec<String> = samples.iter().enumerate().map(label).collect();
    let order: Vec<(u64, Option<bool>)> = (0..70).map(|rank| (rank, None)).collect();
    let places: Vec<usize> = (0..70).collect();
    let audit = AuditSoFar {
        limit: 0.05,
        delta: 0.05,
        shares: &[400, 900],
        order: &order,
        places: &places,
        labels: &labels,
    };
    let page = ReviewPage {
        title: "Audit of predicted labels",
        command: "calmix certify run --pool photos --answers review-1.csv",
        storage_key,
        classes: &classes,
        rows: &rows,
        csv_name: "review-1.csv",
        program: Some(Program::Audit(audit)),
    };
    fs::write(folder.join("audit.html"), review_page(&page)).unwrap();
}

fn write_pages(folder: &Path) {
    write_live_page(folder);
    write_audit_page(folder);

    let classes = CLASSES.map(str::to_owned);
    write_page(folder, "images.html", &image_samples(45, [128, 32]), &classes, "Review of photos");

    let columns = |at: usize| {
        let text = "The parcel came a week late, and no one answered my letters.\nI want my money back.";
        vec![("subject".to_owned(), format!("Complaint {at}")), ("text".to_owned(), text.repeat(1 + at % 4))]
    };
    let vectors = |at: usize| Sample { file: format!("row-{at}"), image: None, fields: columns(at) };
    let vectors: Vec<Sample> = (0..12).map(vectors).collect();
    let topics: Vec<String> = (0..120).map(|at| format!("topic {at}")).collect();
    write_page(folder, "vectors.html", &vectors, &topics, "Review of letters.parquet");

    let hostile = |at: usize| Sample {
        file: format!("{at}/{}", HOSTILE[at % 4]),
        image: (at == 3).then(|| HOSTILE[3].to_owned()),
        fields: HOSTILE.map(|text| (text.to_owned(), text.to_owned())).to_vec(),
    };
    let samples: Vec<Sample> = (0..10).map(hostile).collect();
    write_page(folder, "hostile.html", &samples, &HOSTILE.map(str::to_owned), HOSTILE[1]);

    write_page(folder, "large.html", &image_samples(2_000, [128, 128]), &classes, "Review of 2,000 photos");
}

/// With `CALMIX_REVIEW_PAGES`, the pages and screenshots stay in that folder.
#[test]
fn review_page_works_in_a_browser() {
    if env::var_os("CALMIX_BROWSER_MODULES").is_none() {
        return tier::skipped("CALMIX_BROWSER_MODULES names no folder with puppeteer-core and axe-core");
    }
    let own = tempfile::tempdir().unwrap();
    let folder = env::var_os("CALMIX_REVIEW_PAGES").map_or(own.path().to_owned(), Into::into);
    write_pages(&folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/review_page.mjs");
    let output = Command::new("node").arg(script).arg(&folder).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.matches("tested ").count(), 12, "{printed}");
}
