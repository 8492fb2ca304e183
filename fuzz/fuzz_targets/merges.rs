//! `fuzz/targets/merges.rs` with inputs of libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/merges.rs"]
mod target;

fuzz_target!(|text: &str| target::check(text));
