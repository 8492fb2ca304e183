//! Measures the performance targets of the design on generated worlds, and prints the target, the
//! figure and the verdict of each. `cargo bench --profile dist --bench promises [-- ROW...]`.
//!
//! Times are the minimum of several runs, of changes in the world of teams the median, on one thread
//! except for merging many answers. Memory is the growth of the resident set, in a separate process,
//! or that of the server. Figures of different machines are not comparable; ratios within one run are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench stops by panicking"
)]

mod assertions;
#[allow(dead_code, reason = "the other benches use the rest")]
mod bench_world;
mod changing_world;
mod memory;
#[path = "../e2e/process.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod process;
mod questions;
mod reviews;
mod rows;
mod served;
mod teams;
#[path = "../world/mod.rs"]
mod world;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, shape] = arguments.as_slice()
        && flag == memory::FLAG
    {
        memory::measure(shape);
        return;
    }
    let wanted: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let mut missed = 0;
    println!("{:<44} {:>24} {:>30}", "promise", "target", "figure");
    for (name, run) in rows::ROWS {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        for row in run() {
            let verdict = match row.met {
                Some(true) => "pass",
                Some(false) => "MISS",
                None => "",
            };
            missed += usize::from(row.met == Some(false));
            println!(
                "{:<44} {:>24} {:>30}  {verdict}",
                row.promise, row.target, row.figure
            );
        }
    }
    println!("{missed} missed");
}
