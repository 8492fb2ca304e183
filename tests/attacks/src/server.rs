//! The server under attack: a process of the binary on a temporary folder.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::http1::{Endpoint, trusting};
use crate::world;

/// How long the server may take until it is ready.
const START: Duration = Duration::from_secs(30);

/// A server that runs. It is killed when this value is dropped.
pub struct Server {
    child: Mutex<Child>,
    folder: TempDir,
    /// The process.
    pub pid: u32,
    /// The listeners.
    pub addresses: Addresses,
    /// The admission webhook.
    pub webhook: Endpoint,
    /// The console.
    pub console: Endpoint,
}

/// The listeners of a server.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// All services.
    pub data: SocketAddr,
    /// The health service alone.
    pub health: SocketAddr,
    /// Metrics and readiness, over HTTP/1.1.
    pub admin: SocketAddr,
}

impl Server {
    /// Starts the binary on the quiet world and waits until it is ready.
    pub fn start(binary: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("manifests")).unwrap();
        fs::create_dir(at("staged")).unwrap();
        for (name, text) in world::files() {
            fs::write(at("manifests").join(name), text).unwrap();
        }
        fs::write(at("envoy.yaml"), "dialects: [envoy-gateway]\n").unwrap();
        let (data, health, admin) = (free_port(), free_port(), free_port());
        let (webhook, console) = (free_port(), free_port());
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(at("tls.crt"), certificate.cert.pem()).unwrap();
        fs::write(at("tls.key"), certificate.signing_key.serialize_pem()).unwrap();
        let mut command = Command::new(binary);
        command.arg("serve").arg("--manifests").arg(at("manifests"));
        command.args(["--listen", &data.to_string()]);
        command.args(["--health-listen", &health.to_string()]);
        command.args(["--admin-listen", &admin.to_string()]);
        command.args(["--console-listen", &console.to_string()]);
        command.args(["--admission-listen", &webhook.to_string()]);
        // Whoever reaches the address may attack: no certificate keeps the attacker out.
        command.arg("--admission-any-client");
        command.arg("--admission-tls-cert").arg(at("tls.crt"));
        command.arg("--admission-tls-key").arg(at("tls.key"));
        command.arg("--envoy-config").arg(at("envoy.yaml"));
        let log = fs::File::create(at("server.log")).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = child.spawn().expect("the binary cannot be started");
        let server = Self {
            pid: child.id(),
            child: Mutex::new(child),
            folder,
            addresses: Addresses {
                data,
                health,
                admin,
            },
            webhook: Endpoint::new(webhook, Some(trusting(certificate.cert.der()))),
            console: Endpoint::new(console, None),
        };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&self) {
        let begin = Instant::now();
        while !http_get(self.addresses.admin, "/readyz").is_ok_and(|reply| reply.contains(" 200 "))
        {
            let is_late = begin.elapsed() > START || !self.is_running();
            assert!(!is_late, "the server is not ready:\n{}", self.log_end());
            sleep(Duration::from_millis(20));
        }
    }

    /// The directory of manifests.
    pub fn manifests(&self) -> PathBuf {
        self.folder.path().join("manifests")
    }

    /// Puts a file in place of another one at once, as a ConfigMap does.
    pub fn write(&self, name: &str, text: &str) {
        let staged = self.folder.path().join("staged").join(name);
        fs::write(&staged, text).unwrap();
        fs::rename(staged, self.manifests().join(name)).unwrap();
    }

    /// Removes all files that are not of the quiet world.
    pub fn remove_foreign_files(&self) {
        let own: Vec<String> = world::files().into_iter().map(|(name, _)| name).collect();
        for entry in fs::read_dir(self.manifests()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !own.contains(&name) {
                fs::remove_file(self.manifests().join(name)).unwrap();
            }
        }
    }

    /// The last lines of the server's log.
    pub fn log_end(&self) -> String {
        let log = fs::read(self.folder.path().join("server.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().rev().take(10).collect();
        let cut = |line: &&str| line.chars().take(300).collect::<String>();
        lines.iter().rev().map(cut).collect::<Vec<_>>().join("\n")
    }

    /// Whether the process lives.
    pub fn is_running(&self) -> bool {
        matches!(self.child.lock().unwrap().try_wait(), Ok(None))
    }

    /// Ends the process at once.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ended = child.kill();
        let _status = child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address that nobody listens on.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Sends a GET and returns the whole reply.
pub fn http_get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let limit = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}
