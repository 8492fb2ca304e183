//! `fuzz/targets/http1.rs` with inputs of libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/server.rs"]
mod server;
#[path = "../targets/http1.rs"]
mod target;

fuzz_target!(|input: &[u8]| target::check(input));
