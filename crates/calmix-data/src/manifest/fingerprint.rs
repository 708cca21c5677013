//! The fingerprint of a dataset: 32 bytes that identify its content.

use super::{Encoding, Header, PixelLayout};

/// The version of the fingerprint algorithm. It is independent of the version of the tables, so that a dataset keeps its
/// fingerprint in another table format.
const FORM: u32 = 1;

/// An incremental fingerprint: samples in the order of their ids, then the header.
///
/// It is the BLAKE3 of the following, with numbers in little-endian order and texts preceded by their length: the number 1,
/// the number of samples, the BLAKE3 of every (BLAKE3 of the content, label), the encoding, the classes, the subsets, the
/// side of shrunk images, if any, the BLAKE3 of the tables of groups, draws and weights, if any, and the widths of the sets of features,
/// if there are several. Paths are not part of it: a dataset that
/// was moved or resharded is still the same dataset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fingerprint {
    samples: blake3::Hasher,
}

impl Fingerprint {
    /// Adds the next sample.
    pub(crate) fn sample(&mut self, content: &blake3::Hash, label: u32) {
        self.samples.update(content.as_bytes());
        self.samples.update(&label.to_le_bytes());
    }

    /// Returns the hash of all samples within the fingerprint, in hexadecimal.
    pub(crate) fn content(&self) -> String {
        self.samples.finalize().to_hex().to_string()
    }

    /// Returns the fingerprint of these samples under this header, in hexadecimal.
    pub(crate) fn finish(&self, header: &Header) -> String {
        header.fingerprint_over(&self.samples.finalize())
    }
}

impl Header {
    /// Returns whether the fingerprint matches this header, including its class names. This can only be checked for tables
    /// that store the hash of their content.
    pub(crate) fn matches_fingerprint(&self) -> bool {
        let content = blake3::Hash::from_hex(&self.tables.content);
        self.tables.content.is_empty()
            || content.is_ok_and(|content| self.fingerprint_over(&content) == self.fingerprint)
    }

    fn fingerprint_over(&self, content: &blake3::Hash) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&FORM.to_le_bytes());
        hasher.update(&self.samples.to_le_bytes());
        hasher.update(content.as_bytes());
        for number in encoding(self.encoding) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&(self.classes.len() as u64).to_le_bytes());
        for class in &self.classes {
            text(&mut hasher, class);
        }
        hasher.update(&(self.subsets.len() as u64).to_le_bytes());
        for subset in &self.subsets {
            text(&mut hasher, &subset.name);
            hasher.update(&subset.count.to_le_bytes());
        }
        // Without shrunk images, the fingerprint is the same as in versions that could not shrink.
        if let Some(shrunk) = self.shrunk {
            text(&mut hasher, "shrunk");
            hasher.update(&shrunk.side.to_le_bytes());
        }
        if self.groups.is_some() {
            text(&mut hasher, "groups");
            text(&mut hasher, &self.tables.groups);
        }
        if !self.tables.drawn.is_empty() {
            text(&mut hasher, "drawn");
            text(&mut hasher, &self.tables.drawn);
        }
        if !self.tables.weights.is_empty() {
            text(&mut hasher, "weights");
            text(&mut hasher, &self.tables.weights);
        }
        if !self.sets.is_empty() {
            text(&mut hasher, "sets");
            self.sets.iter().for_each(|set| {
                hasher.update(&set.to_le_bytes());
            });
        }
        hasher.finalize().to_hex().to_string()
    }
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn encoding(encoding: Encoding) -> [u32; 3] {
    match encoding {
        Encoding::File => [0, 0, 0],
        Encoding::Raw { width, height, layout: PixelLayout::Grey } => [1, width, height],
        Encoding::Raw { width, height, layout: PixelLayout::Planes } => [2, width, height],
        Encoding::Raw { width, height, layout: PixelLayout::PlanesByColumn } => [3, width, height],
        // The element type is left out: the content of a vector is its values as f32.
        Encoding::Vectors { width, views, .. } => [4, width, views],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{NO_LABEL, ShrunkImages, Subset, TableHashes, VERSION};
    use calmix_formats::element_type::ElementType;

    fn header() -> Header {
        Header {
            version: VERSION,
            classes: vec!["cat".into(), "dog".into()],
            subsets: vec![Subset { name: "train".into(), first: 0, count: 2 }],
            samples: 2,
            parts: 1,
            encoding: Encoding::File,
            shrunk: None,
            sets: Vec::new(),
            starts: Vec::new(),
            groups: None,
            fingerprint: String::new(),
            tables: TableHashes::default(),
        }
    }

    fn of(header: &Header, samples: &[(&[u8], u32)]) -> String {
        let mut fingerprint = Fingerprint::default();
        for (bytes, label) in samples {
            fingerprint.sample(&blake3::hash(bytes), *label);
        }
        fingerprint.finish(header)
    }

    #[test]
    fn content_labels_order_classes_subsets_and_encoding_matter_and_parts_do_not() {
        let samples: [(&[u8], u32); 2] = [(b"one", 0), (b"two", NO_LABEL)];
        let base = of(&header(), &samples);
        assert_eq!(of(&Header { parts: 7, version: VERSION + 1, ..header() }, &samples), base);
        let raw = |layout| Encoding::Raw { width: 1, height: 3, layout };
        let vectors = |element_type| Encoding::Vectors { width: 1, views: 3, element_type };
        let of_vectors = |number| of(&Header { encoding: vectors(number), ..header() }, &samples);
        assert_eq!(of_vectors(ElementType::F16), of_vectors(ElementType::F64));
        let grouped = |hash: &str| Header {
            groups: Some(1),
            tables: TableHashes { groups: hash.into(), ..TableHashes::default() },
            ..header()
        };
        let renamed = vec!["cat".into(), "dogs".into()];
        let moved = vec!["ca".into(), "tdog".into()];
        let subsets = vec![Subset { name: "test".into(), first: 0, count: 2 }];
        let others = [
            of(&header(), &[(b"one", 0), (b"twp", NO_LABEL)]),
            of(&header(), &[(b"one", 1), (b"two", NO_LABEL)]),
            of(&header(), &[(b"two", NO_LABEL), (b"one", 0)]),
            of(&Header { classes: renamed, ..header() }, &samples),
            of(&Header { classes: moved, ..header() }, &samples),
            of(&Header { subsets, ..header() }, &samples),
            of(&Header { shrunk: Some(ShrunkImages { side: 512, count: 1 }), ..header() }, &samples),
            of(&Header { shrunk: Some(ShrunkImages { side: 256, count: 1 }), ..header() }, &samples),
            of(&Header { encoding: raw(PixelLayout::Grey), ..header() }, &samples),
            of(&Header { encoding: raw(PixelLayout::Planes), ..header() }, &samples),
            of(&Header { encoding: raw(PixelLayout::PlanesByColumn), ..header() }, &samples),
            of_vectors(ElementType::F32),
            of(&grouped("a"), &samples),
            of(&grouped("b"), &samples),
        ];
        let all: std::collections::BTreeSet<_> = others.iter().chain([&base]).collect();
        assert_eq!(all.len(), others.len() + 1);
    }
}
