//! Tests of what the CRDs among manifests determine: the defaults of objects, and whether the patterns
//! of a profile match a field.

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
              targetRefs: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
              attempts: {type: integer, default: 2}
              backoff:
                type: object
                properties:
                  base: {type: string, default: 25ms}
              codes: {type: array, items: {type: object, properties: {code: {type: integer}}}}
"#;
const PATH: &str = "gateways/shop/storefront/listeners/http/routes/HTTPRoute/shop/browse";

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

/// The effective policy on the route.
fn policy(folder: &Path, manifests: &str) -> serde_json::Value {
    let (code, printed, errors) = entail(
        folder,
        &["get", PATH, "--manifests", manifests, "-o", "json"],
    );
    assert_eq!(code, Some(0), "{printed}{errors}");
    let answer: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let text = answer.to_string();
    let found = answer.pointer("/paths/0/policies/0/spec").cloned();
    found.unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn objects_of_files_get_the_defaults_of_their_crds() {
    let folder = folder(&[("m/world.yaml", WORLD), ("m/crd.yaml", CRD)]);
    let spec = policy(folder.path(), "m");
    assert_eq!(
        spec,
        serde_json::json!({"attempts": 2, "backoff": {"base": "25ms"}})
    );
    let (_, _, errors) = entail(folder.path(), &["get", PATH, "--manifests", "m"]);
    assert_eq!(errors, "");
}

/// A text with single spaces in place of line breaks and indentation.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_missing_crd_is_a_note_and_a_finding() {
    let folder = folder(&[("m/world.yaml", WORLD)]);
    assert_eq!(
        policy(folder.path(), "m"),
        serde_json::json!({"backoff": {}})
    );
    let note = "the manifests contain no CRD of RetryPolicy.policies.bakery.example: defaults of its \
                schema are not applied; add the CustomResourceDefinition to the manifests";
    let (code, _, errors) = entail(folder.path(), &["get", PATH, "--manifests", "m"]);
    assert_eq!(code, Some(0));
    assert_eq!(errors, format!("entail: note: {note}\n"));
    let (_, printed, _) = entail(folder.path(), &["lint", "--manifests", "m"]);
    let finding = format!("E008 note: {note} [CrdMissing] ");
    assert!(words(&printed).contains(&finding), "{printed}");
    let (_, printed, _) = entail(
        folder.path(),
        &["lint", "--manifests", "m", "--kind", "Other.example.com"],
    );
    assert!(!printed.contains("CrdMissing"), "{printed}");
    // A comparison prints the note once.
    let (_, _, errors) = entail(folder.path(), &["diff", "m", "m"]);
    assert_eq!(errors.matches("note: ").count(), 1, "{errors}");
}

#[test]
fn previewed_objects_get_defaults() {
    let folder = folder(&[
        ("m/world.yaml", WORLD),
        ("m/crd.yaml", CRD),
        ("without/world.yaml", WORLD),
        ("crd.yaml", CRD),
    ]);
    let changed = WORLD.rsplit("---\n").next().unwrap();
    let changed = changed.replace("backoff: {}", "backoff: {base: 1s}");
    std::fs::write(folder.path().join("change.yaml"), changed).unwrap();
    let preview = |manifests: &str, change: &str| {
        let arguments = [
            "preview",
            "-f",
            change,
            "--manifests",
            manifests,
            "-o",
            "json",
        ];
        let (code, printed, errors) = entail(folder.path(), &arguments);
        assert!(matches!(code, Some(0 | 1)), "{printed}{errors}");
        printed
    };
    // `attempts` has its default before and after.
    let printed = preview("m", "change.yaml");
    assert!(
        printed.contains("1s") && !printed.contains("attempts"),
        "{printed}"
    );
    // A new CRD gives existing policies its defaults.
    let printed = preview("without", "crd.yaml");
    assert!(
        printed.contains("25ms") && printed.contains("attempts"),
        "{printed}"
    );
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
    // One finding with three places.
    let head = "E007 warning: A pattern of a profile matches no field of the CRD, in 3 places [PatternMatchesNothing]";
    assert!(words(&printed).contains(head), "{printed}");
    assert!(
        printed.contains("  --> m/world.yaml:2\n      PolicyProfile.entail.dev/retrypolicies.policies.bakery.example\n"),
        "{printed}"
    );
    let profile = "- profile `retrypolicies.policies.bakery.example`: ";
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
        let line = format!("{profile}{setting}{end}{problem} ");
        assert!(words(&printed).contains(&line), "{line}{printed}");
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

/// The names of the CRDs in the files of a folder.
fn crds_in(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let text: String = texts.map(|text| format!("\n---\n{text}")).collect();
    let crds = text.split("\n---\n");
    let crds = crds.filter(|document| document.contains("\nkind: CustomResourceDefinition\n"));
    let name = |document: &str| {
        let mut lines = document.lines();
        let name = lines.find_map(|line| line.strip_prefix("  name: "));
        name.unwrap().to_owned()
    };
    crds.map(name).collect()
}

#[test]
fn an_example_replaces_no_crd_of_the_installation() {
    let (ours, examples) = (crds_in("deploy/crd"), crds_in("examples/bakery/crds"));
    assert!(
        ours.contains(&"policyprofiles.entail.dev".to_owned()),
        "{ours:?}"
    );
    assert_eq!(examples.len(), 4, "{examples:?}");
    assert!(
        examples.iter().all(|name| !ours.contains(name)),
        "{examples:?}"
    );
}
