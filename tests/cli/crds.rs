//! Tests of what the CRDs among manifests determine: whether the patterns of a profile match a field.

use std::path::Path;
use std::process::Command;

const WORLD: &str = r#"
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: retrypolicies.policies.bakery.example}
spec:
  policy: {group: policies.bakery.example, kind: RetryPolicy}
  class: Inherited
  effectiveTarget: Route
  strategies: [PatchDefaults]
  rules: {defaults: [], overrides: []}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: storefront, namespace: shop}
spec:
  gatewayClassName: bakery
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: browse, namespace: shop}
spec:
  parentRefs: [{name: storefront}]
---
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: patient, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: browse}]
  backoff: {}
"#;

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: retrypolicies.policies.bakery.example}
spec:
  group: policies.bakery.example
  scope: Namespaced
  names: {kind: RetryPolicy, plural: retrypolicies}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              attempts: {type: integer, default: 2}
              backoff:
                type: object
                properties:
                  base: {type: string, default: 25ms}
              codes: {type: array, items: {type: object, properties: {code: {type: integer}}}}
"#;
/// Runs a command in a folder; returns its exit code and its output.
fn entail(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn patterns_that_match_no_field_of_the_schema_are_findings() {
    let settings = "  atomicPaths: [backof]\n  reducers: [{path: attempt, reduce: min}]\n\
        \x20 listKeys: {codes: cod}\n---\n";
    let world = WORLD.replacen("---\n", settings, 1);
    let world = world.replace("[PatchDefaults]", "[CustomDefaults, StructuralDefaults]");
    let with_crd = folder(&[("m/world.yaml", &world), ("m/crd.yaml", CRD)]);
    let (code, printed, _) = entail(with_crd.path(), &["lint", "--manifests", "m"]);
    assert_eq!(code, Some(1), "{printed}");
    let profile = "m/world.yaml:2: warning: PolicyProfile.entail.dev/retrypolicies.policies.bakery.example: \
        profile `retrypolicies.policies.bakery.example`: ";
    let end = "matches nothing in the schema of the CRD `retrypolicies.policies.bakery.example`: ";
    for (setting, problem) in [
        (
            "atomicPaths `backof` ",
            "the rules have no field `backof`; the nearest field is `backoff`",
        ),
        (
            "reducers `attempt` ",
            "the rules have no field `attempt`; the nearest field is `attempts`",
        ),
        (
            "listKeys `codes` ",
            "the items of `codes` have no field `cod`; the nearest field is `code`",
        ),
    ] {
        let line = format!("{profile}{setting}{end}{problem} [PatternMatchesNothing]\n");
        assert!(printed.contains(&line), "{line}{printed}");
    }
    // Without the CRD, nobody knows.
    let without = folder(&[("m/world.yaml", &world)]);
    let (_, printed, _) = entail(without.path(), &["lint", "--manifests", "m"]);
    assert!(!printed.contains("PatternMatchesNothing"), "{printed}");
    // A correct profile has no such finding.
    let right = world
        .replace("backof]", "backoff]")
        .replace("attempt,", "attempts,");
    let right = right.replace("codes: cod}", "codes: code}");
    let right = folder(&[("m/world.yaml", &right), ("m/crd.yaml", CRD)]);
    let (_, printed, _) = entail(right.path(), &["lint", "--manifests", "m"]);
    assert!(!printed.contains("PatternMatchesNothing"), "{printed}");
}
