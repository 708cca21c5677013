//! Reads a request from the input and writes the answer to the output.
#![forbid(unsafe_code)]
// Its reader is the page: problems go to the error output.
#![allow(clippy::print_stderr)]

use std::io::{Read, Write, stdin, stdout};
use std::process::ExitCode;

use calmix_live::respond;

fn main() -> ExitCode {
    let mut bytes = Vec::new();
    let read = stdin().read_to_end(&mut bytes).map_err(|error| error.to_string());
    let answer = read.and_then(|_| respond(&bytes));
    let written = answer.and_then(|answer| stdout().write_all(&answer).map_err(|error| error.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
