//! Tar archives: the list of Python's tarfile, or a refusal.

use std::fmt::Write as _;
use std::io::Cursor;

use calmix_formats::tar::{TarMembers, TarProblem};
use calmix_testkit::photos::{Golden, Listing, Mutant, crc32};

fn list(bytes: &[u8]) -> Result<Listing, TarProblem> {
    let members = TarMembers::new(Cursor::new(bytes)).unwrap().collect::<Result<Vec<_>, _>>()?;
    let mut text = String::new();
    for member in &members {
        writeln!(text, "{}\0{}\0{}", member.name, member.offset, member.length).unwrap();
    }
    Ok((members.len(), crc32(text.as_bytes())))
}

#[test]
fn archives_of_every_format_list_as_in_python() {
    let golden = Golden::load();
    for case in &golden.archives {
        assert_eq!(Some(list(golden.bytes(case.file)).unwrap()), case.listing, "{}", case.name);
    }
    assert_eq!(golden.archives.iter().filter_map(|case| case.listing).map(|(count, _)| count).max(), Some(7));
}

#[test]
fn crafted_archives_are_refused_or_list_as_in_python() {
    let accepted = [
        "pax-size-same",
        "pax-path",
        "global",
        "long-name",
        "contiguous",
        "old-file",
        "base-256-size",
        "negative-time",
        "size-in-spaces",
        "prefix",
        "name-dot-slash",
        "one-zero-block",
        "after-the-end",
        "end-mark-only",
    ];
    let golden = Golden::load();
    for case in &golden.crafted {
        match list(golden.bytes(case.file)) {
            Ok(listing) => {
                assert_eq!(Some(listing), case.listing, "{}", case.name);
                assert!(accepted.contains(&case.name.as_str()), "{} was accepted", case.name);
            }
            Err(error) => assert!(!accepted.contains(&case.name.as_str()), "{}: {error}", case.name),
        }
    }
    assert_eq!(golden.crafted.len(), 50);
}

#[test]
fn mutants_are_refused_or_list_as_in_python() {
    let golden = Golden::load();
    let mut agreed = 0;
    for (number, Mutant(base, block, length, edits, expected)) in golden.mutants.iter().enumerate() {
        let mut bytes = golden.bytes(golden.archives[*base].file).to_vec();
        for &(at, byte) in edits {
            bytes[at] = byte;
        }
        if let Ok(block) = usize::try_from(*block) {
            write_checksum(&mut bytes[block..block + 512]);
        }
        bytes.truncate(*length);
        if let Ok(listing) = list(&bytes) {
            assert_eq!(Some(listing), *expected, "mutant {number}: {edits:?}");
            agreed += 1;
        }
    }
    // Edits of names, owners and bytes of members leave a sound archive: refusing them all would pass otherwise.
    assert!(agreed > golden.mutants.len() / 4, "{agreed} agreed");
}

fn write_checksum(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

#[test]
fn many_empty_members_pass_quickly() {
    let golden = Golden::load();
    // A member without bytes, 100,000 times: 51 MB of headers.
    let base = golden.bytes(golden.archives[0].file);
    let mut header = base[..512].to_vec();
    header[124..136].copy_from_slice(b"00000000000\0");
    write_checksum(&mut header);
    let mut bytes = header.repeat(100_000);
    bytes.extend([0; 1_024]);
    assert_eq!(list(&bytes).unwrap().0, 100_000);
}
