//! The `entail` binary. The commands are in the library, in [`entail::cli`].

use std::process::ExitCode;

/// Returns memory to the system after a burst, which the allocator of glibc does not. A thread of its own does that, so
/// the memory of threads that have no more work is returned, too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    entail::cli::main()
}
