//! The second evaluator over a set of documents: objects, profiles, policies.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use entail::source::manifests::read_objects;
use serde_json::Value;

use super::delegation;
use super::force::Scenes;
use super::objects::{Objects, group_of};
use super::place::{AttachedKind, KnownControllers, fits_controller};
use super::presets::profiles;
use super::settings::Settings;

/// The built-in profiles.
static BUILT_IN: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let sources = entail_core::profile::built_in_sources();
    let read = |(name, text): &(&str, &str)| read_objects(text, name).objects;
    let objects = sources.iter().flat_map(read);
    objects.map(|read| read.object.body.value()).collect()
});

/// Documents as the second evaluator sees them.
pub struct Judge {
    pub objects: Objects,
    known: KnownControllers,
    kinds: Vec<Settings>,
}

impl Judge {
    pub fn new(documents: &[Value]) -> Self {
        let all = profiles(documents, &BUILT_IN);
        let present: BTreeSet<(&str, &str)> = documents
            .iter()
            .map(|d| (group_of(d), d["kind"].as_str().unwrap_or_default()))
            .collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut known = Vec::new();
        let mut delegating = Vec::new();
        let mut kinds = Vec::new();
        for (profile, definition) in &all {
            let spec = &profile["spec"];
            known.extend(
                spec["controllers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(text),
            );
            let (group, kind) = (
                text(&spec["policy"]["group"]),
                text(&spec["policy"]["kind"]),
            );
            delegating.extend(delegation::controllers(spec));
            if present.contains(&(group.as_str(), kind.as_str())) {
                kinds.push(Settings::read(profile, *definition));
            }
        }
        let cluster = cluster_scoped(documents, &kinds);
        let is_cluster =
            |group: &str, kind: &str| cluster.contains(&(group.to_owned(), kind.to_owned()));
        let of_group = |name: &String| {
            let mut profiles = all.iter();
            profiles.any(|(profile, _)| profile["spec"]["policy"]["group"] == **name)
        };
        let means =
            |name: &String| of_group(name) || known.iter().any(|k| fits_controller(k, name));
        let aliases = documents
            .iter()
            .filter(|d| d["kind"] == "ControllerAlias")
            .map(|d| {
                let spec = &d["spec"];
                (text(&spec["controllerName"]), text(&spec["profiles"]))
            });
        // One that means no profile says nothing (2.6).
        let aliases: Vec<_> = aliases.filter(|(_, name)| means(name)).collect();
        let mut objects = Objects::new(documents, &is_cluster);
        objects.generators = generators(all.iter().map(|(profile, _)| profile));
        Self {
            objects,
            known: KnownControllers {
                listed: known,
                aliases,
                delegating,
            },
            kinds,
        }
    }

    /// Every kind that has policies, with them in their places.
    pub fn kinds(&self) -> Vec<AttachedKind<'_>> {
        let kinds = self.kinds.iter();
        let mut placed: Vec<AttachedKind<'_>> = kinds
            .map(|kind| AttachedKind::new(kind.clone(), &self.objects, &self.known))
            .collect();
        for number in 0..placed.len() {
            let mut limits = placed[number].kind.limits.clone();
            for limit in &mut limits {
                limit.look_at(&placed);
            }
            placed[number].kind.limits = limits;
        }
        placed
    }
}

/// The kinds that live in no namespace. A CRD decides; without one, the profile (PROFILES.md, scope).
fn cluster_scoped(documents: &[Value], kinds: &[Settings]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut cluster: BTreeSet<(String, String)> = kinds
        .iter()
        .filter(|kind| kind.cluster)
        .map(|kind| (kind.group.clone(), kind.kind.clone()))
        .collect();
    for crd in documents
        .iter()
        .filter(|d| d["kind"] == "CustomResourceDefinition")
    {
        let spec = &crd["spec"];
        if spec["scope"] == "Cluster" {
            cluster.insert((text(&spec["group"]), text(&spec["names"]["kind"])));
        }
    }
    cluster
}

/// Group and kind of the Routes that generate others, each with the kind that they generate (1.9).
fn generators<'p>(profiles: impl Iterator<Item = &'p Value>) -> Vec<(String, String, String)> {
    let routes = profiles.flat_map(|profile| profile["spec"]["routeKinds"].as_array());
    let generate = routes.flatten().filter(|route| route["generates"] == true);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let generators = generate.map(|r| (text(&r["group"]), text(&r["kind"]), text(&r["like"])));
    let unique: BTreeSet<_> = generators.collect();
    unique.into_iter().collect()
}

/// The paths as a kind sees them.
pub fn scenes(placed: &AttachedKind, paths: &[String]) -> Scenes {
    let scene = |path: &String| (path.clone(), placed.scene(path));
    paths.iter().map(scene).collect()
}
