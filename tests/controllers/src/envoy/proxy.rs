//! A real Envoy on loopback, and plain HTTP/1.1 requests to it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ProxyListener;
use super::requests::Request;

/// How long Envoy may take to start, and to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running Envoy.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    folder: PathBuf,
}

/// Why Envoy does not run.
#[derive(Debug)]
pub enum ProxyError {
    /// It refuses its configuration.
    Refused(String),
    /// It cannot be started.
    Start(String),
}

/// A response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The path that Envoy matched, if the request was routed.
    pub matched_path: Option<String>,
    /// The body.
    pub body: String,
}

/// Returns a loopback address that no other run uses, and the first port.
pub fn place() -> (String, u16) {
    let id = std::process::id();
    let byte = |shift: u32| (id >> shift) & 0xff;
    (
        format!(
            "127.{}.{}.{}",
            64 + byte(16) % 64,
            byte(8),
            1 + byte(0) % 254
        ),
        20_080,
    )
}

impl Proxy {
    /// Starts Envoy and waits until it listens.
    ///
    /// # Errors
    /// Returns an error if Envoy cannot be started, or ends.
    pub fn start(
        envoy: &Path,
        bootstrap: &Value,
        listeners: &[ProxyListener],
    ) -> Result<Self, ProxyError> {
        let start = |error: std::io::Error| ProxyError::Start(error.to_string());
        let folder = std::env::temp_dir().join(format!("entail-envoy-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(start)?;
        let file = folder.join("envoy.json");
        fs::write(&file, bootstrap.to_string()).map_err(start)?;
        let log = fs::File::create(folder.join("log")).map_err(start)?;
        let child = Command::new(envoy)
            .arg("-c")
            .arg(&file)
            .args([
                "--concurrency",
                "1",
                "--disable-hot-restart",
                "--log-level",
                "error",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(start)?;
        let mut proxy = Self { child, folder };
        let begin = Instant::now();
        for listener in listeners {
            while TcpStream::connect(&listener.address).is_err() {
                let ended = proxy.child.try_wait().map_err(start)?.is_some();
                if ended || begin.elapsed() > PATIENCE {
                    return Err(ProxyError::Refused(proxy.log()));
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(proxy)
    }

    /// The end of Envoy's log.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let line = text.lines().rfind(|line| line.contains("rror"));
        line.unwrap_or_default().chars().take(400).collect()
    }

    /// Sends a request on a connection of its own.
    ///
    /// # Errors
    /// Returns a message if there is no readable response.
    pub fn send(&self, listener: &ProxyListener, request: &Request) -> Result<Reply, String> {
        let fail = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(&listener.address).map_err(fail)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(fail)?;
        let mut text = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
        text.push_str(&format!("host: {}\r\nconnection: close\r\n", request.host));
        for (name, value) in &request.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("content-length: 0\r\n\r\n");
        stream.write_all(text.as_bytes()).map_err(fail)?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            // Envoy keeps the connection of a refused request for a while.
            match stream.read(&mut buffer).map_err(fail)? {
                0 => break,
                count => bytes.extend_from_slice(&buffer[..count]),
            }
            if let Some(reply) = read(&String::from_utf8_lossy(&bytes)) {
                return Ok(reply);
            }
        }
        Err(format!(
            "unreadable response {:?}",
            String::from_utf8_lossy(&bytes)
        ))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Reads a response if it is complete.
fn read(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.lines().next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    let length: usize = header("content-length").map_or(Some(0), |text| text.parse().ok())?;
    // The response to a gRPC call has its body in a header.
    let body = header("grpc-message").or_else(|| body.get(..length).map(str::to_owned))?;
    Some(Reply {
        status,
        matched_path: header("x-matched-path"),
        body,
    })
}
