//! The hashes with which the Hub identifies the content of a file.

use std::fmt::Write;

use ring::digest::{Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// The hash of a file as the Hub lists it, in lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentHash {
    /// The SHA-256 of a large file, which is stored outside git.
    Sha256(String),
    /// The SHA-1 of the git object of a small file. It protects against damage, but not against an attacker who made the
    /// repository.
    GitBlob(String),
}

impl ContentHash {
    /// Parses a SHA-256; `None` if it is not valid.
    pub(super) fn sha256(text: &str) -> Option<Self> {
        hexadecimal(text, 64).map(Self::Sha256)
    }

    /// Parses the id of a git object; `None` if it is not valid.
    pub(super) fn git_blob(text: &str) -> Option<Self> {
        hexadecimal(text, 40).map(Self::GitBlob)
    }

    /// Returns the digits, which are safe as a file name.
    pub(super) fn digits(&self) -> &str {
        match self {
            Self::Sha256(digits) | Self::GitBlob(digits) => digits,
        }
    }
}

/// Parses exactly `digits` hexadecimal digits.
pub(super) fn hexadecimal(text: &str, digits: usize) -> Option<String> {
    let is_hexadecimal = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| text.to_ascii_lowercase())
}

/// A hasher for a file that is being received.
pub(super) struct ContentHasher {
    sha256: Context,
    git_blob: Option<Context>,
}

/// The hashes of a complete file.
#[derive(Debug)]
pub(super) struct ContentHashes {
    pub(super) sha256: String,
    git_blob: Option<String>,
}

impl ContentHasher {
    /// Starts to hash a file of this size, to be compared with `listed`.
    pub(super) fn new(bytes: u64, listed: Option<&ContentHash>) -> Self {
        let mut git_blob =
            matches!(listed, Some(ContentHash::GitBlob(_))).then(|| Context::new(&SHA1_FOR_LEGACY_USE_ONLY));
        if let Some(context) = &mut git_blob {
            context.update(format!("blob {bytes}\0").as_bytes());
        }
        Self { sha256: Context::new(&SHA256), git_blob }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(context) = &mut self.git_blob {
            context.update(bytes);
        }
    }

    pub(super) fn finish(self) -> ContentHashes {
        let git_blob = self.git_blob.map(|context| digits(&context.finish()));
        ContentHashes { sha256: digits(&self.sha256.finish()), git_blob }
    }
}

impl ContentHashes {
    /// Returns the digits to compare with those of `listed`.
    pub(super) fn comparable(&self, listed: &ContentHash) -> &str {
        match listed {
            ContentHash::Sha256(_) => &self.sha256,
            ContentHash::GitBlob(_) => self.git_blob.as_deref().unwrap_or_default(),
        }
    }
}

fn digits(digest: &Digest) -> String {
    let mut digits = String::new();
    for byte in digest.as_ref() {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf 'hello\n' | sha256sum` and `| git hash-object --stdin`.
    #[test]
    fn hashes_are_those_of_the_hub() {
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        let git_blob = "ce013625030ba8dba906f756967f9e9ca394464a";
        for listed in [ContentHash::sha256(&sha256.to_ascii_uppercase()), ContentHash::git_blob(git_blob)] {
            let listed = listed.unwrap();
            let mut hasher = ContentHasher::new(6, Some(&listed));
            hasher.update(b"he");
            hasher.update(b"llo\n");
            let hashes = hasher.finish();
            assert_eq!(hashes.sha256, sha256);
            assert_eq!(hashes.comparable(&listed), listed.digits());
        }
    }

    #[test]
    fn text_that_is_no_hash_is_refused() {
        for wrong in ["", "abc", &"g".repeat(64), &format!("../{}", "a".repeat(61)), &"a".repeat(63)] {
            assert_eq!(ContentHash::sha256(wrong), None, "{wrong}");
        }
        assert_eq!(ContentHash::git_blob(&"a".repeat(64)), None);
    }
}
