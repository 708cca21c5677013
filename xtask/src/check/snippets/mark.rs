//! Comments above a fenced block that say what becomes of it.
//!
//! ```text
//! <!-- not run: needs a GPU -->                       the whole block
//! <!-- not run: `uv tool install`: needs wheels -->   its commands that begin so
//! <!-- nightly: trains eight processes -->            only in the nightly tier; also with a command
//! <!-- saved as mine.toml -->                         the block is written into a file
//! ```

/// What a comment says about the block below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// The block, or its commands that begin with `command`, are left out.
    LeftOut { when: When, command: Option<String>, reason: String },
    /// The block is written into this file.
    SavedAs(String),
}

/// The tiers that leave something out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// In every tier but the nightly one.
    ByDay,
}

impl Mark {
    /// The mark in a comment; `None` if the comment is about something else.
    pub(super) fn parse(comment: &str) -> Option<Self> {
        if let Some(name) = comment.strip_prefix("saved as ") {
            return Some(Self::SavedAs(name.trim().to_owned()));
        }
        let (kind, rest) = comment.split_once(':')?;
        let when = match kind {
            "not run" => When::Always,
            "nightly" => When::ByDay,
            _ => return None,
        };
        let rest = rest.trim();
        let quoted = rest.strip_prefix('`').and_then(|rest| rest.split_once("`:"));
        let (command, reason) = match quoted {
            Some((command, reason)) => (Some(command.to_owned()), reason),
            None => (None, rest),
        };
        Some(Self::LeftOut { when, command, reason: reason.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_three_forms() {
        let left_out = |when, command: Option<&str>, reason: &str| {
            Some(Mark::LeftOut { when, command: command.map(str::to_owned), reason: reason.to_owned() })
        };
        assert_eq!(Mark::parse("not run: needs a GPU"), left_out(When::Always, None, "needs a GPU"));
        assert_eq!(Mark::parse("nightly: `torchrun`: slow"), left_out(When::ByDay, Some("torchrun"), "slow"));
        assert_eq!(Mark::parse("saved as mine.toml"), Some(Mark::SavedAs("mine.toml".to_owned())));
        assert_eq!(Mark::parse("overview"), None);
        assert_eq!(Mark::parse("note: see below"), None);
    }
}
