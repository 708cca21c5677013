//! Files of vectors, as `numpy.save` writes them.

/// The start of a file whose header is this text. It may be one that numpy would not write.
///
/// # Panics
/// If the text is longer than version 1.0 of the format allows.
pub fn with_header(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\0", length.as_slice(), text.as_bytes()].concat()
}

/// The 128 bytes before the numbers of an array of this type (as `<f4`) and shape.
pub fn header(element: &str, shape: &[usize]) -> Vec<u8> {
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let shape = shape.join(", ");
    let text = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': ({shape}), }}");
    with_header(&format!("{text:<117}\n"))
}

/// An array of 32-bit numbers.
pub fn floats(shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let mut file = header("<f4", shape);
    file.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
    file
}
