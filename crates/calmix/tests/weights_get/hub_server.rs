//! A Hub in the process of the test: the list of a repository's files, the files by commit, and a storage on a port of its own that
//! large files are redirected to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use serde_json::{Value, json};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    /// With small letters in their names.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first byte that is requested.
    pub(crate) fn offset(&self) -> usize {
        let range = self.header("range").and_then(|range| range.strip_prefix("bytes="));
        range.and_then(|range| range.strip_suffix('-')).map_or(0, |offset| offset.parse().unwrap())
    }
}

/// Answers a request in its own way, or returns false to leave it to the server.
type Handler = dyn Fn(&Received, &mut TcpStream) -> bool + Send + Sync;

/// A server that keeps what it received; clones are the same one.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// Starts on a free port.
    pub(crate) fn start(handler: impl Fn(&Received, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, received: Arc::default() };
        let received = Arc::clone(&server.received);
        let handler = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let received = Arc::clone(&received);
                let handler = Arc::clone(&handler);
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    // One request per connection: every answer ends with the connection.
                    if let Some(request) = read_request(&stream) {
                        received.lock().unwrap().push(request.clone());
                        handler(&request, &mut stream);
                    }
                });
            }
        });
        server
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

/// A file of the repository.
#[derive(Debug, Clone)]
pub(crate) struct StoredFile {
    pub(crate) bytes: Vec<u8>,
    /// Outside git, in the storage.
    pub(crate) is_large: bool,
}

impl StoredFile {
    pub(crate) fn hash(&self) -> String {
        if self.is_large {
            return digits(digest(&SHA256, &self.bytes).as_ref());
        }
        let mut blob = format!("blob {}\0", self.bytes.len()).into_bytes();
        blob.extend(&self.bytes);
        digits(digest(&SHA1_FOR_LEGACY_USE_ONLY, &blob).as_ref())
    }
}

/// A repository `owner/name` with one commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosted {
    pub(crate) files: BTreeMap<String, StoredFile>,
    /// More fields of the list, or others in place of those that it has.
    pub(crate) fields: BTreeMap<String, Value>,
}

impl Hosted {
    /// Adds a file in git, or in the storage.
    pub(crate) fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>, is_large: bool) -> Self {
        self.files.insert(path.to_owned(), StoredFile { bytes: bytes.into(), is_large });
        self
    }

    pub(crate) fn with_field(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// The list of its files, as the Hub answers.
    pub(crate) fn listing(&self) -> Value {
        let siblings = self.files.iter().map(|(path, file)| {
            let size = file.bytes.len();
            let large =
                file.is_large.then(|| json!({ "sha256": file.hash(), "size": size, "pointerSize": 130 }));
            let blob = if file.is_large { "b".repeat(40) } else { file.hash() };
            json!({ "rfilename": path, "size": size, "blobId": blob, "lfs": large })
        });
        let mut listing = json!({
            "_id": "1",
            "id": "owner/name",
            "sha": COMMIT,
            "gated": false,
            "tags": ["license:apache-2.0"],
            "cardData": { "license": "apache-2.0" },
            "siblings": siblings.collect::<Vec<_>>(),
        });
        for (name, value) in &self.fields {
            listing[name] = value.clone();
        }
        listing
    }
}

/// A Hub and its storage.
pub(crate) struct Hub {
    pub(crate) server: Server,
    pub(crate) storage: Server,
}

impl Hub {
    /// Serves a repository.
    pub(crate) fn start(hosted: Hosted) -> Self {
        Self::start_with(hosted, |_, _| false, |_, _| false)
    }

    /// Serves a repository where `hub` and `storage` do not answer in their own way.
    pub(crate) fn start_with(
        hosted: Hosted,
        hub: impl Fn(&Received, &mut TcpStream) -> bool + Send + Sync + 'static,
        storage: impl Fn(&Received, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let storage: Box<Handler> = Box::new(storage);
        let hub: Box<Handler> = Box::new(hub);
        let files = hosted.files.clone();
        let storage = Server::start(move |request, stream| {
            if storage(request, stream) {
                return;
            }
            let hash = request.path.trim_start_matches("/objects/").split('?').next().unwrap_or_default();
            let file = files.values().find(|file| file.hash() == hash).unwrap();
            respond_from(stream, &file.bytes, request.offset());
        });
        let objects = storage.url.clone();
        let server = Server::start(move |request, stream| {
            if hub(request, stream) {
                return;
            }
            if request.path == "/api/models/owner/name/revision/main?blobs=true" {
                return respond(stream, 200, "", hosted.listing().to_string().as_bytes());
            }
            let path = request.path.strip_prefix(&format!("/owner/name/resolve/{COMMIT}/"));
            match path.and_then(|path| hosted.files.get(path)) {
                None => respond(stream, 404, "X-Error-Code: RepoNotFound\r\n", b"Repository not found"),
                Some(file) if file.is_large => {
                    let hash = file.hash();
                    let headers = format!(
                        "Location: {objects}/objects/{hash}?X-Amz-Signature=secret\r\nX-Linked-Etag: \"{hash}\"\r\n"
                    );
                    respond(stream, 302, &headers, b"");
                }
                Some(file) => respond_from(stream, &file.bytes, request.offset()),
            }
        });
        Self { server, storage }
    }
}

/// Answers with the rest of a file from a byte on.
pub(crate) fn respond_from(stream: &mut TcpStream, bytes: &[u8], offset: usize) {
    if offset == 0 {
        return respond(stream, 200, "Accept-Ranges: bytes\r\n", bytes);
    }
    let range = format!("Content-Range: bytes {offset}-{}/{}\r\n", bytes.len() - 1, bytes.len());
    respond(stream, 206, &range, &bytes[offset..]);
}

/// Writes an answer; `headers` end with a new line each.
pub(crate) fn respond(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) {
    begin(stream, status, headers, body.len());
    // A client that is gone is none of our business.
    let _ = stream.write_all(body);
}

/// Writes the begin of an answer of that many bytes.
pub(crate) fn begin(stream: &mut TcpStream, status: u16, headers: &str, length: usize) {
    let head =
        format!("HTTP/1.1 {status} Status\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
}

fn read_request(stream: &TcpStream) -> Option<Received> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Received { path, headers })
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    })
}
