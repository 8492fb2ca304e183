//! Holds each file against the row of its room.

use std::collections::BTreeSet;
use std::path::Path;

use crate::modules::{Tree, declarations, is_target, reach};
use crate::source::{is_word, lex, paths, without_tests};
use crate::{ALL, COMMON, EXCUSED, GUARDED, IMPURE, MAX_LINES, Room, TABLE, WATCHED};

fn room_of(file: &Path) -> Option<String> {
    let inside = file.strip_prefix("src").ok()?;
    let mut parts = inside.components();
    let first = parts.next()?.as_os_str().to_str()?;
    Some(
        if first == "bin" {
            "main"
        } else {
            first.strip_suffix(".rs").unwrap_or(first)
        }
        .to_owned(),
    )
}

/// How many modules deep a file stands, so that `super::super::` cannot go around the rule.
fn depth_of(file: &Path) -> usize {
    let parts = file.components().count().saturating_sub(1);
    parts
        - usize::from(
            file.file_name()
                .is_some_and(|name| name == "mod.rs" || name == "lib.rs" || name == "main.rs"),
        )
}

/// What a file names of the crate's root, if anything: the segments behind `crate::` in whatever dress.
fn from_root(path: &[String], depth: usize) -> Option<&[String]> {
    match path.first()?.as_str() {
        "crate" | "entail" => path.get(1..),
        _ => {
            let hidden = usize::from(path.first()? == "self");
            let supers = path
                .iter()
                .skip(hidden)
                .take_while(|segment| *segment == "super")
                .count();
            if supers > 0 && supers >= depth {
                path.get(hidden + supers..)
            } else {
                None
            }
        }
    }
}

pub fn check_file(file: &Path, source: &str, dependencies: &[String]) -> Vec<String> {
    let Some(name) = room_of(file) else {
        return Vec::new();
    };
    let Some(room) = TABLE.iter().find(|room| room.name == name) else {
        return vec![format!(
            "{}: `{name}` is no room: it needs a row in tests/architecture.rs",
            file.display()
        )];
    };
    let tokens = without_tests(&lex(source));
    let local: BTreeSet<String> = declarations(&tokens)
        .into_iter()
        .map(|module| module.name)
        .collect();
    let mut breaches = Vec::new();
    for (path, line) in paths(&tokens) {
        let Some(first) = path.first() else { continue };
        let reason = if let Some(rest) = from_root(&path, depth_of(file)) {
            against_rooms(room, rest)
        } else if local.contains(first) {
            None
        } else {
            against_crates(room, &path, dependencies)
        };
        if let Some(reason) = reason {
            breaches.push(format!("{}:{line}: {reason}", file.display()));
        }
    }
    breaches
}

fn against_rooms(room: &Room, rest: &[String]) -> Option<String> {
    let other = rest.first()?;
    let open = room.rooms == ALL;
    if other == "*" {
        return (!open).then(|| format!("`{}` imports the whole crate; name the rooms", room.name));
    }
    if other == room.name || !TABLE.iter().any(|known| known.name == *other) {
        return None;
    }
    if let Some((_, friends)) = GUARDED.iter().find(|(name, _)| name == other) {
        // The library's root only declares it.
        return (!friends.contains(&room.name) && room.name != "lib").then(|| {
            format!(
                "`{}` may not import `{other}`: only {friends:?} may",
                room.name
            )
        });
    }
    (!open && !room.rooms.contains(&other.as_str())).then(|| {
        format!(
            "`{}` may not import `{other}`: its row names {:?}",
            room.name, room.rooms
        )
    })
}

fn against_crates(room: &Room, path: &[String], dependencies: &[String]) -> Option<String> {
    let first = path.first()?.as_str();
    if room.pure {
        // `std::time` taken whole, or by `*`, would bring the clock under another name.
        let open = path
            .iter()
            .map(String::as_str)
            .take_while(|segment| *segment != "*")
            .collect::<Vec<_>>();
        let whole = open.len() < path.len() || open.len() == 2;
        let impure = IMPURE
            .iter()
            .any(|banned| open.starts_with(banned) || whole && banned.starts_with(&open));
        let excused = EXCUSED
            .iter()
            .any(|(name, path)| *name == room.name && open.starts_with(path));
        if impure && !excused && open.len() > 1 {
            return Some(format!(
                "`{}` may not name `{}`: it is pure",
                room.name,
                path.join("::")
            ));
        }
    }
    let external = WATCHED.contains(&first) || dependencies.iter().any(|name| name == first);
    let allowed = room.crates == ALL || room.crates.contains(&first) || COMMON.contains(&first);
    (external && !allowed).then(|| {
        format!(
            "`{}` may not use the crate `{first}`: its row names {:?} beside {COMMON:?}",
            room.name, room.crates
        )
    })
}

/// The names in the dependency tables of a Cargo.toml, as they are written in Rust.
pub fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            inside = header == "dependencies"
                || header.starts_with("target.") && header.ends_with(".dependencies");
            names.extend(
                header
                    .strip_prefix("dependencies.")
                    .map(|name| name.replace('-', "_")),
            );
        } else if inside && line.starts_with(is_word) {
            let name: String = line
                .chars()
                .take_while(|c| is_word(*c) || *c == '-')
                .collect();
            names.push(name.replace('-', "_"));
        }
    }
    names
}

pub fn check_rooms(tree: &Tree, dependencies: &[String]) -> Vec<String> {
    let mut shipped = BTreeSet::new();
    for root in tree
        .keys()
        .filter(|file| is_target(file) && file.starts_with("src"))
    {
        reach(tree, root, false, &mut shipped);
    }
    let for_tests = |file: &Path| {
        file.iter()
            .any(|part| part == "tests" || part == "tests.rs")
    };
    let sources = tree
        .iter()
        .filter(|(file, _)| shipped.contains(*file) && !for_tests(file));
    sources
        .flat_map(|(file, source)| check_file(file, source, dependencies))
        .collect()
}

pub fn too_long(tree: &Tree) -> Vec<String> {
    let sources = tree.iter().filter(|(file, _)| file.starts_with("src"));
    let counted = sources.map(|(file, source)| (file, source.lines().count()));
    let long = counted.filter(|(_, lines)| *lines > MAX_LINES);
    long.map(|(file, lines)| format!("{}: {lines} lines, more than {MAX_LINES}", file.display()))
        .collect()
}
