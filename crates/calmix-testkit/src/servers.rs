//! Servers for tests: one that serves a folder, with ETags and ranges or without, one that passes requests on to another
//! server, and the faults of both.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

/// What happens to a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It comes late.
    Late,
    /// It is an error of the server.
    Status500,
    /// The connection ends before it begins.
    Reset,
    /// It ends in the middle, although its head announces more.
    Short,
}

/// The faults of a server: of every `every` requests, the next one of the list.
#[derive(Debug, Default)]
pub struct Faults {
    every: usize,
    kinds: Vec<Fault>,
    requests: AtomicUsize,
    /// Requests by method and path, such as `GET /a.tar`.
    pub counts: Mutex<HashMap<String, usize>>,
    /// Faults that happened.
    pub happened: AtomicUsize,
}

impl Faults {
    pub fn new(every: usize, kinds: &[Fault]) -> Self {
        Self { every, kinds: kinds.to_vec(), ..Self::default() }
    }

    fn next(&self, request: &Request) -> Option<Fault> {
        *self.counts.lock().unwrap().entry(format!("{} {}", request.method, request.path)).or_default() += 1;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        if self.every == 0 || number % self.every != self.every - 1 {
            return None;
        }
        self.happened.fetch_add(1, Ordering::Relaxed);
        Some(self.kinds[number / self.every % self.kinds.len()])
    }

    /// Bodies that were requested of each path.
    pub fn gets(&self) -> HashMap<String, usize> {
        let counts = self.counts.lock().unwrap();
        let gets =
            counts.iter().filter_map(|(request, &n)| Some((request.strip_prefix("GET ")?.to_owned(), n)));
        gets.collect()
    }
}

/// A request with its body.
#[derive(Debug)]
struct Request {
    pub method: String,
    /// Without a query.
    pub path: String,
    /// The request line and the headers, without the empty line.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let mut words = head[0].split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let mut request =
            Self { method, path: target.split('?').next().unwrap().to_owned(), head, body: Vec::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if request.header("expect").is_some() {
            (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body.resize(length, 0);
        reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Answers each connection in a thread of its own, as long as the process runs, and says at which address.
fn listen(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Writes a response, or what a fault makes of it, and ends the connection.
fn respond(stream: &mut TcpStream, request: &Request, head: &str, body: &[u8], faults: &Faults) {
    let end = |stream: &TcpStream| drop(stream.shutdown(Shutdown::Both));
    let mut body = body;
    match faults.next(request) {
        Some(Fault::Late) => thread::sleep(Duration::from_millis(200)),
        Some(Fault::Status500) => {
            let text = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(text.as_bytes());
            return end(stream);
        }
        Some(Fault::Reset) => return end(stream),
        Some(Fault::Short) => body = &body[..body.len() / 2],
        None => {}
    }
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    end(stream);
}

/// A proxy that ends with the process.
#[derive(Debug)]
pub struct FaultProxy {
    pub address: String,
    pub faults: Arc<Faults>,
}

impl FaultProxy {
    /// Passes requests on to `backend`, a host with its port.
    pub fn start(backend: &str, faults: Faults) -> Self {
        let faults = Arc::new(faults);
        let shared = Arc::clone(&faults);
        let backend = backend.to_owned();
        let address = listen(move |stream| pass_on(stream, &backend, &shared));
        Self { address, faults }
    }
}

fn pass_on(mut stream: TcpStream, backend: &str, faults: &Faults) {
    let Ok(Some(request)) = Request::read(&stream) else { return };
    let is_passed = |line: &&String| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        // The host stays as it is, because signatures are made over it.
        name != "connection" && name != "expect"
    };
    let mut lines: Vec<&str> = request.head.iter().filter(is_passed).map(String::as_str).collect();
    lines.extend(["Connection: close", "", ""]);
    let head = lines.join("\r\n");
    let mut answer = Vec::new();
    let Ok(mut server) = TcpStream::connect(backend) else { return };
    if server.write_all(head.as_bytes()).and_then(|()| server.write_all(&request.body)).is_err() {
        return;
    }
    let _ = server.read_to_end(&mut answer);
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return };
    let (head, body) = answer.split_at(end + 4);
    respond(&mut stream, &request, &String::from_utf8_lossy(head), body, faults);
}

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
