//! `fuzz/targets/cel.rs` with inputs of libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/cel.rs"]
mod target;

fuzz_target!(|text: &str| target::check(text));
