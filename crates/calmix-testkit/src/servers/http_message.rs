//! Requests, responses and what can go wrong with them.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

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
pub(super) struct Request {
    pub method: String,
    /// Without a query.
    pub path: String,
    /// The request line and the headers, without the empty line.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
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

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Answers each connection in a thread of its own, as long as the process runs, and says at which address.
pub(super) fn listen(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
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
pub(super) fn respond(stream: &mut TcpStream, request: &Request, head: &str, body: &[u8], faults: &Faults) {
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
