//! Resolution of a reference to nodes, with the checks in the order of specification 3.3: allowed by
//! the profile, permitted, found.

use super::section::has_sections;
use super::{AttachmentGroup, Context};
use crate::model::{GroupKind, LabelSelector, NodeKey, ObjectKey, Outcome, Str, groups};
use crate::profile::{Reference, ReferenceTarget, SelectorNamespaces, TargetKinds};

/// The outcome of a reference that fails, and the reason.
type ReferenceError = (Outcome, String);

impl Context<'_> {
    /// Resolves a reference.
    ///
    /// # Errors
    /// The outcome of the first check that fails.
    pub(super) fn resolve(
        &self,
        reference: &Reference,
    ) -> Result<Vec<(NodeKey, AttachmentGroup)>, ReferenceError> {
        if let Some(reason) = &reference.invalid {
            return Err((Outcome::Invalid, reason.to_string()));
        }
        self.check_allowed(reference)?;
        match &reference.target {
            ReferenceTarget::Name(name) => self.by_name(reference, name),
            ReferenceTarget::Selector(selector) => self.by_selector(reference, selector),
        }
    }

    /// Checks that the profile allows the kind and the section, that the kind has sections (specification
    /// 11.28), and that the policy can name the kind (specification 2.11).
    fn check_allowed(&self, reference: &Reference) -> Result<(), ReferenceError> {
        let kind = &reference.kind;
        let sections = match self.profile.target(kind) {
            Some(sections) => sections,
            None => {
                return Err((
                    Outcome::Invalid,
                    format!(
                        "the kind does not target `{kind}`{}",
                        self.what_it_targets()
                    ),
                ));
            }
        };
        let has_sections = has_sections(self.store, kind) || self.profile.names_ports_of(kind);
        if reference.section.is_some() && !(sections && has_sections) {
            return Err((
                Outcome::Invalid,
                format!("the kind does not target sections of `{kind}`"),
            ));
        }
        let Some(target) = self.profile.listed_target(kind) else {
            return Ok(());
        };
        // Where policies are checked again after they were merged, the policy keeps its places (2.13).
        if let Some(refusal) = target.refusal_of(self.policy).filter(|_| !target.merged) {
            return Err((Outcome::Invalid, refusal));
        }
        let root = self.profile.root_namespace.as_ref();
        if target.root_only && root != Some(&self.policy.key.namespace) {
            return Err((
                Outcome::RefNotPermitted,
                format!("only policies in the root namespace can target `{kind}`"),
            ));
        }
        Ok(())
    }

    /// Says what the kind targets, if its profile lists it.
    fn what_it_targets(&self) -> String {
        let TargetKinds::Listed(targets) = &self.profile.targets else {
            return String::new();
        };
        let names = targets.iter().map(|target| format!("`{}`", target.kind));
        let names: Vec<String> = names.collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(": use {}", names.join(", ")),
        }
    }

    fn by_name(
        &self,
        reference: &Reference,
        name: &Str,
    ) -> Result<Vec<(NodeKey, AttachmentGroup)>, ReferenceError> {
        let kind = &reference.kind;
        let namespace: Str = if self.is_cluster_scoped(kind) {
            "".into()
        } else {
            let own = &self.policy.key.namespace;
            reference.namespace.as_ref().unwrap_or(own).clone()
        };
        let target = ObjectKey::new(kind.clone(), namespace, name.clone());
        let group = self
            .check_reference(&target)
            .map_err(|message| (Outcome::RefNotPermitted, message))?;
        let generators = self.generators(&target, reference.section.as_deref(), &group);
        if !generators.is_empty() {
            // The Route that is made can also be a backend by its reference (specification 1.4).
            let own = self.exists(&target).then(|| {
                let node = self.section(target.clone(), reference.section.as_deref());
                Some((node?, group))
            });
            return Ok(own.flatten().into_iter().chain(generators).collect());
        }
        if !self.exists(&target) {
            return Err((
                Outcome::TargetNotFound,
                format!("`{target}` does not exist"),
            ));
        }
        if let Some(port) = reference.port {
            let found = self.listeners_of_port(&target, port);
            return match found.is_empty() {
                false => Ok(found),
                true => Err((
                    Outcome::TargetNotFound,
                    format!("`{target}` has no listener of port {port}"),
                )),
            };
        }
        let section = reference.section.as_deref();
        let node = self.section(target.clone(), section);
        let node = node.map(|node| (node, group));
        match node.or_else(|| self.gateway_section(&target, section?)) {
            Some(found) => Ok(vec![found]),
            None => Err((
                Outcome::TargetNotFound,
                format!(
                    "`{target}` has no section `{}`",
                    section.unwrap_or_default()
                ),
            )),
        }
    }

    /// The nodes of the Routes that generate a Route, which need not exist (specification 1.9).
    fn generators(
        &self,
        generated: &ObjectKey,
        section: Option<&str>,
        group: &AttachmentGroup,
    ) -> Vec<(NodeKey, AttachmentGroup)> {
        let kinds = self.store.generators(&generated.kind);
        let routes = kinds.map(|kind| {
            let (namespace, name) = (generated.namespace.clone(), generated.name.clone());
            ObjectKey::new(kind.clone(), namespace, name)
        });
        let routes = routes.filter(|route| self.store.route(route).is_some());
        let nodes = routes.filter_map(|route| self.section(route, section));
        nodes.map(|node| (node, group.clone())).collect()
    }

    /// Returns the nodes that a selector matches. Targets that are not permitted are skipped; no match
    /// is TargetNotFound.
    fn by_selector(
        &self,
        reference: &Reference,
        selector: &LabelSelector,
    ) -> Result<Vec<(NodeKey, AttachmentGroup)>, ReferenceError> {
        let kind = &reference.kind;
        let mut nodes = Vec::new();
        let mut consider = |target: ObjectKey, labels, attached: ObjectKey| {
            if !selector.matches(labels)
                || !self.selects_namespace(reference, self.namespace_of(&target))
            {
                return;
            }
            if let Ok(group) = self.check_reference(&target) {
                nodes.push((NodeKey::whole(attached), group));
            }
        };
        if kind.is_namespace() {
            for (name, labels) in self.topology.namespace_labels() {
                let key = ObjectKey::new(kind.clone(), "", name.clone());
                consider(key.clone(), labels, key);
            }
        } else {
            for ((namespace, name), entry) in self.store.of_kind(kind) {
                let key = ObjectKey::new(kind.clone(), namespace.clone(), name.clone());
                consider(key.clone(), &entry.object.labels, key);
            }
            // A Route that is generated has the labels of the one that it is made of (specification 1.9).
            for generator in self.store.generators(kind) {
                for ((namespace, name), entry) in self.store.of_kind(generator) {
                    let key = |kind: &GroupKind| {
                        ObjectKey::new(kind.clone(), namespace.clone(), name.clone())
                    };
                    let (made, labels) = (key(kind), &entry.object.labels);
                    consider(made.clone(), labels, key(generator));
                    // It can also be a backend by its reference.
                    if self.store.get(&made).is_none() && self.exists(&made) {
                        consider(made.clone(), labels, made);
                    }
                }
            }
        }
        if nodes.is_empty() {
            return Err((
                Outcome::TargetNotFound,
                format!("the selector matches no `{kind}` that the policy can reference"),
            ));
        }
        Ok(nodes)
    }

    /// Reports whether a selector covers a namespace: the policy's own, unless `namespace` or
    /// `namespaces` is set. Without them, a cluster-scoped policy selects cluster-scoped objects only
    /// (specification 11.3).
    fn selects_namespace(&self, reference: &Reference, home: Option<&str>) -> bool {
        let Some(home) = home else { return true };
        if let Some(namespace) = &reference.namespace {
            return **namespace == *home;
        }
        match &reference.namespaces {
            SelectorNamespaces::Same => *self.policy.key.namespace == *home,
            SelectorNamespaces::All => true,
            SelectorNamespaces::Selector(selector) => self
                .topology
                .namespace_labels()
                .get(home)
                .is_some_and(|labels| selector.matches(labels)),
        }
    }

    fn is_cluster_scoped(&self, kind: &GroupKind) -> bool {
        kind.is(groups::GATEWAY, "GatewayClass")
            || kind.is_namespace()
            || self
                .store
                .of_kind(kind)
                .next()
                .is_some_and(|((ns, _), _)| ns.is_empty())
    }

    /// Reports whether a target exists: as an object, as a namespace with objects, as a backend that
    /// exists because a route references it (specification 1.4), or as a virtual target
    /// (specification 3.2).
    fn exists(&self, target: &ObjectKey) -> bool {
        if target.kind.is_namespace() {
            return self.topology.namespace_labels().contains_key(&target.name);
        }
        let by_reference = !target.kind.is(groups::CORE, "Service")
            && self
                .topology
                .node(&NodeKey::whole(target.clone()))
                .is_some();
        self.store.get(target).is_some()
            || by_reference
            || self.profile.virtual_targets.contains(&target.kind)
    }
}
