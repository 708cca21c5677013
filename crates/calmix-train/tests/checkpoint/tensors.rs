//! The safetensors format: the same as its library's, and nothing that is made up gets through.

use std::borrow::Cow;
use std::collections::BTreeMap;

use calmix_data::error::Problem;
use calmix_train::checkpoint::{Dtype, Parts, Tensor, Tensors, safetensors::LONGEST_HEADER};
use calmix_train::run::RealDisk;
use safetensors::tensor::{Dtype as TheirDtype, SafeTensors, TensorView, serialize};

const DTYPES: [(Dtype, TheirDtype); 13] = [
    (Dtype::Bool, TheirDtype::BOOL),
    (Dtype::U8, TheirDtype::U8),
    (Dtype::I8, TheirDtype::I8),
    (Dtype::U16, TheirDtype::U16),
    (Dtype::I16, TheirDtype::I16),
    (Dtype::F16, TheirDtype::F16),
    (Dtype::BF16, TheirDtype::BF16),
    (Dtype::U32, TheirDtype::U32),
    (Dtype::I32, TheirDtype::I32),
    (Dtype::F32, TheirDtype::F32),
    (Dtype::U64, TheirDtype::U64),
    (Dtype::I64, TheirDtype::I64),
    (Dtype::F64, TheirDtype::F64),
];

/// A tensor of each type, of as many axes as its place, some of them empty.
fn samples() -> Vec<(String, usize, Vec<u64>, Vec<u8>)> {
    let sample = |(index, (dtype, _)): (usize, &(Dtype, TheirDtype))| {
        let shape: Vec<u64> = (0..index % 5).map(|axis| (index + axis) as u64 % 4).collect();
        let bytes = dtype.bytes(&shape).unwrap();
        let bytes = (0..bytes).map(|i| (i as usize * 31 + index) as u8).collect();
        (format!("layer.{}/ä \"{index}\"", 20 - index), index, shape, bytes)
    };
    DTYPES.iter().enumerate().map(sample).collect()
}

#[test]
fn their_library_reads_what_we_write() {
    let temp = tempfile::tempdir().unwrap();
    let samples = samples();
    let tensors: Vec<_> = samples
        .iter()
        .map(|(name, dtype, shape, bytes)| (name.as_str(), Tensor::new(DTYPES[*dtype].0, shape, bytes)))
        .collect();
    let parts = Parts::new(temp.path(), std::sync::Arc::new(RealDisk));
    parts.tensors("all", &tensors).unwrap();
    let file = std::fs::read(temp.path().join("all")).unwrap();
    let theirs = SafeTensors::deserialize(&file).unwrap();
    assert_eq!(theirs.len(), samples.len());
    for (name, dtype, shape, bytes) in &samples {
        let found = theirs.tensor(name).unwrap();
        let found_shape: Vec<u64> = found.shape().iter().map(|&side| side as u64).collect();
        assert_eq!((found.dtype(), &found_shape, found.data()), (DTYPES[*dtype].1, shape, &**bytes));
    }
}

#[test]
fn we_read_what_their_library_writes() {
    let samples = samples();
    let views: BTreeMap<_, _> = samples
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            let shape = shape.iter().map(|&side| side as usize).collect();
            (name, TensorView::new(DTYPES[*dtype].1, shape, bytes).unwrap())
        })
        .collect();
    let ours = Tensors::parse(serialize(views, None).unwrap()).unwrap();
    assert_eq!(ours.names().len(), samples.len());
    for (name, dtype, shape, bytes) in &samples {
        assert_eq!(ours.get(name).unwrap(), Tensor::new(DTYPES[*dtype].0, shape, bytes));
    }
    let declared = samples.iter().map(|(name, dtype, shape, _)| (&**name, DTYPES[*dtype].0, &**shape));
    ours.check(declared).unwrap();
    let wrong = |declared: &[(&str, Dtype, &[u64])]| ours.check(declared.iter().copied()).unwrap_err();
    assert!(wrong(&[("other", Dtype::F32, &[])]).to_string().contains("no tensor \"other\""));
    let (name, _, shape, _) = &samples[0];
    assert!(wrong(&[(name, Dtype::F64, shape)]).to_string().contains("should be F64"));
    assert!(wrong(&[(name, Dtype::Bool, &[9])]).to_string().contains("should be Bool[9]"));
    assert!(wrong(&[(name, Dtype::Bool, shape)]).to_string().contains("nothing here is called"));
}

fn file(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; data]].concat()
}

/// S3: what the audit of the format tried, and then some.
#[test]
fn made_up_headers_are_refused() {
    let nested = format!("{}{}", "[".repeat(400_000), "]".repeat(400_000));
    let many: Vec<_> = (0..20_000)
        .map(|i| format!(r#""{i:06}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#))
        .collect();
    let axes =
        format!(r#"{{"a":{{"dtype":"U8","shape":[{}1],"data_offsets":[0,1]}}}}"#, "1,".repeat(400_000));
    let long = format!(r#"{{"{}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#, "a".repeat(257));
    let cases = [
        ("", 0),
        ("[]", 0),
        ("{", 0),
        ("{}", 1),
        ("null", 0),
        (&*nested, 0),
        (&format!("{{{}}}", many.join(",")), 0),
        (&axes, 1),
        (&long, 1),
        (r#"{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1),
        (r#"{"a\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":0}}"#, 1),
        (r#"{"a":{"dtype":"PICKLE","shape":[1],"data_offsets":[0,1]}}"#, 1),
        (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1]}}"#, 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}}"#, 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#, 2),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 2),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}"#, 1),
        (r#"{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}"#, 1),
        (r#"{"a":{"dtype":"U8","shape":[2,9223372036854775807],"data_offsets":[0,1]}}"#, 1),
        (r#"{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#, 0),
        (r#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#, 0),
        // Overlap, a hole, a name twice.
        (
            concat!(
                r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"#,
                r#""b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#
            ),
            3,
        ),
        (
            concat!(
                r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"#,
                r#""b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#
            ),
            3,
        ),
        (
            concat!(
                r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"#,
                r#""a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#
            ),
            2,
        ),
    ];
    for (header, data) in cases {
        let start = &header[..header.len().min(80)];
        assert!(Tensors::parse(file(header, data)).is_err(), "{start}");
    }
    assert!(Tensors::parse(file("{}", 0)).is_ok());
    assert!(Tensors::parse(file(r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1)).is_ok());

    // The length of the header: beyond the file, beyond the limit, beyond arithmetic, cut off.
    for length in [3, LONGEST_HEADER, LONGEST_HEADER + 1, u64::MAX] {
        assert!(Tensors::parse([&length.to_le_bytes()[..], b"{}"].concat()).is_err(), "{length}");
    }
    for length in 0..8 {
        assert!(Tensors::parse(vec![0; length]).is_err());
    }
    let huge = Tensors::parse(file(&" ".repeat(LONGEST_HEADER as usize + 1), 0));
    assert!(matches!(huge, Err(Problem::Limit(_))));
}

#[test]
fn tensors_that_do_not_fit_their_shape_are_not_written() {
    let temp = tempfile::tempdir().unwrap();
    let parts = Parts::new(temp.path(), std::sync::Arc::new(RealDisk));
    let short = Tensor { dtype: Dtype::F32, shape: vec![2], bytes: Cow::Borrowed(&[0; 4]) };
    let error = parts.tensors("short", &[("w", short)]).unwrap_err().to_string();
    assert!(error.contains("short") && error.contains("\"w\""), "{error}");
    let one = Tensor::from_f32(&[1.0], &[1]);
    assert!(parts.tensors("twice", &[("w", one.clone()), ("w", one)]).is_err());
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}
