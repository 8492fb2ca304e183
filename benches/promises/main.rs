//! The promises of the design, measured in one run: worlds of a known shape, and for each row the
//! target, the figure, and whether it is met. `cargo bench --bench promises [-- ROW...]`.
//!
//! Times are the least of several runs, of one thread but for what is computed from scratch; memory
//! is the growth of what is resident, in a process of its own. Figures of different machines do not
//! compare; ratios inside one run do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench stops by panicking"
)]

#[allow(dead_code, reason = "the other benches use the rest")]
mod bench_world;
mod memory;
mod questions;
mod rows;
#[path = "../world/mod.rs"]
mod world;

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
