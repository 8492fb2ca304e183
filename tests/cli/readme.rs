//! Checks the `console` blocks of the README and the user documentation: runs their commands, and
//! compares the output.
//!
//! With `UPDATE_DOCS=1` the blocks are rewritten instead.

use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Splits a command line into words like a shell; supports single quotes only.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Writes the files that a document shows. A `yaml` block is the content of the file that is named
/// last before it; a block that is a list is inserted into the objects of the previous file.
#[derive(Default)]
struct Files {
    /// The file named last, until its block is written.
    named: Option<String>,
    /// The file written last.
    last: Option<String>,
    /// The block being read.
    block: Option<String>,
}

impl Files {
    fn line(&mut self, folder: &Path, line: &str) {
        match &mut self.block {
            Some(block) if line == "```" => {
                let block = std::mem::take(block);
                self.block = None;
                self.write(folder, block);
            }
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line == "```yaml" => self.block = Some(String::new()),
            None => {
                let mut files = line
                    .split('`')
                    .filter(|w| w.ends_with(".yaml") && !w.contains(' '));
                self.named = files.next_back().map(str::to_owned).or(self.named.take());
            }
        }
    }

    fn write(&mut self, folder: &Path, block: String) {
        if block.starts_with("- ") {
            let path = folder.join(self.last.as_ref().unwrap());
            let text = std::fs::read_to_string(&path).unwrap();
            let joined = text.replacen("\nexpect:", &format!("\n{block}expect:"), 1);
            std::fs::write(path, joined).unwrap();
        } else if let Some(name) = self.named.take() {
            let path = folder.join(&name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, block).unwrap();
            self.last = Some(name);
        }
    }
}

/// Runs a command and returns what it prints.
fn output(folder: &Path, line: &str) -> String {
    let words = words(line);
    assert_eq!(words[0], "entail", "not a command of entail: {line}");
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(&words[1..])
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// Returns the document with the current output in its `console` blocks, and the number of commands.
fn with_current_output(folder: &Path, text: &str) -> (String, usize) {
    let mut out = String::new();
    let mut files = Files::default();
    let (mut inside, mut commands) = (false, 0);
    for line in text.lines() {
        if inside && line == "```" {
            inside = false;
        }
        if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            commands += 1;
            out.push_str(line);
            out.push('\n');
            out.push_str(&output(folder, command));
            continue;
        }
        if !inside {
            out.push_str(line);
            out.push('\n');
            files.line(folder, line);
        }
        inside |= line == "```console";
    }
    (out, commands)
}

#[test]
fn console_blocks_match_the_output() {
    let mut commands = 0;
    for name in [
        "README.md",
        "docs/assertions.md",
        "docs/concepts.md",
        "docs/recipes.md",
        "docs/troubleshooting.md",
        "docs/testing.md",
        "docs/profiles.md",
    ] {
        let sandbox = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(
            Path::new(ROOT).join("examples"),
            sandbox.path().join("examples"),
        )
        .unwrap();
        let path = Path::new(ROOT).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let (current, count) = with_current_output(sandbox.path(), &text);
        commands += count;
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &current).unwrap();
            continue;
        }
        let mut lines = text.lines().zip(current.lines());
        let first = lines.find(|(shown, printed)| shown != printed);
        assert_eq!(
            first, None,
            "{name} differs from the output of the binary: run `UPDATE_DOCS=1 cargo test --test cli readme`"
        );
        assert_eq!(
            text.len(),
            current.len(),
            "{name} differs at its end: run `UPDATE_DOCS=1 cargo test --test cli readme`"
        );
    }
    assert!(commands >= 3, "{commands} commands were run");
}
