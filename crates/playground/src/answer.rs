//! Answers questions about manifests.

use std::sync::Arc;

use entail_core::effective::World;
use entail_core::engine::{PathEngine, StateId};
use entail_core::model::{
    BlockName, Change, EffectivePolicy, GroupKind, InternalError, ListedPolicy, Object, Origin,
    PolicyRef, RejectedPolicy,
};
use entail_core::store::{ProfileSources, Store};
use entail_core::topology::{ListedPath, WalkControl};
use serde::Serialize;
use serde_json::Value;

use crate::source::manifests::{CrdSchemas, KindScopes, read_objects};

/// Maximum number of paths in an answer.
const MAX_PATHS: usize = 1_000;

/// What is in effect on some paths. The fields of policies are those of `entail get -o json`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What could not be read of the manifests.
    problems: Vec<String>,
    /// The paths, in the order of a walk.
    paths: Vec<PathAnswer>,
    /// Whether there are more paths.
    truncated: bool,
}

/// The effective policies of a path.
#[derive(Debug, Serialize)]
struct PathAnswer {
    path: String,
    policies: Vec<PolicyAnswer>,
}

/// The effective policy of a kind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyAnswer {
    group: String,
    kind: String,
    spec: Option<Value>,
    origins: Vec<OriginAnswer>,
    strategy: String,
    listed: Vec<ListedAnswer>,
    rejected: Vec<RejectedAnswer>,
    inherited_only: bool,
    not_computed: String,
    unknown: Option<UnknownAnswer>,
}

/// Where the value of a unit comes from.
#[derive(Debug, Serialize)]
struct OriginAnswer {
    unit: String,
    policies: Vec<Reference>,
    object: String,
    block: &'static str,
}

/// A policy of a kind whose policies are listed and not merged.
#[derive(Debug, Serialize)]
struct ListedAnswer {
    policy: Reference,
    node: String,
    spec: Value,
}

/// A policy that is attached and not accepted.
#[derive(Debug, Serialize)]
struct RejectedAnswer {
    policy: Reference,
    reason: String,
    message: String,
}

/// What is not known of an effective policy.
#[derive(Debug, Serialize)]
struct UnknownAnswer {
    reason: &'static str,
    message: String,
    /// The policies that may act.
    policies: Vec<Reference>,
}

#[derive(Debug, Serialize)]
struct Reference {
    namespace: String,
    name: String,
}

/// Answers a question.
pub fn answer(manifests: &str, name: &str) -> Answer {
    let parsed = read_objects(manifests, "manifests");
    let problems = parsed.problems.iter().map(ToString::to_string);
    let mut answer = Answer {
        problems: problems.collect(),
        ..Answer::default()
    };
    let objects = parsed.objects.into_iter();
    let objects = objects.map(|read| Arc::new(read.object)).collect();
    let engine = PathEngine::new(world_of(objects));
    if let Err(error) = answer.add_paths(&engine, name) {
        answer.problems.push(error.to_string());
    }
    answer
}

/// The world of objects, which get the namespaces and the defaults that an API server would give them.
fn world_of(mut objects: Vec<Arc<Object>>) -> World {
    let profiles = ProfileSources::shipped();
    let secrets = GroupKind::secret();
    objects.retain(|object| object.key.kind != secrets);
    let schemas = CrdSchemas::of(&objects);
    for object in &mut objects {
        // Objects whose defaults are too large stay as they are written.
        if let Ok(defaulted) = schemas.with_defaults(object, &mut { usize::MAX }) {
            *object = defaulted.object;
        }
    }
    let mut store = store_of(&objects);
    let scopes = scopes_of(&profiles, &store);
    for object in &mut objects {
        scopes.assign_namespace(Arc::make_mut(object));
    }
    store = store_of(&objects);
    World::from_store(store, &profiles)
}

fn store_of(objects: &[Arc<Object>]) -> Store {
    let mut store = Store::default();
    store.apply(Change {
        upserts: objects.to_vec(),
        ..Change::default()
    });
    store
}

fn scopes_of(profiles: &ProfileSources, store: &Store) -> KindScopes {
    let registry = profiles.resolve(store);
    let cluster_scoped = registry
        .profiles
        .values()
        .filter(|profile| profile.cluster_scoped);
    let mut scopes = KindScopes::new(cluster_scoped.map(|p| p.resource().clone()).collect());
    let crd = GroupKind::crd();
    let crds = store.of_kind(&crd);
    scopes.update_from_crds(crds.map(|(_, entry)| &*entry.object));
    scopes
}

impl Answer {
    /// Adds the paths that a name selects. If it is empty or an object, only those that have no paths below them.
    fn add_paths(&mut self, engine: &PathEngine, name: &str) -> Result<(), InternalError> {
        let wanted = PathFilter::parse(name);
        let mut found: Vec<(String, StateId)> = Vec::new();
        let mut failed = None;
        let step = |state: StateId, node| engine.after(state, node).ok();
        let mut visit = |path: &ListedPath<'_, StateId>| {
            if !wanted.has(path.name) {
                return WalkControl::Descend;
            }
            // A path that others are below tells less than they do.
            if wanted.is_object()
                && let Some((last, _)) = found.last()
                && path
                    .name
                    .strip_prefix(&**last)
                    .is_some_and(|rest| rest.starts_with('/'))
            {
                found.pop();
            }
            if found.len() == MAX_PATHS {
                failed = Some(());
                return WalkControl::Stop;
            }
            found.push((path.name.to_owned(), path.state));
            WalkControl::Descend
        };
        engine.trie().list(None, 0, step, &mut visit);
        self.truncated = failed.is_some();
        for (path, state) in found {
            let policies = policies_at(engine, state)?;
            self.paths.push(PathAnswer { path, policies });
        }
        Ok(())
    }
}

/// The paths that a question is about.
enum PathFilter {
    All,
    Path(String),
    /// A part of the names of its paths, in lower case.
    Object(String),
}

impl PathFilter {
    fn parse(name: &str) -> Self {
        let name = name.trim().trim_end_matches('/');
        let roots = ["gateways/", "mesh/", "gatewayclasses/", "namespaces/"];
        if name.is_empty() {
            return Self::All;
        }
        if roots.iter().any(|root| name.starts_with(root)) {
            return Self::Path(name.to_owned());
        }
        let name = name.to_lowercase();
        Self::Object(match name.split_once('/') {
            Some(("gateway" | "gateways" | "gtw", rest)) => format!("gateways/{rest}"),
            _ => name,
        })
    }

    fn is_object(&self) -> bool {
        !matches!(self, Self::Path(_))
    }

    fn has(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Path(wanted) => path == wanted,
            Self::Object(wanted) => {
                format!("/{}/", path.to_lowercase()).contains(&format!("/{wanted}/"))
            }
        }
    }
}

/// The effective policies at a state, by kind.
fn policies_at(engine: &PathEngine, state: StateId) -> Result<Vec<PolicyAnswer>, InternalError> {
    let world = engine.world();
    let mut policies = Vec::new();
    for (number, kind) in world.kinds().iter().enumerate() {
        let Some(chain) = engine.chain(number, state)? else {
            continue;
        };
        let effective = world.answer(kind, &chain);
        if !effective.is_empty() {
            policies.push(PolicyAnswer::of(&kind.profile().policy, effective));
        }
    }
    Ok(policies)
}

impl PolicyAnswer {
    fn of(kind: &GroupKind, effective: EffectivePolicy) -> Self {
        let strategy = effective.strategy.map(|strategy| strategy.to_string());
        let unknown = effective.unknown.map(|unknown| UnknownAnswer {
            reason: unknown.reason.as_str(),
            policies: unknown.policies.iter().map(Reference::of).collect(),
            message: unknown.message,
        });
        Self {
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            spec: effective.spec,
            origins: effective.origins.iter().map(OriginAnswer::of).collect(),
            strategy: strategy.unwrap_or_default(),
            listed: effective.listed.into_iter().map(ListedAnswer::of).collect(),
            rejected: effective
                .rejected
                .into_iter()
                .map(RejectedAnswer::of)
                .collect(),
            inherited_only: effective.inherited_only,
            not_computed: effective.not_computed.unwrap_or_default(),
            unknown,
        }
    }
}

impl OriginAnswer {
    fn of(origin: &Origin) -> Self {
        let object = origin.object.as_ref();
        Self {
            unit: origin.unit.text(),
            policies: origin.policies.iter().map(Reference::of).collect(),
            object: object.map(ToString::to_string).unwrap_or_default(),
            block: match origin.block {
                BlockName::Bare => "IMPLICIT_DEFAULTS",
                BlockName::Defaults => "DEFAULTS",
                BlockName::Overrides => "OVERRIDES",
                BlockName::OwnFields => "OWN_FIELDS",
            },
        }
    }
}

impl ListedAnswer {
    fn of(listed: ListedPolicy) -> Self {
        Self {
            policy: Reference::of(&listed.policy),
            node: listed.node,
            spec: listed.spec,
        }
    }
}

impl RejectedAnswer {
    fn of(rejected: RejectedPolicy) -> Self {
        Self {
            policy: Reference::of(&rejected.policy),
            reason: rejected.reason,
            message: rejected.message,
        }
    }
}

impl Reference {
    fn of(policy: &PolicyRef) -> Self {
        Self {
            namespace: policy.namespace.to_string(),
            name: policy.name.to_string(),
        }
    }
}
