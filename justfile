# The commands that people use. Each is a script or one call of cargo, so that nothing needs `just`.

[private]
default:
    @just --list --unsorted

# Build the binary for daily use; --profile dist is what is shipped
build *ARGS:
    cargo build --release --locked {{ARGS}}

# Run every test that needs no other program (5 minutes at most)
test *ARGS:
    scripts/test {{ARGS}}

# Test the release binary beside real servers: kubectl e2e h2spec tls envoy cluster deploy chart release clients console playground controllers verify
# attacks
test-real *TIERS:
    scripts/test-real {{TIERS}}

# Run the long tier: worlds fuzz manifests controllers counts promises
test-long *PARTS:
    scripts/test-long {{PARTS}}

# Check format, clippy, documentation, features, wasm, licences, the website
lint *STEPS:
    scripts/lint {{STEPS}}

# Generate again what is made from sources: code of the protos, tables and sessions in the documents
update:
    scripts/update

# Format all packages
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml

# Check the cases with the release binary
conformance *FILES="tests/conformance/*.yaml":
    cargo run --release --locked --quiet -- test {{FILES}}

# Run a bench: promises e2e soak watch shed peer parts
bench NAME="promises" *ARGS:
    cargo bench --profile dist --locked --bench {{NAME}} -- {{ARGS}}

# Make every file of a release: just release 0.1.0 out
release *ARGS:
    scripts/release {{ARGS}}

# Build the documentation of the packages
doc:
    scripts/lint doc

# Build the documentation as a website: the folder gets a folder for each version
site OUT="target/site":
    scripts/site {{OUT}}

# Run everything that must hold before a change is taken
gate:
    .ci/run
