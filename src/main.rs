//! The `entail` binary. The commands are in the library, in [`entail::cli`].

use std::process::ExitCode;

/// Returns memory to the system after a burst, which the allocator of glibc does not. Without huge pages, which double
/// what a small cluster takes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    entail::cli::main()
}
