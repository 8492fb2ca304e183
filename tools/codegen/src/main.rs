//! Generates Rust code from `proto/` and writes it into the repository:
//!
//! ```sh
//! cargo run -p entail-codegen
//! ```
//!
//! The result is kept in the repository because generating it needs a compiler of protobuf, which
//! takes longer to build than the code that comes out. A test compares the two.

use std::error::Error;
use std::fs;
use std::path::Path;

include!("checksum.rs");

const API: [&str; 3] = [
    "entail/v1/types.proto",
    "entail/v1/effective_policy.proto",
    "entail/v1/policy_insight.proto",
];

const ENVOY: &str = "envoy/service/auth/v3/external_auth.proto";

/// Replies that the server keeps encoded: its stubs name other types for them than the client's.
const ENCODED_REPLIES: [&str; 3] = [
    "GetEffectivePoliciesResponse",
    "BatchGetEffectivePoliciesResponse",
    "WatchEffectivePoliciesResponse",
];

/// Messages and client stubs.
const CLIENT: &str = "crates/client/src/generated";

/// Server stubs, Envoy's messages, and the descriptors for reflection.
const SERVER: &str = "src/api/generated";

fn main() -> Result<(), Box<dyn Error>> {
    // Read at run time: with a shared target folder the binary may come from another checkout.
    let package = std::env::var("CARGO_MANIFEST_DIR")
        .map_err(|_| "run this program with `cargo run -p entail-codegen`")?;
    let root = Path::new(&package).join("../..");
    generate(&root.join("proto"), &root)
}

/// Writes the generated files of the protos below a root folder.
fn generate(proto: &Path, root: &Path) -> Result<(), Box<dyn Error>> {
    let (client, server) = (root.join(CLIENT), root.join(SERVER));
    fs::create_dir_all(&client)?;
    fs::create_dir_all(&server)?;

    let mut compiler = protox::Compiler::new([proto])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(API)?;
    tonic_prost_build::configure()
        .build_server(false)
        .out_dir(&client)
        .compile_fds(compiler.file_descriptor_set())?;

    compiler.open_files([ENVOY])?;
    // The builder's own option for this has no effect on `compile_fds`.
    fs::write(
        server.join("entail.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    let mut builder = tonic_prost_build::configure()
        .build_client(false)
        .out_dir(&server)
        .extern_path(".entail.v1", "::entail_client::v1");
    for reply in ENCODED_REPLIES {
        builder = builder.extern_path(
            format!(".entail.v1.{reply}"),
            format!("crate::api::Encoded{reply}"),
        );
    }
    builder.compile_fds(compiler.file_descriptor_set())?;
    fs::write(server.join("checksum"), checksum(proto)? + "\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_code_in_the_repository_is_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let fresh = tempfile::tempdir().unwrap();
        generate(&root.join("proto"), fresh.path()).unwrap();
        for folder in [CLIENT, SERVER] {
            for entry in fs::read_dir(fresh.path().join(folder)).unwrap() {
                let name = entry.unwrap().file_name();
                let kept = fs::read(root.join(folder).join(&name));
                let generated = fs::read(fresh.path().join(folder).join(&name)).unwrap();
                assert!(
                    kept.is_ok_and(|kept| kept == generated),
                    "{folder}/{} is out of date: run `cargo run -p entail-codegen`",
                    name.display()
                );
            }
        }
    }
}
