//! The built-in profiles. They are YAML files, so that adding a kind needs no Rust code.

use std::sync::LazyLock;

use super::document::{ProfileDocument, ProfileError, parse_documents};

/// Name and content of each file of built-in profiles. A test compares the list with the folder.
const FILES: &[(&str, &str)] = &[
    (
        "agentgateway.yaml",
        include_str!("builtin/agentgateway.yaml"),
    ),
    ("agentic.yaml", include_str!("builtin/agentic.yaml")),
    ("airlock.yaml", include_str!("builtin/airlock.yaml")),
    ("apisix.yaml", include_str!("builtin/apisix.yaml")),
    ("aws-lattice.yaml", include_str!("builtin/aws-lattice.yaml")),
    (
        "envoy-ai-gateway.yaml",
        include_str!("builtin/envoy-ai-gateway.yaml"),
    ),
    (
        "envoy-gateway.yaml",
        include_str!("builtin/envoy-gateway.yaml"),
    ),
    ("flomesh.yaml", include_str!("builtin/flomesh.yaml")),
    ("gateway-api.yaml", include_str!("builtin/gateway-api.yaml")),
    ("gke.yaml", include_str!("builtin/gke.yaml")),
    ("gloo.yaml", include_str!("builtin/gloo.yaml")),
    ("istio.yaml", include_str!("builtin/istio.yaml")),
    ("kgateway.yaml", include_str!("builtin/kgateway.yaml")),
    ("kuadrant.yaml", include_str!("builtin/kuadrant.yaml")),
    (
        "kuadrant-extensions.yaml",
        include_str!("builtin/kuadrant-extensions.yaml"),
    ),
    (
        "listed-examples.yaml",
        include_str!("builtin/listed-examples.yaml"),
    ),
    (
        "nginx-gateway-fabric.yaml",
        include_str!("builtin/nginx-gateway-fabric.yaml"),
    ),
];

/// Returns the built-in profile documents with their locations. They are parsed once.
pub fn built_in() -> &'static [Result<(String, ProfileDocument), ProfileError>] {
    static DOCUMENTS: LazyLock<Vec<Result<(String, ProfileDocument), ProfileError>>> =
        LazyLock::new(|| {
            FILES
                .iter()
                .flat_map(|(name, text)| parse_documents(text, &format!("built-in {name}")))
                .collect()
        });
    &DOCUMENTS
}

/// Returns names and contents of the files of built-in profiles.
pub fn built_in_sources() -> &'static [(&'static str, &'static str)] {
    FILES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Profile, ProfileOrigin};
    use std::collections::BTreeSet;

    #[test]
    fn every_built_in_profile_resolves_to_its_own_kind() {
        let mut kinds = BTreeSet::new();
        for parsed in built_in() {
            let (location, document) = parsed.as_ref().unwrap();
            let profile =
                Profile::resolve(document, ProfileOrigin::BuiltIn, None, location).unwrap();
            assert!(kinds.insert(profile.policy.clone()), "{location}");
            assert!(profile.name.ends_with(&*profile.policy.group), "{location}");
        }
        assert!(kinds.len() >= 29, "{}", kinds.len());
    }
}
