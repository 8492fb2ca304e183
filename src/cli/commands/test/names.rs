//! Finds names in a case that nothing has: kinds, policies, objects, paths and built-in profiles.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::case::{Case, ExpectedPath, ExpectedStatus};
use crate::api::v1;
use crate::insight::{AccessScope, LocalBackend, QueryBackend, QuerySubject};
use crate::snapshot::Snapshot;
use entail_core::model::{GroupKind, did_you_mean};
use entail_core::profile::{ProfileOrigin, built_in};

/// Returns a message for each name in a case that nothing has, with its field and the nearest name,
/// and for each profile of the case that is refused.
pub(in crate::cli) fn unknown_names(case: &Case, backend: &mut LocalBackend) -> Vec<String> {
    let snapshot = Arc::clone(&backend.snapshot);
    let mut checker = NameChecker {
        kinds: known_kinds(&snapshot),
        snapshot: &snapshot,
        errors: Vec::new(),
    };
    checker.profiles(case);
    for (index, path) in case.expect.effective.iter().enumerate() {
        checker.path(&format!("expect.effective[{index}]"), path);
    }
    for (index, status) in case.expect.status.iter().enumerate() {
        checker.status(&format!("expect.status[{index}]"), status);
    }
    for (object, policies) in &case.expect.affected {
        checker.subject("expect.affected", object);
        for policy in policies {
            checker.full_name(&format!("expect.affected.{object}"), policy);
        }
    }
    for (path, kinds) in &case.expect.losses {
        let request = v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(
                path.clone(),
            )),
            ..v1::GetEffectivePoliciesRequest::default()
        };
        if let Err(error) = backend.get(request) {
            checker.errors.push(format!("expect.losses: {error}"));
        }
        for kind in kinds.keys() {
            checker.kind(&format!("expect.losses.{path}"), kind);
        }
    }
    checker.errors
}

struct NameChecker<'s> {
    snapshot: &'s Snapshot,
    /// The kinds that have a profile, a CRD or an object, as `Kind.group`.
    kinds: BTreeSet<String>,
    errors: Vec<String>,
}

impl NameChecker<'_> {
    fn profiles(&mut self, case: &Case) {
        let world = self.snapshot.world();
        let names = || {
            let built_in = built_in().iter().flatten();
            // Those of `--profiles`, so that a case for a new built-in profile runs before it is compiled in.
            let configured = world
                .profiled_kinds()
                .map(|kind| kind.profile())
                .filter(|profile| profile.origin == ProfileOrigin::Configured);
            built_in
                .map(|(_, document)| document.name())
                .chain(configured.map(|profile| &*profile.name))
        };
        for (index, profile) in case.profiles.iter().enumerate() {
            let field = format!("profiles[{index}]");
            match profile {
                Value::String(name) if names().any(|known| known == name) => {}
                Value::String(name) => {
                    let known = names().map(str::to_owned).collect();
                    let message = format!(
                        "{field}: neither a built-in profile nor one of --profiles has the name `{name}`"
                    );
                    self.errors.push(message + &did_you_mean(name, known));
                }
                Value::Object(document)
                    if document.get("kind").and_then(Value::as_str) == Some("PolicyProfile") => {}
                other => self.errors.push(format!(
                    "{field}: `{other}` is neither a PolicyProfile nor the name of a built-in \
                     profile"
                )),
            }
        }
        self.refused_profiles(case);
    }

    /// Adds the refused profiles, unless the case expects all their kinds to be unknown.
    fn refused_profiles(&mut self, case: &Case) {
        let world = self.snapshot.world();
        let unknown: BTreeSet<&str> = case
            .expect
            .effective
            .iter()
            .flat_map(|path| path.unknown.iter().map(String::as_str))
            .collect();
        let mut refused = world.refused().iter();
        if !unknown.is_empty() && refused.all(|kind| unknown.contains(kind.to_string().as_str())) {
            return;
        }
        for problem in world.problems() {
            let message = if problem.location.starts_with("objects:") {
                format!("profiles: {}", problem.message())
            } else {
                format!("profiles: {problem}")
            };
            self.errors.push(message);
        }
    }

    fn path(&mut self, field: &str, expect: &ExpectedPath) {
        let lists: [(&str, Vec<&String>); 6] = [
            ("policies", expect.policies.keys().collect()),
            ("origins", expect.origins.keys().collect()),
            ("rejected", expect.rejected.keys().collect()),
            ("listed", expect.listed.keys().collect()),
            ("unknown", expect.unknown.iter().collect()),
            ("undecided", expect.undecided.keys().collect()),
        ];
        for (list, kinds) in lists {
            for kind in kinds {
                self.kind(&format!("{field}.{list}"), kind);
            }
        }
        for (kind, units) in &expect.origins {
            for (unit, policies) in units {
                let field = format!("{field}.origins.{kind}.{unit}");
                for name in policies.sorted() {
                    // An own field of an object has the object as its origin.
                    if !self.has_object(&name) {
                        self.policy(&field, kind, &name);
                    }
                }
            }
        }
        for (kind, rejections) in &expect.rejected {
            for (index, rejection) in rejections.iter().enumerate() {
                let field = format!("{field}.rejected.{kind}[{index}]");
                self.policy(&field, kind, &rejection.policy);
            }
        }
        for (kind, policies) in &expect.listed {
            for (index, name) in policies.iter().enumerate() {
                self.policy(&format!("{field}.listed.{kind}[{index}]"), kind, name);
            }
        }
    }

    fn status(&mut self, field: &str, expect: &ExpectedStatus) {
        self.full_name(&format!("{field}.policy"), &expect.policy);
        let kind = expect.policy.split_once('/').map_or("", |(kind, _)| kind);
        for name in expect.overridden_by.iter().flatten() {
            self.policy(&format!("{field}.overriddenBy"), kind, name);
        }
    }

    /// Checks `Kind.group`.
    fn kind(&mut self, field: &str, kind: &str) {
        if !self.kinds.contains(kind) {
            let message =
                format!("{field}: no profile, CRD or object of the case has the kind `{kind}`");
            let known = self.kinds.iter().cloned().collect();
            self.errors.push(message + &did_you_mean(kind, known));
        }
    }

    /// Checks `namespace/name` of a policy of a kind. An unknown kind is another error.
    fn policy(&mut self, field: &str, kind: &str, name: &str) {
        let known = self.names_of(&GroupKind::parse(kind));
        if self.kinds.contains(kind) && !known.iter().any(|known| known == name) {
            let message = format!("{field}: the case has no {kind} `{name}`");
            self.errors.push(message + &did_you_mean(name, known));
        }
    }

    /// Checks `Kind.group/namespace/name` of a policy.
    fn full_name(&mut self, field: &str, name: &str) {
        if let Some((kind, rest)) = name.split_once('/')
            && self
                .names_of(&GroupKind::parse(kind))
                .iter()
                .any(|known| known == rest)
        {
            return;
        }
        let kinds = self.snapshot.world().store().kinds();
        let known = kinds.flat_map(|kind| {
            let names = self.names_of(kind).into_iter();
            names.map(move |name| format!("{kind}/{name}"))
        });
        let known = known.collect();
        let message = format!("{field}: the case has no object `{name}`");
        self.errors.push(message + &did_you_mean(name, known));
    }

    /// Checks an object, or a section of it.
    fn subject(&mut self, field: &str, text: &str) {
        let engine = self.snapshot.engine();
        match QuerySubject::read(text, engine.world(), &AccessScope::default()) {
            Ok(subject) if subject.exists(engine) => {}
            Ok(_) => {
                let objects = engine.world().store().objects();
                let known = objects.map(|object| object.key.to_string()).collect();
                let message = format!("{field}: the case has no object or section `{text}`");
                self.errors.push(message + &did_you_mean(text, known));
            }
            Err(error) => self.errors.push(format!("{field}: {}", error.message)),
        }
    }

    /// Whether an object has the name `Kind/namespace/name`.
    fn has_object(&self, text: &str) -> bool {
        let mut objects = self.snapshot.world().store().objects();
        objects.any(|object| object.key.to_string() == text)
    }

    /// The names of the objects of a kind, as `namespace/name`.
    fn names_of(&self, kind: &GroupKind) -> Vec<String> {
        let resource = kind.resource();
        let objects = self.snapshot.world().store().of_kind(&resource);
        objects
            .map(|(_, entry)| entry.object.key.qualified_name())
            .collect()
    }
}

/// The kinds that have a profile, a CRD or an object.
fn known_kinds(snapshot: &Snapshot) -> BTreeSet<String> {
    let world = snapshot.world();
    let store = world.store();
    let crds = GroupKind::crd();
    let profiles = world
        .kinds()
        .iter()
        .map(|kind| kind.profile().policy.clone());
    let defined = store
        .of_kind(&crds)
        .filter_map(|(_, entry)| entry.object.defined_kind());
    profiles
        .chain(world.refused().iter().cloned())
        .chain(defined)
        .chain(store.kinds().cloned())
        .map(|kind| kind.to_string())
        .collect()
}
