//! Attacks a running entail from outside, and measures what each attack costs others.
//!
//! `entail-attacks BINARY [NAME...]` starts the binary on a generated world and runs the attacks one
//! after the other, or those whose names begin with a NAME. Meanwhile a neighbour looks up paths at a
//! fixed rate. `README.md` describes the table that it prints, and when a run fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "an attack stops by panicking; the panic is its failure"
)]

mod callers;
mod http1;
mod neighbour;
mod observer;
mod report;
mod reviews;
mod run;
mod server;
mod target;
mod tenants;
mod wire;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

/// Whether latencies count, as in the nightly run.
const STRICT: &str = "ENTAIL_ATTACKS_STRICT";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("usage: entail-attacks BINARY [NAME...]");
        return ExitCode::from(2);
    };
    let names: Vec<String> = arguments.collect();
    let is_strict = std::env::var(STRICT).is_ok_and(|value| value == "1");
    let attacks: Vec<_> = [callers::ATTACKS, tenants::ATTACKS]
        .concat()
        .into_iter()
        .flatten()
        .copied()
        .filter(|attack| names.is_empty() || names.iter().any(|name| attack.0.starts_with(&**name)))
        .collect();
    if attacks.is_empty() {
        eprintln!(
            "no attack has a name that begins with {}",
            names.join(" or ")
        );
        return ExitCode::from(2);
    }
    if run::run(&PathBuf::from(binary), &attacks, is_strict) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
