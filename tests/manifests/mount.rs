//! Files that change as those of a mounted ConfigMap do.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Replaces files like the AtomicWriter of the kubelet: writes a new directory, then renames a link to it to `..data`.
pub fn publish(mount: &Path, version: &str, files: &[(&str, String)]) {
    let real = mount.join(version);
    fs::create_dir(&real).unwrap();
    for (name, text) in files {
        fs::create_dir_all(real.join(name).parent().unwrap()).unwrap();
        fs::write(real.join(name), text).unwrap();
    }
    let before = fs::read_link(mount.join("..data")).ok();
    symlink(version, mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    for (name, _) in files {
        let first = name.split('/').next().unwrap();
        let _ = symlink(Path::new("..data").join(first), mount.join(first));
    }
    // Of files that are gone, the links are removed last.
    for entry in fs::read_dir(mount).unwrap() {
        let name = entry.unwrap().file_name();
        let name = name.to_str().unwrap();
        let is_kept = |(file, _): &(&str, String)| file.split('/').next() == Some(name);
        if !name.starts_with("..") && !files.iter().any(is_kept) {
            fs::remove_file(mount.join(name)).unwrap();
        }
    }
    if let Some(before) = before {
        fs::remove_dir_all(mount.join(before)).unwrap();
    }
}
