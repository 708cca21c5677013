//! How many files and connections a process may have open at once.
//!
//! A process is connected to every other one, and the host of the store to every process several times. The limit that
//! most systems set first is 1,024, which some 200 processes reach; a process may raise it by itself up to a second one.

/// Raises the limit as far as the system allows. If that is too little, connecting fails with an error of its own.
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // macOS refuses more than its kernel allows, even below its own limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    #[test]
    fn the_limit_is_raised_to_what_the_system_allows() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum }).expect("a lower limit");
        super::raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
    }
}
