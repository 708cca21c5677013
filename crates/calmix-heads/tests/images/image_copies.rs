//! Near-duplicates among labelled images.

use std::fs;

use calmix_run::events::Event;
use calmix_run::read;

use super::made::Bench;

/// Bytes of the images before the first one, and of an image.
const HEADER: usize = 16;
const IMAGE: usize = 64;

#[test]
fn copies_of_images_share_a_fold() {
    let bench = Bench::new();
    let file = bench.data().join("train-images-idx3-ubyte");
    let mut bytes = fs::read(&file).unwrap();
    // The second half of the 120 images are copies of the first, in classes of the same order.
    bytes.copy_within(HEADER..HEADER + 60 * IMAGE, HEADER + 60 * IMAGE);
    fs::write(&file, bytes).unwrap();
    let settings = ["labels.count=12"];
    for (link, groups) in [("true", Some(60)), ("false", None)] {
        let link_copies = format!("labels.link_copies={link}");
        let folder = bench.train(link, &[&settings[..], &[&link_copies]].concat());
        let mut notes = Vec::new();
        for event in read::events(&folder).unwrap() {
            if let Event::Note(note) = event {
                notes.push(note.text);
            }
        }
        notes.retain(|note| note.contains("near-duplicate"));
        let found = read::model_info(&folder).unwrap().held_out.unwrap().group;
        match groups {
            Some(groups) => {
                assert_eq!(
                    notes,
                    [format!(
                        "120 labels in {groups} groups: 60 are near-duplicates of another label and share its fold"
                    )]
                );
                assert_eq!(found[..60], found[60..]);
            }
            None => assert!(notes.is_empty() && found.is_empty(), "{notes:?}"),
        }
    }
}
