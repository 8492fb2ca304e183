//! Prints what entail reads of manifests, for `tests/manifests/kubectl`. Takes paths on standard
//! input; prints for each document one line: the path, the line, and JSON or `error: ` and why.

use std::io::{self, BufRead, BufWriter, Write};

use entail::source::manifests::read_documents;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for path in io::stdin().lock().lines() {
        let path = path?;
        let text = std::fs::read(&path)?;
        for document in read_documents(&text, &path) {
            match document {
                Ok((line, value)) => writeln!(out, "{path}\t{line}\t{value}")?,
                Err(error) => {
                    let line = error.line.unwrap_or_default();
                    writeln!(out, "{path}\t{line}\terror: {}", error.message)?;
                }
            }
        }
    }
    out.flush()
}
