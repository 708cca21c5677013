//! How many files and connections a process may have open at once.
//!
//! The limit that most systems set first is 1,024. A process is connected to every other one, and the host of the store to
//! every process several times, so some 200 processes reach it, and so does a dataset of a thousand files that stay open. A
//! process may raise it by itself up to a second limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows. If that is too little, opening fails with an error of its own.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // macOS refuses more than its kernel allows, even below its own limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The files that this process may have open; `None` for any number.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_raised_to_what_the_system_allows() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum }).expect("a lower limit");
        assert_eq!(limit(), Some(256));
        raise_limit();
        assert_eq!(limit(), maximum);
    }
}
