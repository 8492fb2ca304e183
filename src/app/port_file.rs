//! The file of `--port-file`, which contains the address that a server listens on.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes an address atomically: a reader never finds a partial file. A link in the place of the temporary file is removed
/// and not followed.
pub(super) fn write(path: &Path, address: &str) -> io::Result<()> {
    let mut temporary = OsString::from(path);
    temporary.push(format!(".{}", std::process::id()));
    // Of a server that had the same pid, or of somebody who wants us to write elsewhere.
    let _removed = fs::remove_file(&temporary);
    let written = fs::File::create_new(&temporary).and_then(|mut file| {
        writeln!(file, "{address}")?;
        file.sync_all()
    });
    let result = written.and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one to report.
        let _removed = fs::remove_file(&temporary);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_temporary_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("port");
        write(&path, "127.0.0.1:1").unwrap();
        write(&path, "127.0.0.1:2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "127.0.0.1:2\n");
        assert!(write(folder.path(), "x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("port"), folder.path().join("other"));
        fs::write(&other, "precious").unwrap();
        let temporary = folder.path().join(format!("port.{}", std::process::id()));
        std::os::unix::fs::symlink(&other, temporary).unwrap();
        write(&path, "127.0.0.1:1").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }
}
