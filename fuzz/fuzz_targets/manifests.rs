//! `fuzz/targets/manifests.rs` with inputs of libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/manifests.rs"]
mod target;

fuzz_target!(|text: &str| target::check(text));
