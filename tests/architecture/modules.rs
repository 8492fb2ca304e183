//! Which files the modules of a target reach.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::source::{Token, is_name, lex, matches_at, text, without_tests};

/// Sources by their path from the root of the crate.
pub type Tree = BTreeMap<PathBuf, String>;

#[derive(Debug, PartialEq)]
pub struct Module {
    pub name: String,
    /// Modules with a body around the declaration: each is a folder.
    pub inline: Vec<String>,
    pub path: Option<String>,
}

/// The `mod x;` of a file, and what it includes.
pub fn declarations(tokens: &[Token]) -> Vec<Module> {
    let mut found = Vec::new();
    let mut open: Vec<(String, usize)> = Vec::new();
    let (mut depth, mut path) = (0_usize, None);
    for at in 0..tokens.len() {
        let name = text(tokens, at + 1).to_owned();
        let inline = || open.iter().map(|(name, _)| name.clone()).collect();
        match text(tokens, at) {
            "path" if name == "=" && text(tokens, at.wrapping_sub(1)) == "[" => {
                path = text(tokens, at + 2).strip_prefix('"').map(str::to_owned);
            }
            "include" if matches_at(tokens, at + 1, &["!", "("]) => {
                let file = text(tokens, at + 3).strip_prefix('"').map(str::to_owned);
                found.extend(file.map(|file| Module {
                    name: String::new(),
                    inline: Vec::new(),
                    path: Some(file),
                }));
            }
            "mod" if is_name(&name) && text(tokens, at + 2) == ";" => {
                found.push(Module {
                    name,
                    inline: inline(),
                    path: path.take(),
                });
            }
            "mod" if is_name(&name) && text(tokens, at + 2) == "{" => open.push((name, depth)),
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                open.retain(|(_, at_depth)| *at_depth < depth);
            }
            ";" => path = None,
            _ => {}
        }
    }
    found
}

/// The files that `root` reaches by its modules, itself included; `tests` says whether to follow test modules.
pub fn reach(tree: &Tree, root: &Path, tests: bool, reached: &mut BTreeSet<PathBuf>) {
    let mut queue = vec![(root.to_path_buf(), true)];
    while let Some((file, is_root)) = queue.pop() {
        let Some(source) = tree.get(&file) else {
            continue;
        };
        if !reached.insert(file.clone()) {
            continue;
        }
        let tokens = lex(source);
        let tokens = if tests {
            tokens
        } else {
            without_tests(&tokens)
        };
        let parent = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let owns_folder = is_root || file.file_name().is_some_and(|name| name == "mod.rs");
        let folder = if owns_folder {
            parent.clone()
        } else {
            file.with_extension("")
        };
        for module in declarations(&tokens) {
            let inside = module
                .inline
                .iter()
                .fold(folder.clone(), |folder, name| folder.join(name));
            if let Some(path) = module.path {
                let base = if module.inline.is_empty() {
                    &parent
                } else {
                    &inside
                };
                queue.push((plain(&base.join(path)), false));
            } else {
                queue.push((inside.join(format!("{}.rs", module.name)), false));
                queue.push((inside.join(&module.name).join("mod.rs"), false));
            }
        }
    }
}

fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
        plain
    })
}

/// Cargo's own rules for what is a target.
pub fn is_target(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] | ["src", "bin", _, "main.rs"] => true,
        ["tests" | "benches" | "examples", name] => name.ends_with(".rs"),
        ["tests" | "benches" | "examples", _, "main.rs"] => true,
        _ => false,
    }
}

pub fn unreached(tree: &Tree) -> Vec<String> {
    let mut reached = BTreeSet::new();
    for root in tree.keys().filter(|file| is_target(file)) {
        reach(tree, root, true, &mut reached);
    }
    let lost = tree.keys().filter(|file| !reached.contains(*file));
    lost.map(|file| {
        format!(
            "{}: no `mod` reaches it, so it is not compiled",
            file.display()
        )
    })
    .collect()
}
