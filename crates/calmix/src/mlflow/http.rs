//! HTTP/1.1 over a plain socket: one JSON request, one JSON answer.
//!
//! A client library without TLS would bring nine crates for these lines, and with TLS twenty-five, among them C and two more
//! licences. A tracking server behind https is reached through a tunnel or a proxy on this machine.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use calmix::core::shown::shown;
use serde_json::Value;

use crate::error::CliError;

/// How long a server may take to accept a connection or to go on with an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Bytes of the longest answer.
const LONGEST: u64 = 64 << 20;

/// Where a server is: `http://host:port/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    host: String,
    port: u16,
    prefix: String,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl ServerAddress {
    /// Reads an address.
    pub(crate) fn read(url: &str) -> Result<Self, CliError> {
        let invalid = |what: &str| CliError::invalid(format!("{}: {what}", shown(url)));
        let Some(rest) = url.strip_prefix("http://") else {
            let hint =
                "for https, open a tunnel: ssh -L 5000:SERVER:5000 GATEWAY, then http://127.0.0.1:5000";
            return Err(invalid("only addresses that begin with http:// are supported").hint(hint));
        };
        let (place, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let port = place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match port {
            Some((host, port)) => (host, port.parse().map_err(|_| invalid("the port is not a number"))?),
            None => (place, 80),
        };
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
        if host.is_empty()
            || host.contains('@')
            || !is_plain(host)
            || !is_plain(prefix)
            || prefix.contains(['?', '#'])
        {
            return Err(invalid("this is not the address of a server").hint("http://127.0.0.1:5000"));
        }
        let prefix = prefix.trim_end_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        Ok(Self { host: host.to_owned(), port, prefix })
    }

    /// Sends a request to a path below the prefix: POST with a body, GET without.
    pub(crate) fn ask(&self, path: &str, body: Option<&Value>) -> Result<Answer, CliError> {
        let asked = self.exchange(path, body);
        asked.map_err(|error| {
            let message = format!("http://{}:{}{}: {error}", self.host, self.port, self.prefix);
            CliError::failed(message).hint("is the server running? `mlflow server --port 5000` starts one")
        })
    }

    fn exchange(&self, path: &str, body: Option<&Value>) -> std::io::Result<Answer> {
        let mut stream = self.connect()?;
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(ToString::to_string).unwrap_or_default();
        let request = format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: calmix/{}\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.prefix,
            self.host,
            self.port,
            env!("CARGO_PKG_VERSION"),
            body.len(),
        );
        stream.write_all(request.as_bytes())?;
        let mut bytes = Vec::new();
        stream.take(LONGEST).read_to_end(&mut bytes)?;
        answer(&bytes).ok_or_else(|| std::io::Error::other("the answer is not HTTP, or it is cut"))
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::other("the name has no address");
        let host = self.host.trim_matches(['[', ']']);
        for address in (host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Reads a whole answer; none if it is not HTTP or ends too early. A body that is not JSON is null.
fn answer(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    let status = words.next()?.parse().ok()?;
    let field = |name: &str| {
        let mut fields = lines.clone().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let rest = &bytes[end + 4..];
    let body = if field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        unchunked(rest)?
    } else {
        let length = field("content-length").map_or(Some(rest.len()), |length| length.parse().ok())?;
        rest.get(..length)?.to_vec()
    };
    Some(Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

/// The chunks of a body in one piece; none if it is cut.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..end]).ok()?.split(';').next()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        bytes = &bytes[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend(bytes.get(..size)?);
        bytes = bytes.get(size.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |url: &str| ServerAddress::read(url).map(|at| (at.host, at.port, at.prefix)).ok();
        let at = |host: &str, port, prefix: &str| Some((host.to_owned(), port, prefix.to_owned()));
        assert_eq!(read("http://127.0.0.1:5000"), at("127.0.0.1", 5000, ""));
        assert_eq!(read("http://tracking/mlflow/"), at("tracking", 80, "/mlflow"));
        assert_eq!(read("http://[::1]:5000"), at("[::1]", 5000, ""));
        for wrong in
            ["https://a", "a:5000", "http://", "http://a:b", "http://u@a", "http://a/b?c", "http://a b"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn answers_that_are_cut_are_none() {
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
        let chunked = "HTTP/1.1 404 NOT FOUND\r\ntransfer-encoding: Chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n";
        for (text, status) in [(plain, 200), (chunked, 404)] {
            let whole = answer(text.as_bytes()).unwrap();
            assert_eq!((whole.status, &whole.body["a"]), (status, &1.into()));
            // The last chunk needs only its size.
            let needed = if status == 404 { text.len() - 2 } else { text.len() };
            for length in 0..needed {
                assert!(answer(&text.as_bytes()[..length]).is_none(), "{length} of {text}");
            }
        }
        let huge = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n";
        assert!(answer(huge.as_bytes()).is_none());
        assert_eq!(answer(b"HTTP/1.1 502 Bad\r\n\r\n<html>").unwrap().body, Value::Null);
    }
}
