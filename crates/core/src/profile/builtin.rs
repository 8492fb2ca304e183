//! The built-in profiles. They are YAML files, so that adding a kind needs no Rust code.

use std::sync::{Arc, LazyLock};

use super::document::{ProfileDocument, ProfileError, parse_documents};
use super::{Profile, ProfileOrigin};

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

/// Returns what [`built_in`] documents resolve to where no CRD has a label, in their order. They are resolved once:
/// expressions are compiled, and every world has the same profiles.
pub(crate) fn resolved() -> &'static [Result<Arc<Profile>, ProfileError>] {
    static PROFILES: LazyLock<Vec<Result<Arc<Profile>, ProfileError>>> = LazyLock::new(|| {
        let documents = built_in().iter().flatten();
        let profiles = documents.map(|(location, document)| {
            Profile::resolve(document, ProfileOrigin::BuiltIn, None, location).map(Arc::new)
        });
        profiles.collect()
    });
    &PROFILES
}

/// Returns names and contents of the files of built-in profiles.
pub fn built_in_sources() -> &'static [(&'static str, &'static str)] {
    FILES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_built_in_profile_resolves_to_its_own_kind() {
        let mut kinds = BTreeSet::new();
        for (parsed, profile) in built_in().iter().zip(resolved()) {
            let (location, _) = parsed.as_ref().unwrap();
            let profile = profile.as_ref().unwrap();
            assert!(kinds.insert(profile.policy.clone()), "{location}");
            assert!(profile.name.ends_with(&*profile.policy.group), "{location}");
        }
        assert!(kinds.len() >= 29, "{}", kinds.len());
    }
}
