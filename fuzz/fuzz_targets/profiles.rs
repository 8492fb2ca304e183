//! `fuzz/targets/profiles.rs` with inputs of libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/profiles.rs"]
mod target;

fuzz_target!(|text: &str| target::check(text));
