//! The nine formats: sound files of each, how they are damaged, and who reads them.

use std::path::Path;

use calmix_core::rng::Stream;
use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::cifar::Variant;
use calmix_data::source::idx::Classes;
use calmix_data::source::{
    Check, Inspection, cifar, folder, idx, labels_csv, parquet_images, svhn, webdataset,
};
use calmix_formats::decode::DecodeLimits;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::source_dir::Count;
use calmix_testkit::dataset_files::{self, Mat};
use calmix_testkit::photos::Golden;

use super::mutate::mutate;
use super::repair;

/// Every image decoded whole, within the default limits.
const INSPECTION: Inspection = Inspection {
    limits: DecodeLimits { side: 16_384, pixels: 64 << 20, bytes: 256 << 20 },
    check: Some(Check::Full),
    shrink: 0,
    threads: 0,
    progress: None,
    scans: None,
};

type Prepare = fn(&Path, &Path) -> Result<Prepared, DataError>;
type Finish = fn(Vec<u8>, &mut Stream) -> Vec<u8>;

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Where the mutant stands in the dataset.
    pub(crate) file: &'static str,
    /// The sound files around it.
    pub(crate) others: Vec<(String, Vec<u8>)>,
    /// Sound files to stand in its place.
    pub(crate) seeds: Vec<Vec<u8>>,
    /// The words of the format, separated by `|`.
    marks: &'static [u8],
    /// What is done to most mutants after the damage: checksums made right, bytes packed.
    finish: Finish,
    pub(crate) prepare: Prepare,
}

impl Kind {
    pub(crate) fn mutant(&self, stream: &mut Stream) -> Vec<u8> {
        let mut bytes = self.seeds[stream.index(self.seeds.len())].clone();
        let other = &self.seeds[stream.index(self.seeds.len())];
        let marks: Vec<_> = self.marks.split(|&byte| byte == b'|').collect();
        mutate(&mut bytes, other, &marks, stream);
        (self.finish)(bytes, stream)
    }
}

pub(crate) fn all() -> Vec<Kind> {
    let golden = Golden::load();
    let photos = |name, file, marks, finish| photos(&golden, name, file, marks, finish);
    vec![
        photos("jpeg", "cat/mutant.jpg", JPEG, |bytes, _| bytes),
        photos("png", "cat/mutant.png", PNG, |mut bytes, stream| {
            if stream.index(4) > 0 {
                repair::png(&mut bytes);
            }
            bytes
        }),
        photos("webp", "cat/mutant.webp", WEBP, |bytes, _| bytes),
        mat(),
        tar(&golden),
        cifar(),
        idx(),
        csv(&golden),
        parquet(),
    ]
}

const JPEG: &[u8] = b"\xff\xd8|\xff\xd9|\xff\xda|\xff\xc0|\xff\xc1|\xff\xc2|\xff\xc3|\xff\xc4|\xff\xc9|\
    \xff\xcc|\xff\xd0|\xff\xd7|\xff\xdb|\xff\xdc|\xff\xdd|\xff\xe0|\xff\xe1|\xff\xee|\xff\xfe|\xff\x00|\
    Exif\0\0";
const PNG: &[u8] = b"IHDR|IDAT|IEND|PLTE|tRNS|eXIf|acTL|fcTL|fdAT|zTXt|iCCP|sBIT";
const WEBP: &[u8] = b"RIFF|WEBP|VP8 |VP8L|VP8X|ALPH|EXIF|ANIM|ANMF|\x9d\x01\x2a|\x2f";

/// Photographs of one class, one of them the mutant.
fn photos(
    golden: &Golden,
    name: &'static str,
    file: &'static str,
    marks: &'static [u8],
    finish: Finish,
) -> Kind {
    let cases = golden.images.iter().filter(|case| case.name.starts_with(name));
    let seeds = cases.map(|case| golden.bytes(case.file).to_vec()).collect();
    let others = vec![("cat/sound.png".to_owned(), golden.image("png-rgb-one").to_vec())];
    let prepare: Prepare = |root, target| {
        folder::prepare(
            root,
            target,
            &folder::FolderOptions { inspection: INSPECTION, ..folder::FolderOptions::default() },
        )
    };
    Kind { name, file, others, seeds, marks, finish, prepare }
}

/// SVHN: plain files of either order of bytes; most are packed after the damage.
fn mat() -> Kind {
    let whole = |big| {
        let mat = Mat { big };
        [mat.file(&[mat.images(1), mat.labels(&[10])]), mat.file(&[mat.labels(&[3]), mat.images(1)])]
    };
    Kind {
        name: "mat",
        file: "train_32x32.mat",
        others: vec![(
            "test_32x32.mat".to_owned(),
            Mat::LITTLE.file(&[Mat::LITTLE.images(1), Mat::LITTLE.labels(&[1])]),
        )],
        seeds: [whole(false), whole(true)].concat(),
        marks: b"IM|MI|\x00\x01|\x0e\0\0\0|\x0f\0\0\0|\x06\0\0\0\x08\0\0\0|\x05\0\0\0|\x02\0\0\0|\
            \x01\0\x01\0X|\x01\0\x01\0y|\x20\0\0\0\x20\0\0\0\x03\0\0\0",
        finish: |bytes, stream| if stream.index(2) == 0 { packed_mat(bytes, stream) } else { bytes },
        prepare: |root, target| svhn::prepare(root, target, false),
    }
}

/// The same file with its elements compressed; half of those have the compressed bytes damaged once more.
fn packed_mat(bytes: Vec<u8>, stream: &mut Stream) -> Vec<u8> {
    let Some((header, mut rest)) = bytes.split_at_checked(128) else { return bytes };
    let mat = Mat { big: header.ends_with(b"MI") };
    let mut packed = header.to_vec();
    while let Some(&[n0, n1, n2, n3]) = rest.get(4..8) {
        let length =
            if mat.big { u32::from_be_bytes([n0, n1, n2, n3]) } else { u32::from_le_bytes([n0, n1, n2, n3]) };
        let (element, after) = rest.split_at(rest.len().min(8 + length as usize));
        packed.extend(mat.compressed(element));
        rest = after;
    }
    if stream.index(2) == 0 && packed.len() > 128 {
        let at = 128 + stream.index(packed.len() - 128);
        packed[at] ^= 1 << stream.index(8);
    }
    packed
}

/// A shard written by the package webdataset.
fn parquet() -> Kind {
    let read = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/parquet_images");
        std::fs::read(folder.join(name)).unwrap()
    };
    let sound = read("hub/data/test-00000-of-00001.parquet");
    Kind {
        name: "parquet",
        file: "train-0.parquet",
        others: vec![("test-0.parquet".to_owned(), sound.clone())],
        seeds: vec![
            sound,
            read("hub/data/train-00000-of-00002.parquet"),
            read("hub/data/train-00001-of-00002.parquet"),
            read("plain/0000.parquet"),
        ],
        marks: b"PAR1|bytes|image|label|huggingface|\x15\x00\x15|names",
        finish: |bytes, _| bytes,
        prepare: |root, target| {
            let columns = LabelColumns::default();
            let options = parquet_images::ParquetOptions { inspection: INSPECTION, columns };
            parquet_images::prepare(root, target, &options)
        },
    }
}

fn tar(golden: &Golden) -> Kind {
    let pixel = golden.image("png-rgb-one");
    Kind {
        name: "tar",
        file: "train-000000.tar",
        others: vec![("train-000001.tar".to_owned(), golden.bytes(golden.shard.file).to_vec())],
        seeds: vec![
            golden.bytes(golden.shard.file).to_vec(),
            made_tar(&[
                ("a.png", b'0', pixel),
                ("a.cls", b'0', b"1"),
                ("./b.c/b.png", 0, pixel),
                ("./b.c/b.cls", b'7', b"0"),
            ]),
            made_tar(&[
                ("folder", b'5', b""),
                ("././@LongLink", b'L', b"long/1.png\0"),
                ("n.png", b'0', pixel),
                ("long/1.json", b'0', br#"{"label": 1, "more": [1, {"a": null}]}"#),
            ]),
            made_tar(&[
                ("PaxHeader", b'x', b"14 path=0.png\n"),
                ("x", b'0', pixel),
                ("PaxHeader", b'x', b"10 size=1\n"),
                ("0.cls", b'0', b"2"),
            ]),
        ],
        marks: b"ustar\0|ustar  \0|0|1|2|3|5|L|K|x|g|S|../|/|.png|.cls|.json|\0|\x80\0\0\0\0\0\0\0|\
            \xff\xff\xff\xff\xff\xff\xff\xff| path=| size=|GNU.sparse.|label|\\|C:",
        finish: |mut bytes, stream| {
            if stream.index(4) > 0 {
                repair::tar(&mut bytes);
            }
            bytes
        },
        prepare: |root, target| {
            let options =
                webdataset::WebdatasetOptions { inspection: INSPECTION, classes: None, unlabelled: true };
            webdataset::prepare(root, target, &options)
        },
    }
}

fn made_tar(members: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, content) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = *kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        bytes.extend(header);
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1_024]);
    repair::tar(&mut bytes);
    bytes
}

/// CIFAR-100. Pixels cannot be wrong: only lengths and labels can.
fn cifar() -> Kind {
    let record = |n: usize| [vec![n as u8, 99 - n as u8], dataset_files::planes(n, 32)].concat();
    Kind {
        name: "cifar",
        file: "train.bin",
        others: vec![("test.bin".to_owned(), record(0))],
        seeds: vec![record(1), [record(2), record(3)].concat()],
        marks: b"\0|\x13|\x14|\x63|\x64|\xff",
        finish: |mut bytes, stream| {
            if stream.index(2) == 0 {
                bytes.resize(bytes.len().next_multiple_of(3_074), 0);
            }
            bytes
        },
        prepare: |root, target| cifar::prepare(root, target, Variant::Cifar100Fine, Count::Any),
    }
}

/// Images as of Fashion-MNIST, under gzip. Half of them are damaged before they are packed.
fn idx() -> Kind {
    let values = |count: u8| (0..count).map(|n| n.wrapping_mul(37)).collect::<Vec<u8>>();
    let labels = dataset_files::gzip(&dataset_files::idx(&[3], &[0, 9, 4]));
    let images = dataset_files::gzip(&dataset_files::idx(&[3, 4, 5], &values(60)));
    let others = [
        ("train-labels-idx1-ubyte.gz", labels.clone()),
        ("t10k-images-idx3-ubyte.gz", images.clone()),
        ("t10k-labels-idx1-ubyte.gz", labels),
    ];
    Kind {
        name: "idx",
        file: "train-images-idx3-ubyte.gz",
        others: others.map(|(name, bytes)| (name.to_owned(), bytes)).to_vec(),
        seeds: vec![images],
        marks: b"\x1f\x8b\x08|\0\0\x08\x03|\0\0\x08\x01|\0\0\x0d\x03|\0\0\0\x03|\0\0\x10\x01",
        finish: |bytes, stream| {
            if stream.index(2) == 0 {
                return bytes;
            }
            let mut values = dataset_files::idx(&[3, 4, 5], &(0..60).collect::<Vec<u8>>());
            mutate(&mut values, &bytes, &[b"\0\0\x08\x03", b"\0\0\0\x04", b"\0\0\0\x05"], stream);
            dataset_files::gzip(&values)
        },
        prepare: |root, target| idx::prepare(root, target, Classes::Fashion),
    }
}

/// Lists of labels.
fn csv(golden: &Golden) -> Kind {
    let image = golden.image("png-rgb-one");
    let image = |name: &str| (name.to_owned(), [image, name.as_bytes()].concat());
    let seeds = [
        "file,label\na.png,cat\nsub/b.png,dog\n\"c, d.png\",\ne.png,\"a \"\"cat\"\"\"\n",
        "\u{feff}labels,file_name\r\ncat,./a.png\r\ndog,sub/b.png\r\n,\"c, d.png\"\r\nowl,e.png\r\n",
    ];
    Kind {
        name: "csv",
        file: "labels.csv",
        others: ["a.png", "sub/b.png", "c, d.png", "e.png"].map(image).to_vec(),
        seeds: seeds.map(|list| list.as_bytes().to_vec()).to_vec(),
        marks: b"file|label|,|\"|\n|\r\n|;|../|/|\\|C:|\0|\xef\xbb\xbf|\xff\xfe|a.png|sub/| |\xc3\xa4|./",
        finish: |bytes, _| bytes,
        prepare: |root, target| {
            let options = labels_csv::LabelsCsvOptions {
                inspection: INSPECTION,
                ..labels_csv::LabelsCsvOptions::default()
            };
            labels_csv::prepare(root, target, &options)
        },
    }
}
