//! Listeners: TCP and Unix sockets.

use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, UnixListener};

/// Who may connect to a Unix socket: its owner and group.
const SOCKET_MODE: u32 = 0o660;

/// Where to listen, or where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// An IP address and a port; port 0 takes any free one.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address: write `IP:PORT`, such as `127.0.0.1:50051`, or `unix:PATH`")]
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

/// A bound listener that another runtime can take.
#[derive(Debug)]
pub enum StdListener {
    /// Of TCP.
    Tcp(std::net::TcpListener),
    /// Of a Unix socket, with its file.
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

/// The file of a Unix socket; it goes when this does.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, so that the file of a successor stays.
    identity: (u64, u64),
}

impl Address {
    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads `IP:PORT`, `localhost:PORT` or `unix:PATH`. Other host names are not looked up: what
    /// they come to could change between the check and the listening.
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
    /// Listens on an address. A Unix socket's file that nobody listens on is replaced.
    ///
    /// # Errors
    /// The address is taken or cannot be listened on.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).await?;
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

    /// Takes it off this runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub fn into_std(self) -> io::Result<StdListener> {
        Ok(match self.socket {
            Socket::Tcp(listener) => StdListener::Tcp(listener.into_std()?),
            Socket::Unix(listener, file) => StdListener::Unix(listener.into_std()?, file),
        })
    }

    /// The address that it listens on: with its port, if any was wanted.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Binds beside the path and renames: the socket has its mode before anybody finds it, and a stale
/// one is replaced in one step.
fn bind_file(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    refuse_taken(path)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    if is_socket(&beside) {
        fs::remove_file(&beside)?;
    }
    let listener = UnixListener::bind(&beside)?;
    let file = SocketFile::of(beside)?;
    fs::set_permissions(&file.path, fs::Permissions::from_mode(SOCKET_MODE))?;
    fs::rename(&file.path, path)?;
    // Nothing is left at the name beside, so dropping that guard would remove nothing.
    let file = SocketFile::of(path.to_owned())?;
    Ok((listener, file))
}

fn refuse_taken(path: &Path) -> io::Result<()> {
    let taken = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why.to_owned()));
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    if !is_socket(path) {
        return taken("there is a file that is no socket: remove it or choose another path");
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => taken("another server listens on it: stop it or choose another path"),
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
            tracing::warn!(path = %self.path.display(), %error, "the socket's file stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written, local) in [
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
                (written, local)
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
        let taken = BoundListener::bind(&address).await.unwrap_err();
        assert!(taken.to_string().contains("another server"), "{taken}");
        drop(first);
        assert!(!path.exists());

        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = BoundListener::bind(&address).await.unwrap();
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(second);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        fs::write(&path, "precious").unwrap();
        let kept = BoundListener::bind(&address).await.unwrap_err();
        assert!(kept.to_string().contains("no socket"), "{kept}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
