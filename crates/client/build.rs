//! Generates messages and client stubs from `proto/entail/v1` with protox, so that no `protoc` is
//! needed on the machine.

use std::error::Error;

const PROTO: &str = "../../proto";

const FILES: [&str; 3] = [
    "entail/v1/types.proto",
    "entail/v1/effective_policy.proto",
    "entail/v1/policy_insight.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}/entail");
    let mut compiler = protox::Compiler::new([PROTO])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES)?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
