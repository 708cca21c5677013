//! Tests of the texts that the command line itself prints, help and refusals, word for word. They run in this process, because a
//! process for each would spend its time on loading libtorch.

use calmix_testkit::golden;
use clap::{CommandFactory, Error};

use super::Calmix;

/// Returns clap's error for arguments that start no command.
fn refused(arguments: &[&str]) -> Option<Error> {
    // The width in a pipe, so that the terminal of the tests does not matter.
    let mut calmix = Calmix::command().term_width(100);
    calmix.try_get_matches_from_mut([&["calmix"], arguments].concat()).err()
}

fn help(arguments: &[&str]) -> String {
    let error = refused(arguments).expect("a help text");
    assert_eq!(error.exit_code(), 0, "{error}");
    error.render().to_string()
}

#[test]
fn every_help() {
    let overview = help(&["--help"]);
    golden::golden("help.txt", &overview);
    golden::golden("help-short.txt", &help(&["-h"]));
    let calmix = Calmix::command();
    for command in calmix.get_subcommands().map(clap::Command::get_name) {
        assert!(overview.contains(&format!("\n  {command} ")), "{command}");
        golden::golden(&format!("help-{command}.txt"), &help(&[command, "--help"]));
    }
}

/// The lines of errors.txt that clap refuses in its own words. The others are tested by a process in `tests/cli/errors.rs`.
#[test]
fn refusals_are_as_expected() {
    let expected = std::fs::read_to_string(golden::path("errors.txt")).unwrap();
    let mut compared = 0;
    for section in expected.split("$ calmix ").skip(1) {
        let (line, _) = section.split_once('\n').unwrap();
        let Some(error) = refused(&line.split(' ').collect::<Vec<_>>()) else { continue };
        if crate::error::intended_option(&error).is_none() {
            assert_eq!(section, format!("{line}\n{}exit code {}\n\n", error.render(), error.exit_code()));
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}

/// Tables in help texts are laid out by hand for 100 columns; a longer line would be broken in the middle.
#[test]
fn tables_of_help_fit_their_columns() {
    let calmix = Calmix::command();
    for command in calmix.get_subcommands().flat_map(|command| command.get_subcommands().chain([command])) {
        let texts = [command.get_after_help(), command.get_after_long_help()];
        for line in texts
            .into_iter()
            .flatten()
            .flat_map(|text| text.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
        {
            assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
        }
    }
}
