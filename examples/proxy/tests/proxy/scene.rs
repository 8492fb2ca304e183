//! A proxy with a backend that fails on demand and a server that can be stopped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The routing table of the proxy; two prefixes have the same rule.
const RULES: [&str; 4] = [
    "/cart=HTTPRoute/shop/cart/rules/look",
    "/cart/pay=HTTPRoute/shop/cart/rules/pay",
    "/till=HTTPRoute/shop/cart/rules/pay",
    "/search=HTTPRoute/shop/search/rules/#0",
];

/// A rule whose backend is unreachable.
const UNREACHABLE: &str = "/unreachable=HTTPRoute/shop/cart/rules/look@http://127.0.0.1:1";

/// Maximum time to wait for an expected state.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A child process, which is killed when this value is dropped.
pub struct Process(Child);

/// An HTTP request or response.
#[derive(Debug, Default)]
pub struct Message {
    pub status: u16,
    headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// A backend that fails as often as its script says.
#[derive(Default)]
pub struct Backend(Mutex<Script>);

/// The behavior of the backend, and the requests that it received.
#[derive(Default)]
pub struct Script {
    /// Number of requests that are answered with `status`, or not at all without a status.
    failures: u32,
    status: Option<u16>,
    bodies: Vec<Vec<u8>>,
}

/// The processes of a test, in the order in which they are dropped.
pub struct Scene {
    pub proxy: Process,
    pub entail: Option<Process>,
    pub backend: Arc<Backend>,
    address: String,
    folder: TempDir,
}

impl Process {
    /// Sends SIGTERM and waits; returns whether the process exits successfully.
    pub fn terminate(&mut self) -> bool {
        let pid = self.0.id().to_string();
        let kill = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(kill.unwrap().success());
        self.0.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited already.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Message {
    /// Reads a message whose body, if any, has a `content-length`.
    fn read(from: impl Read) -> Self {
        let mut from = BufReader::new(from);
        let mut line = || {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut message = Self {
            status: status.unwrap_or_default(),
            ..Self::default()
        };
        for header in std::iter::from_fn(|| Some(line()).filter(|line| !line.is_empty())) {
            let (name, value) = header.split_once(": ").unwrap();
            let name = name.to_ascii_lowercase();
            message.headers.insert(name, value.to_owned());
        }
        let length = message.header("content-length").parse().unwrap_or(0);
        message.body.resize(length, 0);
        from.read_exact(&mut message.body).unwrap();
        message
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Backend {
    /// Starts a backend, which runs until the test process exits.
    fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let backend = Arc::new(Self::default());
        let shared = Arc::clone(&backend);
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let backend = Arc::clone(&shared);
                thread::spawn(move || backend.answer(&stream));
            }
        });
        (backend, address)
    }

    fn answer(&self, mut stream: &TcpStream) {
        let request = Message::read(stream);
        let mut status = Some(200);
        {
            let mut script = self.0.lock().unwrap();
            script.bodies.push(request.body);
            if script.failures > 0 {
                script.failures -= 1;
                status = script.status;
            }
        }
        // The proxy may have closed the connection.
        let _closed = match status {
            Some(status) => stream.write_all(
                format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
                    .as_bytes(),
            ),
            None => stream.read(&mut [0]).map(drop),
        };
    }

    /// Makes the next requests fail, and clears the received ones.
    pub fn fail(&self, failures: u32, status: Option<u16>) {
        *self.0.lock().unwrap() = Script {
            failures,
            status,
            bodies: Vec::new(),
        };
    }

    /// Bodies of the received requests.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().bodies.clone()
    }
}

impl Scene {
    /// Starts backend and proxy, and writes the manifests. The server is not started.
    pub fn new(world: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("manifests")).unwrap();
        let (backend, backend_address) = Backend::start();
        let mut proxy = Command::new(env!("CARGO_BIN_EXE_example-proxy"))
            .args(["--server", &socket(&folder), "--listen", "127.0.0.1:0"])
            .args(["--gateway", "shop/web", "--listener", "http"])
            .args(RULES.map(|rule| format!("--rule={rule}@http://{backend_address}")))
            .args(["--rule", UNREACHABLE])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(proxy.stdout.take().unwrap());
        let proxy = Process(proxy);
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ");
        let scene = Self {
            proxy,
            entail: None,
            backend,
            address: address.unwrap().to_owned(),
            folder,
        };
        scene.put("world.yaml", world);
        scene
    }

    /// Starts backend, proxy and server.
    pub fn started(world: &str) -> Self {
        let mut scene = Self::new(world);
        scene.start();
        scene
    }

    /// Starts the server and waits until the proxy is connected to it.
    pub fn start(&mut self) {
        // Tests of the whole workspace build the server into the same directory.
        let entail = Path::new(env!("CARGO_BIN_EXE_example-proxy")).with_file_name("entail");
        assert!(
            entail.exists(),
            "{entail:?} is missing: run `cargo build` first"
        );
        let child = Command::new(entail)
            .args(["serve", "--log", "warn", "--manifests"])
            .arg(self.folder.path().join("manifests"))
            // A socket path, unlike a free port, is the same after a restart.
            .args(["--listen", &socket(&self.folder)])
            .stdin(Stdio::null())
            .spawn();
        self.entail = Some(Process(child.unwrap()));
        self.until("it is live", || {
            self.get("/search").header("x-policies") == "live"
        });
    }

    pub fn manifest(&self, name: &str) -> PathBuf {
        self.folder.path().join("manifests").join(name)
    }

    /// Replaces a manifest atomically, as editors and ConfigMap volumes do.
    pub fn put(&self, name: &str, text: &str) {
        let temporary = self.folder.path().join("temporary");
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(temporary, self.manifest(name)).unwrap();
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Message {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\
             content-length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        Message::read(stream)
    }

    pub fn get(&self, path: &str) -> Message {
        self.send("GET", path, "", b"")
    }

    /// Sends a request while the backend fails `failures` times. Returns the status of the response,
    /// the number of retries, and the number of requests that the backend received.
    pub fn tries(
        &self,
        failures: u32,
        status: u16,
        send: impl Fn() -> Message,
    ) -> (u16, u32, usize) {
        self.backend.fail(failures, Some(status));
        let response = send();
        let retries = response.header("x-retries").parse().unwrap();
        (response.status, retries, self.backend.bodies().len())
    }

    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < TIMEOUT, "timed out waiting for: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn socket(folder: &TempDir) -> String {
    format!("unix:{}", folder.path().join("entail").display())
}
