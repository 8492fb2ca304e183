//! The `entail` binary. The commands are in the library, in [`entail::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    entail::cli::main()
}
