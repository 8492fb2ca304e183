//! Lists the paths and objects that a policy affects, and the policies that affect an object.

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::HashMap;
use prost::Message;

use super::absent::{absence, object_failure};
use super::failure::shortened;
use super::lookup::unknown_kinds;
use super::paths::{Page, PageRoom, page, token};
use super::policies::{message, statuses};
use super::visible::{Visible, visible_paths};
use super::{Failure, QuerySubject, Visibility};
use crate::api::{policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, PolicyKind, World};
use entail_core::engine::{ChainId, ChainTable, PathEngine, PathSelection, StateId};
use entail_core::model::{InternalError, NodeKey, ObjectKey, OrInternal, PolicyRef, Unit};
use entail_core::topology::{ListedPath, PathVisitor, TrieNodeId, WalkControl};

/// The units that a policy sets, and the units in which it is overridden.
type Shares = (Vec<String>, Vec<String>);

/// Lists the paths and objects that a policy, or one unit of it, affects.
///
/// # Errors
/// The name or the unit is malformed, or the policy does not exist.
pub(super) fn reach(
    snapshot: &Snapshot,
    (name, unit): (&str, &str),
    range: &Page,
    visibility: &dyn Visibility,
) -> Result<v1::ListAffectedResponse, Failure> {
    let world = snapshot.world();
    let (number, index) = policy_named(world, name, visibility)?;
    let requested = match unit {
        "" => Unit::default(),
        text => Unit::parse(text).ok_or_else(|| {
            Failure::invalid(
                "NotAUnit",
                format!("malformed unit `{}`: use a dotted path", shortened(text)),
            )
        })?,
    };
    let Some((kind, policy)) = world
        .kinds()
        .get(number)
        .and_then(|kind| Some((kind, kind.policy_at(index)?)))
    else {
        return Err(Failure::no_such_object(format!(
            "policy `{}` not found",
            shortened(name)
        )));
    };
    let engine = snapshot.engine();
    let named = PolicyRef::of(&policy.key);
    let of = (number, &**kind, index);
    let mut found = paths(engine, of, (&named, &requested), range, visibility);
    visibility.budget().check()?;
    let status = match range.first {
        0 => {
            let statuses = statuses(snapshot, visibility)?;
            let status = statuses.of(number, index).cloned().unwrap_or_default();
            Some(message(world, kind, (index, policy), &status, visibility))
        }
        _ => None,
    };
    let mut next = range.first.saturating_add(found.paths.len());
    let mut has_more = found.has_more;
    let mut objects: Vec<String> = Vec::new();
    if !found.has_more {
        let affected = objects_of(snapshot, (number, index), visibility)?;
        let first = next.saturating_sub(found.count);
        for object in affected.into_iter().skip(first) {
            if !found.room.take(object.len()) {
                has_more = true;
                break;
            }
            objects.push(object);
            next += 1;
        }
    }
    Ok(v1::ListAffectedResponse {
        status,
        objects,
        paths: found.paths,
        next_page_token: token(snapshot, next, next.saturating_add(has_more.into())),
        ..v1::ListAffectedResponse::default()
    })
}

/// The visible objects that a policy affects on visible paths.
fn objects_of(
    snapshot: &Snapshot,
    (kind, policy): (usize, usize),
    visibility: &dyn Visibility,
) -> Result<BTreeSet<String>, Failure> {
    let topology = snapshot.world().topology();
    let paths = selected_paths(snapshot, visibility)?;
    let affected = snapshot.engine().affected_by(kind, policy, paths.as_ref());
    let affected = affected.into_iter();
    // The node above everything is no object (specification 3.1).
    let affected = affected
        .filter(|node| *topology.key(*node) != NodeKey::root())
        .filter(|node| visibility.includes_object(&topology.key(*node).object));
    Ok(affected.map(|node| topology.describe(node)).collect())
}

/// The paths that a caller sees; `None` if these are all.
fn selected_paths(
    snapshot: &Snapshot,
    visibility: &dyn Visibility,
) -> Result<Option<PathSelection>, Failure> {
    let engine = snapshot.engine();
    let paths = visible_paths(engine, visibility).unwrap_or_else(|error| {
        engine.fail(error);
        Some(PathSelection::default())
    });
    visibility.budget().check()?;
    Ok(paths)
}

/// Finds a policy by name; returns the indices of its kind and of the policy.
fn policy_named(
    world: &World,
    name: &str,
    visibility: &dyn Visibility,
) -> Result<(usize, usize), Failure> {
    if let QuerySubject::Object(key, None) = QuerySubject::read(name, world, visibility)? {
        // The name of a resource kind stands for its sections (specification 2.14).
        let object = ObjectKey {
            kind: key.kind.resource(),
            ..key.clone()
        };
        let kinds = world.kinds().iter().enumerate();
        let named = kinds.filter(|(_, kind)| key.kind.names(&kind.profile().policy));
        let found = named.filter_map(|(number, kind)| Some((number, kind, kind.policy(&object)?)));
        let found: Vec<_> = found
            .filter(|_| visibility.includes_object(&object))
            .collect();
        match found.as_slice() {
            [] => {}
            [(number, _, index)] => return Ok((*number, *index)),
            several => {
                let name = object.qualified_name();
                let names = several
                    .iter()
                    .map(|(_, kind, _)| format!("`{}/{name}`", kind.profile().policy));
                let names: Vec<String> = names.collect();
                return Err(Failure::invalid(
                    "Ambiguous",
                    format!(
                        "`{object}` holds several policies: use one of {}",
                        names.join(", ")
                    ),
                ));
            }
        }
    }
    Err(Failure::no_such_object(format!(
        "policy `{}` not found: use `kind/namespace/name`",
        shortened(name)
    )))
}

/// Collects the scopes in whose chains a policy is, with its shares of the requested units.
struct Reach<'e> {
    engine: &'e PathEngine,
    chains: ChainTable<'e>,
    slot: usize,
    policy: &'e PolicyRef,
    requested: &'e Unit,
    visible: Visible<'e>,
    shares_by_chain: HashMap<ChainId, Option<Rc<Shares>>>,
    /// Whether the policy affects a path that ends at a trie node, or below it.
    reaches: HashMap<(TrieNodeId, StateId), bool>,
    range: &'e Page,
    found: FoundPaths,
    failed: Option<InternalError>,
}

/// The paths of a page.
struct FoundPaths {
    /// Number of paths so far, on this page or before it.
    count: usize,
    paths: Vec<v1::AffectedPath>,
    /// The room that the paths leave.
    room: PageRoom,
    has_more: bool,
}

impl Reach<'_> {
    /// Returns the shares of the policy on a path; `None` if it has none of the requested units there,
    /// or the path is not a scope.
    fn shares(
        &mut self,
        node: TrieNodeId,
        state: StateId,
    ) -> Result<Option<Rc<Shares>>, InternalError> {
        let object = self.engine.object_kind(node)?;
        let Some(chain) = self.chains.at_scope(state, object)? else {
            return Ok(None);
        };
        if let Some(shares) = self.shares_by_chain.get(&chain) {
            return Ok(shares.clone());
        }
        let shares = if self.chains.has(chain, self.slot)? {
            let (world, kind) = (self.engine.world(), self.chains.kind());
            let chain = self.chains.chain(chain)?;
            share(world, kind, chain, self.policy, self.requested).map(Rc::new)
        } else {
            None
        };
        self.shares_by_chain.insert(chain, shares.clone());
        Ok(shares)
    }

    /// Whether the policy affects a path that ends at a trie node, or below it.
    fn reaches(&mut self, id: TrieNodeId, state: StateId) -> Result<bool, InternalError> {
        if let Some(&computed) = self.reaches.get(&(id, state)) {
            return Ok(computed);
        }
        let mut reaches = self.shares(id, state)?.is_some();
        let trie = self.engine.trie();
        for child in trie.below(trie.node(id)?) {
            if reaches {
                break;
            }
            reaches = self.reaches(child, self.engine.after(state, child)?)?;
        }
        self.reaches.insert((id, state), reaches);
        Ok(reaches)
    }

    fn add(&mut self, path: &ListedPath<'_, StateId>) -> Result<WalkControl, InternalError> {
        let node = *path.resolved.last().or_internal("the end of a path")?;
        let Some(shares) = self.shares(node, path.state)? else {
            return Ok(WalkControl::Descend);
        };
        let found = &mut self.found;
        if found.count < self.range.first {
            found.count += 1;
            return Ok(WalkControl::Descend);
        }
        let affected = v1::AffectedPath {
            path: path.name.to_owned(),
            effective_units: shares.0.clone(),
            overridden_units: shares.1.clone(),
        };
        if !found.room.take(affected.encoded_len()) {
            found.has_more = true;
            return Ok(WalkControl::Stop);
        }
        found.count += 1;
        found.paths.push(affected);
        Ok(WalkControl::Descend)
    }

    /// Stops the walk on an internal error.
    fn or_stop(&mut self, control: Result<WalkControl, InternalError>) -> WalkControl {
        control.unwrap_or_else(|error| {
            self.failed = Some(error);
            WalkControl::Stop
        })
    }
}

impl PathVisitor<StateId> for Reach<'_> {
    fn passes_over(&mut self, node: TrieNodeId, state: StateId, _: usize) -> bool {
        match self.reaches(node, state) {
            Ok(reaches) => !reaches,
            Err(error) => {
                self.failed = Some(error);
                true
            }
        }
    }

    fn visit(&mut self, path: &ListedPath<'_, StateId>) -> WalkControl {
        if self.visible.is_over() {
            return WalkControl::Stop;
        }
        let depth = path.resolved.len().saturating_sub(1);
        let (visible, below) = self.visible.look(path.name, depth);
        if visible {
            let added = self.add(path);
            let control = self.or_stop(added);
            if control != WalkControl::Descend {
                return control;
            }
        }
        match below {
            true => WalkControl::Descend,
            false => WalkControl::SkipChildren,
        }
    }
}

/// Returns the scopes that a policy affects, those of one page.
fn paths(
    engine: &PathEngine,
    (number, kind, slot): (usize, &PolicyKind, usize),
    (policy, requested): (&PolicyRef, &Unit),
    range: &Page,
    visibility: &dyn Visibility,
) -> FoundPaths {
    let mut reach = Reach {
        engine,
        chains: ChainTable::new(engine, number, kind),
        slot,
        policy,
        requested,
        visible: Visible::new(engine, visibility),
        shares_by_chain: HashMap::new(),
        reaches: HashMap::new(),
        range,
        found: FoundPaths {
            count: 0,
            paths: Vec::new(),
            room: range.room(),
            has_more: false,
        },
        failed: None,
    };
    let walked = engine.visit(None, 0, |state, node| engine.after(state, node), &mut reach);
    if let Some(error) = reach.failed.or(walked.err()) {
        kind.fail(error);
    }
    reach.found
}

/// Returns the shares of a policy in a chain; `None` if it has none of the requested units.
fn share(
    world: &World,
    kind: &PolicyKind,
    chain: &AttachmentChain,
    policy: &PolicyRef,
    requested: &Unit,
) -> Option<Shares> {
    let overlaps = |unit: &Unit| unit.covers(requested) || requested.covers(unit);
    let explained = world.explain(kind, chain);
    let listed = explained
        .effective
        .listed
        .iter()
        .any(|l| l.policy == *policy);
    let mut effective_units: Vec<String> = explained
        .units
        .iter()
        .filter(|unit| overlaps(&unit.unit))
        .filter(|unit| {
            unit.origin
                .as_ref()
                .is_some_and(|o| o.policies.contains(policy))
        })
        .map(|unit| unit.unit.to_string())
        .collect();
    if listed {
        effective_units.push("*".to_owned());
    }
    let overridden_units: BTreeSet<String> = explained
        .units
        .iter()
        .flat_map(|unit| &unit.overridden)
        .filter(|overridden| overridden.policy == *policy && overlaps(&overridden.unit))
        .map(|overridden| overridden.unit.to_string())
        .collect();
    (!effective_units.is_empty() || !overridden_units.is_empty())
        .then(|| (effective_units, overridden_units.into_iter().collect()))
}

/// Lists the policies that affect an object (specification 9.3).
pub(super) fn affecting(
    snapshot: &Snapshot,
    object: &str,
    range: &Page,
    visibility: &dyn Visibility,
) -> Result<v1::ListAffectedResponse, Failure> {
    let world = snapshot.world();
    let subject = QuerySubject::read(object, world, visibility)?;
    let (key, section) = match subject {
        QuerySubject::Object(key, section) => (key, section),
        QuerySubject::All | QuerySubject::Path(_) => {
            return Err(Failure::invalid(
                "NotAnObject",
                format!(
                    "malformed object name `{}`: use `kind/namespace/name`",
                    shortened(object)
                ),
            ));
        }
    };
    let paths = selected_paths(snapshot, visibility)?;
    let engine = snapshot.engine();
    let has_node = QuerySubject::Object(key.clone(), section.clone()).exists(engine);
    let affecting = engine.affecting(&key, section.as_deref(), paths.as_ref());
    let affecting = affecting.into_iter();
    let all: Vec<_> = affecting
        .filter(|(kind, _)| visibility.includes_kind(kind))
        .collect();
    // A backend of another kind than Service exists by its references, which the caller may not see.
    let is_referenced = visibility.includes_object(&key)
        && (!all.is_empty() || visibility.is_unrestricted() && has_node);
    if !is_referenced && let Some(failure) = absence(world, object, &key, visibility) {
        return Err(failure);
    }
    if !has_node && section.is_some() && visibility.is_unrestricted() {
        let target = (&key, section.as_deref());
        return Err(object_failure(snapshot, object, target, visibility));
    }
    let count = all.len();
    let page = all.into_iter().skip(range.first).take(range.size);
    let policies: Vec<v1::AffectingPolicy> = page
        .map(|(kind, policy)| v1::AffectingPolicy {
            kind: kind.to_string(),
            policy: Some(policy_ref(&policy)),
        })
        .collect();
    let next = range.first.saturating_add(policies.len());
    Ok(v1::ListAffectedResponse {
        policies,
        next_page_token: token(snapshot, next, count),
        ..v1::ListAffectedResponse::default()
    })
}

/// Lists the policies that affect an object, or the paths and objects that a policy affects.
///
/// # Errors
/// A name or the unit is malformed, or the policy does not exist.
pub fn list_affected(
    snapshot: &Snapshot,
    request: &v1::ListAffectedRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ListAffectedResponse, Failure> {
    use v1::list_affected_request::Subject as RequestSubject;
    let range = page(snapshot, request.page_size, &request.page_token)?;
    let response = match &request.subject {
        Some(RequestSubject::Object(object)) => affecting(snapshot, object, &range, visibility)?,
        Some(RequestSubject::Policy(policy)) => {
            reach(snapshot, (policy, &request.unit), &range, visibility)?
        }
        None => {
            return Err(Failure::invalid("NoSubject", "set `object` or `policy`"));
        }
    };
    let version = snapshot.version();
    Ok(v1::ListAffectedResponse {
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: unknown_kinds(snapshot, &[], visibility),
        truncated: visibility.is_truncated(),
        ..response
    })
}
