//! Lists the regular members of a tar archive with their positions. Nothing is ever unpacked.
//!
//! Ustar, GNU and PAX archives with long names are supported. Everything that two programs could read differently is
//! refused: links, devices, sparse members, a PAX size that contradicts the header's, stacked or malformed extended headers,
//! a bad checksum, a missing end mark. Accepted archives give the same list as Python's `tarfile`, by construction and by
//! test.
//!
//! Written by hand for that reason: readers that disagree about a size let files slip past a check. The crate tar did so
//! until 0.4.45 (RUSTSEC-2026-0068), and tokio-tar too (CVE-2025-62518).

mod block;

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use calmix_io::safe_path;

pub use block::Refusal;
use block::{BLOCK, TarBlock};

/// A regular member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarMember {
    /// Its name, as stored in the archive.
    pub name: String,
    /// The offset of its first byte in the archive.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// Why an archive is refused.
#[derive(Debug)]
pub struct TarProblem {
    /// The offset of the member's header.
    pub at: u64,
    /// The reason.
    pub refusal: Refusal,
}

impl fmt::Display for TarProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.refusal)
    }
}

/// Reads an archive member by member.
#[derive(Debug)]
pub struct TarMembers<R> {
    reader: R,
    length: u64,
    at: u64,
    ended: bool,
}

/// Name and size that extended headers set for the following member.
#[derive(Debug, Default)]
struct Extended {
    seen: bool,
    name: Option<String>,
    size: Option<u64>,
}

/// The maximum size of an extended header: they hold names, so more is an attack.
const MAX_EXTENDED_BYTES: u64 = 64 << 10;

impl<R: Read + Seek> TarMembers<R> {
    /// Starts reading an archive.
    ///
    /// # Errors
    /// If its length cannot be determined.
    pub fn new(mut reader: R) -> io::Result<Self> {
        let length = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        Ok(Self { reader, length, at: 0, ended: false })
    }

    /// Reads the bytes of a member.
    pub fn read(&mut self, member: &TarMember) -> io::Result<Vec<u8>> {
        if member.offset.checked_add(member.length).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(member.length).map_err(io::Error::other)?];
        self.reader.seek(SeekFrom::Start(member.offset))?;
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn advance(&mut self) -> Result<Option<TarMember>, Refusal> {
        let mut extended = Extended::default();
        loop {
            let Some(block) = self.block()? else {
                let stray = Refusal::Header("an extended header without a member after it".into());
                return if extended.seen { Err(stray) } else { Ok(None) };
            };
            let size = block.check()?;
            let start = self.at + BLOCK;
            match block.kind() {
                b'0' | b'7' | 0 => return self.regular(&block, size, extended).map(Some),
                b'5' if size == 0 && extended.size.unwrap_or(0) == 0 => {
                    extended = Extended::default();
                    self.at = start;
                }
                b'5' => return Err(Refusal::Header("a folder entry that contains data".into())),
                b'L' | b'x' if extended.seen => {
                    return Err(Refusal::Header("two extended headers for one member".into()));
                }
                b'L' => {
                    let bytes = self.extended(size)?;
                    extended = Extended { seen: true, name: Some(block::text(&bytes)?), size: None };
                }
                b'x' => {
                    let bytes = self.extended(size)?;
                    extended = read_pax(bytes.get(..size as usize).unwrap_or(&bytes))?;
                }
                b'g' => {
                    let bytes = self.extended(size)?;
                    let global = read_pax(bytes.get(..size as usize).unwrap_or(&bytes))?;
                    if extended.seen || global.name.is_some() || global.size.is_some() {
                        return Err(Refusal::Header(
                            "a global header that sets the name or size of members".into(),
                        ));
                    }
                }
                kind => return Err(Refusal::Header(refused_kind(kind))),
            }
        }
    }

    /// Reads the next block; `None` at the end mark.
    fn block(&mut self) -> Result<Option<TarBlock>, Refusal> {
        if self.length.saturating_sub(self.at) < BLOCK {
            return Err(Refusal::Short);
        }
        self.reader.seek(SeekFrom::Start(self.at))?;
        let mut bytes = [0; BLOCK as usize];
        self.reader.read_exact(&mut bytes)?;
        Ok((bytes != [0; BLOCK as usize]).then_some(TarBlock(bytes)))
    }

    fn regular(&mut self, block: &TarBlock, size: u64, extended: Extended) -> Result<TarMember, Refusal> {
        if extended.size.is_some_and(|pax| pax != size) {
            return Err(Refusal::Header("two different sizes for one member".into()));
        }
        let name = match extended.name {
            Some(name) => name,
            None => block.name()?,
        };
        if let Some(why) = safe_path::why_unsafe(name.trim_start_matches("./")) {
            return Err(Refusal::Header(format!("the name {name:?} {why}")));
        }
        let offset = self.at + BLOCK;
        self.at = self.end_of(offset, size)?;
        Ok(TarMember { name, offset, length: size })
    }

    /// Reads an extended header to the end of its last block.
    fn extended(&mut self, size: u64) -> Result<Vec<u8>, Refusal> {
        if size > MAX_EXTENDED_BYTES {
            return Err(Refusal::Header(format!("an extended header of {size} bytes")));
        }
        let offset = self.at + BLOCK;
        let end = self.end_of(offset, size)?;
        let mut bytes = vec![0; (end - offset) as usize];
        self.reader.read_exact(&mut bytes)?;
        self.at = end;
        Ok(bytes)
    }

    /// Returns the start of the next block after `size` bytes at `offset`.
    fn end_of(&self, offset: u64, size: u64) -> Result<u64, Refusal> {
        let end = size.checked_next_multiple_of(BLOCK).and_then(|size| offset.checked_add(size));
        end.filter(|&end| end <= self.length).ok_or(Refusal::Short)
    }
}

impl<R: Read + Seek> Iterator for TarMembers<R> {
    type Item = Result<TarMember, TarProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let member = self.advance().map_err(|refusal| TarProblem { at: self.at, refusal }).transpose();
        self.ended = !matches!(member, Some(Ok(_)));
        member
    }
}

/// Parses records in the form `length key=value\n`.
fn read_pax(mut records: &[u8]) -> Result<Extended, Refusal> {
    let malformed = || Refusal::Header("a malformed PAX header".into());
    let mut extended = Extended { seen: true, ..Extended::default() };
    while !records.is_empty() {
        let space = records.iter().position(|&byte| byte == b' ').ok_or_else(malformed)?;
        let length = block::decimal(&records[..space]).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|&length| length <= records.len()).ok_or_else(malformed)?;
        let record = records.get(space + 1..length).and_then(|record| record.strip_suffix(b"\n"));
        let record = record.ok_or_else(malformed)?;
        let equals = record.iter().position(|&byte| byte == b'=').filter(|&at| at > 0);
        let (key, value) = record.split_at(equals.ok_or_else(malformed)?);
        let value = &value[1..];
        let is_new = match key {
            b"path" => extended.name.replace(block::text(value)?).is_none() && !value.contains(&0),
            b"size" => extended.size.replace(block::decimal(value).ok_or_else(malformed)?).is_none(),
            _ if key.starts_with(b"GNU.sparse.") => return Err(Refusal::Header(refused_kind(b'S'))),
            _ => true,
        };
        if !is_new {
            return Err(malformed());
        }
        records = &records[length..];
    }
    Ok(extended)
}

fn refused_kind(kind: u8) -> String {
    match kind {
        b'1' | b'2' | b'K' => "a link".into(),
        b'3' | b'4' | b'6' => "a device or pipe".into(),
        b'S' => "a sparse member".into(),
        other => format!("a member of the unknown kind {:?}", char::from(other)),
    }
}
