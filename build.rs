//! Compiles `proto/entail/v1/*.proto` with protox: no protoc on the machine.
//!
//! Three outputs: messages, server stubs and client stubs. The server's replies to look-ups are
//! pre-encoded bytes, which is why its stubs name other types than the client's.

use std::error::Error;
use std::path::PathBuf;

const FILES: [&str; 4] = [
    "envoy/service/auth/v3/external_auth.proto",
    "entail/v1/types.proto",
    "entail/v1/effective_policy.proto",
    "entail/v1/policy_insight.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES)?;
    // For reflection: the builder's own option for this is ignored by `compile_fds`.
    std::fs::write(
        out.join("entail.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    let descriptors = compiler.file_descriptor_set();

    for (folder, server, client) in [
        ("messages", false, false),
        ("server", true, false),
        ("client", false, true),
    ] {
        let folder = out.join(folder);
        std::fs::create_dir_all(&folder)?;
        let mut builder = tonic_prost_build::configure()
            .build_server(server)
            .build_client(client)
            .out_dir(folder);
        if server || client {
            builder = builder
                .extern_path(".entail.v1", "crate::wire::v1")
                .extern_path(".envoy.service.auth.v3", "crate::wire::envoy");
        }
        if server {
            for reply in [
                "GetEffectivePoliciesResponse",
                "BatchGetEffectivePoliciesResponse",
                "WatchEffectivePoliciesResponse",
            ] {
                builder = builder.extern_path(
                    format!(".entail.v1.{reply}"),
                    format!("crate::wire::Encoded{reply}"),
                );
            }
        }
        builder.compile_fds(descriptors.clone())?;
    }
    Ok(())
}
