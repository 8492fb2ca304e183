//! The file that tells others where a server listens.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes an address: whoever finds the file finds all of it.
pub(super) fn write(path: &Path, address: &str) -> io::Result<()> {
    let mut beside = OsString::from(path);
    beside.push(format!(".{}", std::process::id()));
    let written = fs::File::create(&beside).and_then(|mut file| {
        writeln!(file, "{address}")?;
        file.sync_all()
    });
    let result = written.and_then(|()| fs::rename(&beside, path));
    if result.is_err() {
        // The error that matters is the first one.
        let _gone = fs::remove_file(&beside);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("port");
        write(&path, "127.0.0.1:1").unwrap();
        write(&path, "127.0.0.1:2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "127.0.0.1:2\n");
        assert!(write(folder.path(), "x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
