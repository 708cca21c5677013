//! Commands of calmix in running text, between backticks. There are too many to run, so only the existence of the command and its
//! options is checked.

use std::collections::BTreeMap;

/// A command between backticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InlineCommand {
    pub(super) line: usize,
    pub(super) text: String,
}

/// Returns the commands of calmix in the running text of a document.
pub(super) fn inline_commands(text: &str) -> Vec<InlineCommand> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    // The open span, with its first line. A span may continue on the next line, but not after an empty one.
    let mut open: Option<InlineCommand> = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            open = None;
            continue;
        }
        if is_fenced || line.trim().is_empty() {
            open = None;
            continue;
        }
        for (number, part) in line.split('`').enumerate() {
            if number > 0 {
                open = match open.take() {
                    Some(span) => {
                        found.push(span);
                        None
                    }
                    None => Some(InlineCommand { line: index + 1, text: String::new() }),
                };
            }
            if let Some(span) = &mut open {
                span.text.push_str(part);
            }
        }
        if let Some(span) = &mut open {
            span.text.push(' ');
        }
    }
    found.retain(|span| span.text.starts_with("calmix "));
    found
}

/// The help of each calmix command; that of calmix itself under the empty name.
pub(super) type Help = BTreeMap<String, String>;

/// Returns the commands that a help text lists.
pub(super) fn commands_in(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next()).collect()
}

/// Returns the problem of a command, if any.
pub(super) fn problem(command: &str, help: &Help) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let first = words.first()?;
    // `calmix COMMAND --help` means any command.
    let name = if first.starts_with('-') { "" } else { first };
    if name.starts_with(char::is_uppercase) {
        return None;
    }
    let Some(help) = help.get(name) else { return Some(format!("calmix has no command `{name}`")) };
    let options = words.iter().filter(|word| word.starts_with("--"));
    let options = options.map(|word| word.split('=').next().unwrap_or(word));
    let is_known =
        |option: &str| option == "--help" || help.split([' ', ',', '\n']).any(|word| word == option);
    let unknown = options.into_iter().find(|option| !is_known(option))?;
    Some(format!("`calmix {name}` has no option `{unknown}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_commands_may_continue_on_the_next_line() {
        let text = "Use `calmix train\n--data x`, not `ls`.\n\n```sh\n`calmix a`\n```\nOr `calmix doctor`.\n";
        let found = inline_commands(text);
        let seen: Vec<(usize, &str)> = found.iter().map(|it| (it.line, it.text.as_str())).collect();
        assert_eq!(seen, [(1, "calmix train --data x"), (7, "calmix doctor")]);
    }

    #[test]
    fn help_lists_its_commands() {
        let help =
            "Usage: calmix\n\nCommands:\n  prepare  Scan\n  train    Train\n\nOptions:\n  -h, --help\n";
        assert_eq!(commands_in(help), ["prepare", "train"]);
    }

    #[test]
    fn unknown_option_of_inline_command_is_found() {
        let help = Help::from([
            (String::new(), "  -V, --version  prints\n".to_owned()),
            ("train".to_owned(), "  --data <FOLDER>\n  -j, --threads <N>\n".to_owned()),
        ]);
        for right in
            ["calmix train --data x --threads 1", "calmix --version", "calmix COMMAND --help", "calmix train"]
        {
            assert_eq!(problem(right, &help), None, "{right}");
        }
        assert_eq!(
            problem("calmix train --dat x", &help).as_deref(),
            Some("`calmix train` has no option `--dat`")
        );
        assert_eq!(problem("calmix tran", &help).as_deref(), Some("calmix has no command `tran`"));
    }
}
