//! A web server for one folder, with ETags and ranges or without.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::http_message::{Faults, Request, listen, respond};

/// A server that ends with the process.
#[derive(Debug)]
pub struct FileServer {
    pub address: String,
    pub faults: Arc<Faults>,
}

impl FileServer {
    /// Serves the files of `folder`.
    pub fn start(folder: &Path, faults: Faults) -> Self {
        Self::serving(folder, faults, true)
    }

    /// The same, without ETags and ranges, as Python's own server.
    pub fn start_plain(folder: &Path, faults: Faults) -> Self {
        Self::serving(folder, faults, false)
    }

    fn serving(folder: &Path, faults: Faults, has_tags: bool) -> Self {
        let faults = Arc::new(faults);
        let shared = Arc::clone(&faults);
        let folder = folder.to_owned();
        let address = listen(move |stream| serve(stream, &folder, &shared, has_tags));
        Self { address, faults }
    }
}

fn serve(mut stream: TcpStream, folder: &Path, faults: &Faults, has_tags: bool) {
    let Ok(Some(request)) = Request::read(&stream) else { return };
    let file: PathBuf = folder.join(request.path.trim_start_matches('/'));
    let close = "Connection: close\r\n\r\n";
    let Ok(bytes) = fs::read(&file) else {
        let head = format!("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n{close}");
        return respond(&mut stream, &request, &head, b"", faults);
    };
    if !has_tags {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nLast-Modified: Tue, 17 Nov 2026 12:00:00 GMT\r\n{close}",
            bytes.len()
        );
        let body = if request.method == "HEAD" { &[] } else { bytes.as_slice() };
        return respond(&mut stream, &request, &head, body, faults);
    }
    // Cheap, and another one for every other content here.
    let sum: u64 = bytes.iter().fold(7, |sum, &byte| sum * 31 % 1_000_000_007 + u64::from(byte));
    let tag = format!("\"{sum}-{}\"", bytes.len());
    if request.header("if-match").is_some_and(|wanted| wanted != tag) {
        let head = format!("HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n{close}");
        return respond(&mut stream, &request, &head, b"", faults);
    }
    let range = request.header("range").and_then(|range| range.strip_prefix("bytes="));
    let bounds = range.and_then(|range| range.split_once('-'));
    let (status, from, to) = match bounds {
        None => ("200 OK".to_owned(), 0, bytes.len()),
        Some((from, to)) => {
            let from: usize = from.parse().unwrap();
            let to = to.parse::<usize>().map_or(bytes.len(), |to| (to + 1).min(bytes.len()));
            ("206 Partial Content".to_owned(), from, to)
        }
    };
    let range = bounds.map(|_| format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len()));
    let range = range.unwrap_or_default();
    let length = to - from;
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: {tag}\r\n{range}{close}");
    let body = if request.method == "HEAD" { &[] } else { &bytes[from..to] };
    respond(&mut stream, &request, &head, body, faults);
}
