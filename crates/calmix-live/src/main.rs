//! Reads a request from the input, fits the head and writes the answer to the output.
#![forbid(unsafe_code)]
// Its reader is the page: problems go to the error output.
#![allow(clippy::print_stderr)]

use std::io::{Read, Write, stdin, stdout};
use std::process::ExitCode;

use calmix_live::refit::refit;
use calmix_live::request::Request;

fn main() -> ExitCode {
    let mut bytes = Vec::new();
    let read = stdin().read_to_end(&mut bytes).map_err(|error| error.to_string());
    let answer = read.and_then(|_| Request::read(&bytes)).and_then(|request| refit(&request));
    let written =
        answer.and_then(|answer| stdout().write_all(&answer.bytes()).map_err(|error| error.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
