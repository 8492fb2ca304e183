//! Generates the server stubs, Envoy's messages and the descriptor set from `proto/` with protox, so
//! that no `protoc` is needed on the machine.
//!
//! The messages of `entail.v1` are those of `entail-client`. The replies to look-ups are encoded
//! before anybody asks, so the server stubs name other types for them than the client's.

use std::error::Error;
use std::path::PathBuf;

const FILES: [&str; 4] = [
    "envoy/service/auth/v3/external_auth.proto",
    "entail/v1/types.proto",
    "entail/v1/effective_policy.proto",
    "entail/v1/policy_insight.proto",
];

const ENCODED_REPLIES: [&str; 3] = [
    "GetEffectivePoliciesResponse",
    "BatchGetEffectivePoliciesResponse",
    "WatchEffectivePoliciesResponse",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES)?;
    // For reflection: `compile_fds` ignores the builder's own option for this.
    std::fs::write(
        out.join("entail.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    let mut builder = tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".entail.v1", "::entail_client::v1");
    for reply in ENCODED_REPLIES {
        builder = builder.extern_path(
            format!(".entail.v1.{reply}"),
            format!("crate::api::Encoded{reply}"),
        );
    }
    builder.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
