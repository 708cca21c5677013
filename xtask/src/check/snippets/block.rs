//! The fenced blocks of a Markdown text, each with the comments directly above it that tell how to treat it.
//!
//! ```text
//! <!-- not run: needs a GPU -->                       the whole block
//! <!-- not run: `uv tool install`: needs wheels -->   its commands that begin so
//! <!-- nightly: trains eight processes -->            only in the nightly tier; also with a command
//! <!-- saved as mine.toml -->                         the block is written into a file
//! ```

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of its fence, from 1.
    pub(super) line: usize,
    /// The heading above it; empty before the first one.
    pub(super) heading: String,
    /// The word after the fence, without attributes: `rust` for `rust,no_run`.
    pub(super) language: String,
    /// Its lines, without the indentation of the fence.
    pub(super) text: String,
    pub(super) marks: Vec<Mark>,
    /// Whether only empty lines separate it from the previous block.
    pub(super) follows: bool,
}

const FENCE: &str = "```";

/// Reads the blocks of a document, in order.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut found: Vec<Block> = Vec::new();
    let mut heading = String::new();
    let mut marks = Vec::new();
    let mut follows = false;
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(word) = trimmed.strip_prefix(FENCE) {
            let indent = line.len() - trimmed.len();
            let mut inside = String::new();
            let is_closed = lines.by_ref().map(|(_, line)| line).any(|line| {
                if line.trim() == FENCE {
                    return true;
                }
                let blank = line.len() - line.trim_start().len();
                inside.push_str(line.get(indent.min(blank)..).unwrap_or_default());
                inside.push('\n');
                false
            });
            if !is_closed {
                return Err(format!("line {}: the block has no end", index + 1));
            }
            let language = word.split([',', ' ']).next().unwrap_or_default().to_owned();
            let marks = std::mem::take(&mut marks);
            let heading = heading.clone();
            found.push(Block { line: index + 1, heading, language, text: inside, marks, follows });
            follows = true;
            continue;
        }
        let comment = trimmed.strip_prefix("<!--").and_then(|rest| rest.trim_end().strip_suffix("-->"));
        if let Some(comment) = comment {
            marks.extend(Mark::parse(comment.trim()));
            continue;
        }
        // A comment elsewhere is not about a block.
        marks.clear();
        if line.starts_with('#') {
            line.trim_start_matches('#').trim().clone_into(&mut heading);
        }
        follows &= trimmed.is_empty();
    }
    Ok(found)
}

/// Reads the docstring examples of a Python module that pytest skips, as one block for each run of lines.
pub(super) fn skipped_examples(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut next = 0;
    for (index, line) in text.lines().enumerate() {
        let code = line.trim_start().strip_prefix(">>> ").filter(|code| code.contains("doctest: +SKIP"));
        let Some(code) = code else { continue };
        let code = code.split("# doctest:").next().unwrap_or_default().trim_end();
        match found.last_mut().filter(|_| next == index) {
            Some(block) => block.text.extend([code, "\n"]),
            None => found.push(Block {
                // The line before, where the fence would be.
                line: index,
                heading: String::new(),
                language: "python".to_owned(),
                text: format!("{code}\n"),
                marks: Vec::new(),
                follows: false,
            }),
        }
        next = index + 1;
    }
    found
}

/// A comment about the block below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// The block, or its commands that begin with `command`, are left out.
    LeftOut { when: When, command: Option<String>, reason: String },
    /// The block is written into this file.
    SavedAs(String),
}

/// The tiers in which something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// In all tiers except the nightly one.
    UnlessNightly,
}

impl Mark {
    /// Parses the mark in a comment; `None` if the comment is about something else.
    pub(super) fn parse(comment: &str) -> Option<Self> {
        if let Some(name) = comment.strip_prefix("saved as ") {
            return Some(Self::SavedAs(name.trim().to_owned()));
        }
        let (kind, rest) = comment.split_once(':')?;
        let when = match kind {
            "not run" => When::Always,
            "nightly" => When::UnlessNightly,
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

    const SAMPLE: &str = "# Title\n\nText.\n\n```sh\ncalmix doctor\n```\n\n```text\nversion 1\n```\n\n\
        ## Next\n\n<!-- not run: needs a GPU -->\n```python\nimport torch\n```\nwords\n\n  <!-- overview -->\n\n\
        - item\n\n  ```rust,no_run\n  fn main() {\n      run();\n  }\n  ```\n";

    #[test]
    fn blocks_of_a_sample_are_found() {
        let found = blocks(SAMPLE).expect("whole blocks");
        let seen: Vec<(usize, &str, &str)> =
            found.iter().map(|it| (it.line, it.heading.as_str(), it.language.as_str())).collect();
        let expected =
            [(5, "Title", "sh"), (9, "Title", "text"), (16, "Next", "python"), (25, "Next", "rust")];
        assert_eq!(seen, expected);
        assert_eq!(found.iter().map(|it| it.follows).collect::<Vec<_>>(), [false, true, false, false]);
        assert_eq!(found.iter().map(|it| it.marks.len()).collect::<Vec<_>>(), [0, 0, 1, 0]);
        assert_eq!(found[3].text, "fn main() {\n    run();\n}\n");
    }

    #[test]
    fn block_without_end_is_refused() {
        assert_eq!(blocks("a\n```sh\nls\n"), Err("line 2: the block has no end".to_owned()));
    }

    #[test]
    fn skipped_docstring_examples_are_found() {
        let text = "    >>> 1 + 1\n    2\n    >>> a = f()   # doctest: +SKIP\n    >>> a.b  # doctest: +SKIP\n    3\n";
        let found = skipped_examples(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].text.as_str()), (2, "a = f()\na.b\n"));
    }

    #[test]
    fn marks_have_three_forms() {
        let left_out = |when, command: Option<&str>, reason: &str| {
            Some(Mark::LeftOut { when, command: command.map(str::to_owned), reason: reason.to_owned() })
        };
        assert_eq!(Mark::parse("not run: needs a GPU"), left_out(When::Always, None, "needs a GPU"));
        assert_eq!(
            Mark::parse("nightly: `torchrun`: slow"),
            left_out(When::UnlessNightly, Some("torchrun"), "slow")
        );
        assert_eq!(Mark::parse("saved as mine.toml"), Some(Mark::SavedAs("mine.toml".to_owned())));
        assert_eq!(Mark::parse("overview"), None);
        assert_eq!(Mark::parse("note: see below"), None);
    }
}
