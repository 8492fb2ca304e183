//! Listeners on TCP and Unix sockets.

use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, UnixListener};

/// Mode of a Unix socket's file: its owner and group may connect.
const SOCKET_MODE: u32 = 0o660;
/// Number of connections that may wait to be accepted, at most what the system allows. With the 128
/// of the standard library, a burst makes callers wait for a second until they try again.
const BACKLOG: i32 = 4_096;

/// An address to listen on, or to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// An IP address and a port. Port 0 selects a free port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// Error for a text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: write `IP:PORT`, such as `127.0.0.1:50051`, or `unix:PATH`")]
pub struct AddressError(String);

/// A bound listener.
#[derive(Debug)]
pub struct BoundListener {
    pub(in crate::server) socket: Socket,
    address: Address,
}

#[derive(Debug)]
pub(in crate::server) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// A bound listener without a runtime.
#[derive(Debug)]
pub enum StdListener {
    /// A TCP listener.
    Tcp(std::net::TcpListener),
    /// A listener on a Unix socket, and the socket's file.
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

/// The file of a Unix socket. Removes the file when dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, so that a file that replaced this one is not removed.
    identity: (u64, u64),
}

impl Address {
    /// Reports whether only this machine can connect to the address.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Parses `IP:PORT`, `localhost:PORT` or `unix:PATH`. Other host names are not resolved: the
    /// result could change between the check for a local address and the binding.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(AddressError(text.to_owned())),
                path => Ok(Address::Unix(path.into())),
            };
        }
        if let Some(port) = text.strip_prefix("localhost:")
            && let Ok(port) = port.parse()
        {
            return Ok(Address::Tcp((Ipv4Addr::LOCALHOST, port).into()));
        }
        let address = text.parse().map_err(|_| AddressError(text.to_owned()))?;
        Ok(Address::Tcp(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl BoundListener {
    /// Binds an address. Replaces the file of a Unix socket that no process listens on.
    ///
    /// # Errors
    /// Returns an error if the address is in use or cannot be bound.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(requested) => {
                let listener = TcpListener::bind(requested).await?;
                rustix::net::listen(&listener, BACKLOG)?;
                let address = Address::Tcp(listener.local_addr()?);
                let socket = Socket::Tcp(listener);
                Ok(Self { socket, address })
            }
            Address::Unix(path) => {
                let (listener, file) = bind_file(path)?;
                let socket = Socket::Unix(listener, file);
                let address = address.clone();
                Ok(Self { socket, address })
            }
        }
    }

    /// Detaches the listener from this runtime, so that another one can use it.
    ///
    /// # Errors
    /// Returns an error if the operating system refuses to detach the socket.
    pub fn into_std(self) -> io::Result<StdListener> {
        Ok(match self.socket {
            Socket::Tcp(listener) => StdListener::Tcp(listener.into_std()?),
            Socket::Unix(listener, file) => StdListener::Unix(listener.into_std()?, file),
        })
    }

    /// Returns the bound address. If port 0 was requested, it has the port that was selected.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Binds a socket under a temporary name and renames it to `path`, so that the socket has its mode
/// before it is visible and a stale one is replaced atomically.
fn bind_file(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    check_available(path)?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    if is_socket(&temporary) {
        fs::remove_file(&temporary)?;
    }
    let listener = UnixListener::bind(&temporary)?;
    rustix::net::listen(&listener, BACKLOG)?;
    let file = SocketFile::of(temporary)?;
    fs::set_permissions(&file.path, fs::Permissions::from_mode(SOCKET_MODE))?;
    fs::rename(&file.path, path)?;
    // The file under the temporary name is gone, so dropping its guard removes nothing.
    let file = SocketFile::of(path.to_owned())?;
    Ok((listener, file))
}

/// Returns an error if a server listens on the path, or if its file is not a socket.
fn check_available(path: &Path) -> io::Result<()> {
    let in_use = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why.to_owned()));
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    if !is_socket(path) {
        return in_use("the file exists and is not a socket: remove it or choose another path");
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => in_use("another server listens on it: stop it or choose another path"),
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

impl SocketFile {
    fn of(path: PathBuf) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(&path)?;
        let identity = (metadata.dev(), metadata.ino());
        Ok(Self { path, identity })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if same && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "failed to remove the file of the socket");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_displayed() {
        for (text, displayed, is_local) in [
            ("127.0.0.1:50051", "127.0.0.1:50051", true),
            ("localhost:0", "127.0.0.1:0", true),
            ("[::1]:1", "[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", "0.0.0.0:1", false),
            ("[::]:1", "[::]:1", false),
            ("unix:/run/x.sock", "unix:/run/x.sock", true),
            ("unix:///run/x.sock", "unix:/run/x.sock", true),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(
                (address.to_string().as_str(), address.is_local()),
                (displayed, is_local)
            );
        }
        for text in [
            "",
            "50051",
            ":50051",
            "example.org:1",
            "127.0.0.1",
            "unix:",
            "[::1]:65536",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        let address = Address::Unix(path.clone());
        let first = BoundListener::bind(&address).await.unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        let error = BoundListener::bind(&address).await.unwrap_err();
        assert!(error.to_string().contains("another server"), "{error}");
        drop(first);
        assert!(!path.exists());

        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = BoundListener::bind(&address).await.unwrap();
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(second);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        fs::write(&path, "precious").unwrap();
        let error = BoundListener::bind(&address).await.unwrap_err();
        assert!(error.to_string().contains("not a socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
