//! The number of cores.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread;

/// The number of cores that the process can use. It is found once, so that a limit that changes later counts for nothing: the
/// standard library reads several files for it.
pub(crate) fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    *CORES
}
