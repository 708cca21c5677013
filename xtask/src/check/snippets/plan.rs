//! The plan for a block: how it runs, how many snippets it has, and which are left out.

use serde_json::{Value, json};

use super::block::{Block, Mark, When};
use crate::check::tier::Tier;

/// The plan for a block.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The input of `run_scene.py`; `None` if nothing of the block is left, or another step runs it.
    pub(super) work: Option<Value>,
    /// The number of commands in shell code; 1 for other code.
    pub(super) run: usize,
    /// The number of snippets that the step `doctests` compiles, and also runs unless they are marked `no_run`.
    pub(super) doctests: usize,
    pub(super) left_out: Vec<LeftOut>,
}

/// A snippet that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) line: usize,
    /// The first line of its text.
    pub(super) snippet: String,
    pub(super) reason: String,
    pub(super) when: When,
}

/// Programs whose commands must be in blocks of shell code.
const PROGRAMS: &[&str] = &["calmix ", "cargo ", "python ", "pip ", "uv ", "$ "];

impl Plan {
    /// Plans a block. `is_doctest` says whether the step `doctests` runs the Rust of its document.
    ///
    /// # Errors
    /// If the block is neither run nor marked, or a mark matches none of its commands.
    pub(super) fn new(block: &Block, tier: Tier, is_doctest: bool) -> Result<Self, String> {
        let saved_as = block.marks.iter().find_map(|mark| match mark {
            Mark::SavedAs(name) => Some(name.as_str()),
            Mark::LeftOut { .. } => None,
        });
        if let Some(name) = saved_as {
            return Ok(Self::of_work(block, "file", &block.text, Some(name)));
        }
        match block.language.as_str() {
            "sh" => Self::of_shell(block, tier),
            _ if Self::whole_mark(block).is_some() => Ok(Self::of_marked(block, tier)),
            "python" | "sql" => Ok(Self::of_work(block, &block.language, &block.text, None)),
            "text" | "console" => Self::of_output(block),
            "rust" if is_doctest => Ok(Self { doctests: 1, ..Self::default() }),
            "rust" => Err("no crate includes this document in its doctests".to_owned()),
            "toml" => Err("write `<!-- saved as NAME -->` above it".to_owned()),
            "" => Err("its fence names no language; `text` for what is not code".to_owned()),
            other => Err(format!("the language `{other}` is neither run nor marked")),
        }
    }

    fn of_work(block: &Block, kind: &str, text: &str, name: Option<&str>) -> Self {
        let work = json!({ "line": block.line, "kind": kind, "text": text, "name": name });
        Self { work: Some(work), run: 1, ..Self::default() }
    }

    /// Returns the mark of the whole block.
    fn whole_mark(block: &Block) -> Option<(When, &str)> {
        block.marks.iter().find_map(|mark| match mark {
            Mark::LeftOut { when, command: None, reason } => Some((*when, reason.as_str())),
            _ => None,
        })
    }

    /// Plans a marked block of code other than commands, which is left out at least outside the nightly tier.
    fn of_marked(block: &Block, tier: Tier) -> Self {
        let Some((when, reason)) = Self::whole_mark(block) else { return Self::default() };
        if when == When::UnlessNightly && tier == Tier::Nightly {
            return Self::of_work(block, &block.language, &block.text, None);
        }
        let snippet = block.text.lines().next().unwrap_or_default().to_owned();
        let left_out = LeftOut { line: block.line, snippet, reason: reason.to_owned(), when };
        Self { left_out: vec![left_out], ..Self::default() }
    }

    fn of_shell(block: &Block, tier: Tier) -> Result<Self, String> {
        let commands = commands(&block.text);
        let mut left_out: Vec<(ShellCommand, When, &str)> = Vec::new();
        for mark in &block.marks {
            let Mark::LeftOut { when, command, reason } = mark else { continue };
            let fits =
                |it: &&ShellCommand| command.as_ref().is_none_or(|begin| it.text.starts_with(begin.as_str()));
            let before = left_out.len();
            left_out.extend(commands.iter().filter(fits).map(|it| (it.clone(), *when, reason.as_str())));
            if left_out.len() == before {
                return Err(format!("no command begins with `{}`", command.as_deref().unwrap_or_default()));
            }
        }
        left_out.retain(|(_, when, _)| *when == When::Always || tier != Tier::Nightly);
        let lines: Vec<ShellCommand> = left_out.iter().map(|(command, _, _)| command.clone()).collect();
        let run = commands.len() - lines.len();
        let left_out = left_out.into_iter().map(|(command, when, reason)| LeftOut {
            line: block.line + 1 + command.lines.start,
            snippet: command.text.lines().next().unwrap_or_default().to_owned(),
            reason: reason.to_owned(),
            when,
        });
        let left_out = left_out.collect();
        if run == 0 {
            return Ok(Self { left_out, ..Self::default() });
        }
        let text = without(&block.text, &lines);
        Ok(Self { run, left_out, ..Self::of_work(block, "sh", &text, None) })
    }

    /// Plans a block of commands with their output, of the previous block's output, or without code.
    fn of_output(block: &Block) -> Result<Self, String> {
        let commands = block.text.lines().filter(|line| line.starts_with("$ ")).count();
        if commands > 0 {
            let work = Self::of_work(block, "transcript", &block.text, None);
            return Ok(Self { run: commands, ..work });
        }
        let is_command = |line: &&str| PROGRAMS.iter().any(|program| line.starts_with(program));
        if let Some(command) = block.text.lines().find(is_command) {
            return Err(format!("`{command}` is a command: its language is `sh`"));
        }
        let output = block.follows.then(|| Self::of_work(block, "output", &block.text, None));
        Ok(Self { run: 0, ..output.unwrap_or_default() })
    }
}

/// A command, which may have several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// The range of its lines in the block, from 0.
    pub(super) lines: std::ops::Range<usize>,
    pub(super) text: String,
}

/// Splits a block into commands: lines that end with a backslash continue, and loops end with `done`.
pub(super) fn commands(block: &str) -> Vec<ShellCommand> {
    let mut found = Vec::new();
    let mut open: Option<ShellCommand> = None;
    for (index, line) in block.lines().enumerate() {
        let trimmed = line.trim();
        if open.is_none() && (trimmed.is_empty() || trimmed.starts_with('#')) {
            continue;
        }
        let mut command = open.take().unwrap_or(ShellCommand { lines: index..index, text: String::new() });
        command.text.push_str(line);
        command.text.push('\n');
        command.lines.end = index + 1;
        let is_loop = command.text.starts_with("for ") || command.text.starts_with("while ");
        let is_open = trimmed.ends_with('\\') || (is_loop && !trimmed.ends_with("done"));
        if is_open {
            open = Some(command);
        } else {
            found.push(command);
        }
    }
    found.extend(open);
    found
}

/// Returns the block with the lines of these commands emptied, so that line numbers stay the same.
pub(super) fn without(block: &str, left_out: &[ShellCommand]) -> String {
    let mut text = String::new();
    for (index, line) in block.lines().enumerate() {
        if !left_out.iter().any(|command| command.lines.contains(&index)) {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::check::snippets::block::blocks;

    use super::*;

    fn plans(text: &str, tier: Tier) -> Vec<Result<Plan, String>> {
        blocks(text).expect("whole blocks").iter().map(|block| Plan::new(block, tier, false)).collect()
    }

    fn refusal(text: &str) -> String {
        plans(text, Tier::Usual).pop().expect("a block").expect_err("refused")
    }

    #[test]
    fn unmarked_block_of_known_language_runs() {
        for language in ["sh", "python", "sql"] {
            let plan = plans(&format!("```{language}\nx\n```\n"), Tier::Usual).pop().expect("a block");
            let plan = plan.expect(language);
            assert!(plan.work.is_some() && plan.run == 1 && plan.left_out.is_empty(), "{language}: {plan:?}");
        }
    }

    #[test]
    fn block_neither_run_nor_marked_is_refused() {
        assert!(refusal("```\ncalmix doctor\n```\n").contains("no language"));
        assert!(refusal("```text\ncalmix doctor\n```\n").contains("`sh`"));
        assert!(refusal("```toml\na = 1\n```\n").contains("saved as"));
        assert!(refusal("```rust\nfn main() {}\n```\n").contains("doctests"));
        assert!(refusal("```yaml\na: 1\n```\n").contains("`yaml`"));
        assert!(refusal("<!-- not run: `docker`: needs it -->\n```sh\nls\n```\n").contains("`docker`"));
    }

    #[test]
    fn marked_command_is_left_out() {
        let text =
            "<!-- not run: `uv`: needs wheels -->\n<!-- nightly: `ls`: slow -->\n```sh\nuv a\nls\npwd\n```\n";
        let by_day = plans(text, Tier::Usual).pop().expect("a block").expect("runs");
        assert_eq!((by_day.run, by_day.left_out.len()), (1, 2));
        assert_eq!(by_day.work.expect("work")["text"], "\n\npwd\n");
        assert_eq!((by_day.left_out[0].line, by_day.left_out[0].reason.as_str()), (4, "needs wheels"));
        let nightly_only = plans(text, Tier::Nightly).pop().expect("a block").expect("runs");
        assert_eq!((nightly_only.run, nightly_only.left_out.len()), (2, 1));
    }

    #[test]
    fn marked_block_is_left_out() {
        let text =
            "<!-- not run: needs a GPU -->\n```python\nx\n```\n\n<!-- nightly: slow -->\n```sql\ny\n```\n";
        let by_day = plans(text, Tier::Usual);
        assert!(
            by_day.iter().flatten().all(|plan| plan.work.is_none() && plan.left_out.len() == 1),
            "{by_day:?}"
        );
        let nightly_only = plans(text, Tier::Nightly).pop().expect("a block").expect("runs");
        assert!(nightly_only.work.is_some());
    }

    const SAMPLE: &str =
        "# first\ncalmix a \\\n    --b\n\nfor x in 1 2; do\n    calmix $x\ndone\nls  # all\n";

    #[test]
    fn commands_take_several_lines() {
        let found = commands(SAMPLE);
        let lines: Vec<_> = found.iter().map(|command| command.lines.clone()).collect();
        assert_eq!(lines, [1..3, 4..7, 7..8]);
        assert!(found[0].text.ends_with("--b\n"));
    }

    #[test]
    fn left_out_command_keeps_line_numbers() {
        let found = commands(SAMPLE);
        let kept = without(SAMPLE, &found[..2]);
        assert_eq!(kept, "# first\n\n\n\n\n\n\nls  # all\n");
    }
}
