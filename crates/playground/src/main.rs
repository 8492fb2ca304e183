//! The engine behind the playground: reads a question about manifests from standard input and writes the answer, both
//! JSON. Compiled for WebAssembly (`wasm32-wasip1`) it runs in a browser, where nothing leaves the page.
//!
//! ```sh
//! echo '{"manifests": "...", "name": "httproute/baker/bread"}' | entail-playground
//! ```

mod answer;
#[allow(dead_code, reason = "the server uses the rest")]
#[path = "../../../src/bounded_value.rs"]
mod bounded_value;
#[path = "../../../src/cores.rs"]
mod cores;
mod source;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use serde::Deserialize;

/// A question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// Documents of YAML or JSON.
    manifests: String,
    /// A path (`gateways/...`), or an object (`kind/namespace/name`): the paths that end at it, or below it. All paths if
    /// it is empty.
    #[serde(default)]
    name: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nobody to tell if this fails.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let question: Question = serde_json::from_str(&text)?;
    let answer = answer::answer(&question.manifests, &question.name);
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.flush()
}
