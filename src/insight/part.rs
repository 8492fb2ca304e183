//! The part of a snapshot that a caller may see, as a snapshot of its own.
//!
//! Statuses, findings, outcomes of references and suggestions depend on objects all over the world. For callers who
//! may not see everything they are computed in a world without the objects that are hidden, so that every text and
//! every count is the same as if these did not exist. Hidden objects that act on visible paths stay: answers on these
//! paths contain their values and name them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashSet;
use sha2::{Digest, Sha256};

use super::visible::{prepare, visible_paths};
use super::{Failure, Visibility};
use crate::snapshot::{InProgress, Snapshot};
use entail_core::effective::{ActingObjects, World};
use entail_core::model::{GroupKind, InternalError, ObjectKey, groups};
use entail_core::store::PartContext;

/// Maximum number of parts that are kept for later requests.
const MAX_KEPT: usize = 2;

/// The parts of the current snapshot that callers asked for last. Callers with the same rights share one, also while it is
/// being made.
#[derive(Debug, Default)]
pub struct VisibleParts {
    kept: Mutex<VecDeque<(PartKey, Arc<Snapshot>)>>,
    being_made: InProgress<PartKey>,
}

/// What a part is made of.
#[derive(Clone, Debug, PartialEq)]
struct PartKey {
    epoch: String,
    generation: u64,
    hidden: [u8; 32],
}

/// What a part lacks, and what it keeps of that.
#[derive(Debug, Default)]
struct Hidden {
    objects: Vec<ObjectKey>,
    context: PartContext,
}

impl Hidden {
    /// Whether the part is the whole.
    fn is_empty(&self) -> bool {
        let context = &self.context;
        self.objects.is_empty() && context.hidden.is_empty() && context.grants.is_empty()
    }
}

impl VisibleParts {
    /// Returns the part of a snapshot that a caller may see.
    ///
    /// # Errors
    /// The caller is gone.
    pub fn of(
        &self,
        snapshot: &Arc<Snapshot>,
        visibility: &dyn Visibility,
    ) -> Result<Arc<Snapshot>, Failure> {
        let hidden = hidden_objects(snapshot, visibility)?;
        if hidden.is_empty() {
            return Ok(Arc::clone(snapshot));
        }
        let version = snapshot.version();
        let key = PartKey {
            epoch: version.epoch.to_string(),
            generation: version.generation,
            hidden: digest(&hidden),
        };
        let current = |part: Arc<Snapshot>| Arc::new(part.with_synced_at(version.synced_at));
        if let Some(part) = self.get(&key) {
            return Ok(current(part));
        }
        let may_wait = || visibility.budget().check();
        may_wait()?;
        let _begun = self.being_made.begin(key.clone(), may_wait)?;
        if let Some(part) = self.get(&key) {
            return Ok(current(part));
        }
        let part = Arc::new(without(snapshot, hidden));
        let mut kept = self.lock();
        kept.truncate(MAX_KEPT - 1);
        kept.push_front((key, Arc::clone(&part)));
        Ok(part)
    }

    /// Returns a part that was made, and forgets those of earlier snapshots.
    fn get(&self, key: &PartKey) -> Option<Arc<Snapshot>> {
        let mut kept = self.lock();
        kept.retain(|(of, _)| of.generation >= key.generation);
        let found = kept.iter().find(|(of, _)| of == key);
        found.map(|(_, part)| Arc::clone(part))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(PartKey, Arc<Snapshot>)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the part of a snapshot that a caller may see; `None` if that is all of it.
///
/// # Errors
/// The caller is gone.
pub fn visible_part(
    snapshot: &Snapshot,
    visibility: &dyn Visibility,
) -> Result<Option<Snapshot>, Failure> {
    let hidden = hidden_objects(snapshot, visibility)?;
    Ok((!hidden.is_empty()).then(|| without(snapshot, hidden)))
}

fn without(snapshot: &Snapshot, hidden: Hidden) -> Snapshot {
    let world = snapshot.world();
    let store = world.store().without(hidden.objects, hidden.context);
    let world = World::from_store(store, world.profiles());
    Snapshot::build(world, snapshot.version().clone())
}

fn digest(hidden: &Hidden) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |keys: &mut dyn Iterator<Item = &ObjectKey>| {
        for key in keys {
            for text in [
                &*key.kind.group,
                &*key.kind.kind,
                &*key.namespace,
                &*key.name,
            ] {
                digest.update(text);
                digest.update([0]);
            }
        }
        // No kind is empty, so this is the end of a list.
        digest.update([0; 4]);
    };
    add(&mut hidden.objects.iter());
    let PartContext {
        named,
        hidden,
        namespaces,
        grants,
        holders,
    } = &hidden.context;
    add(&mut hidden.iter());
    add(&mut named.iter());
    add(&mut grants.iter());
    add(&mut holders
        .iter()
        .flat_map(|(listener, route)| [&listener.object, route]));
    let holders = holders.iter().map(|(listener, _)| listener.to_string());
    let namespaces = namespaces.iter().map(ToString::to_string);
    for text in holders.chain(["".to_owned()]).chain(namespaces) {
        digest.update(text);
        digest.update([0]);
    }
    digest.finalize().into()
}

/// Finds the objects that neither the caller may see, nor act on paths that the caller may see.
fn hidden_objects(snapshot: &Snapshot, visibility: &dyn Visibility) -> Result<Hidden, Failure> {
    if visibility.is_unrestricted() {
        return Ok(Hidden::default());
    }
    let (engine, world) = (snapshot.engine(), snapshot.world());
    prepare(engine, visibility);
    let paths = visible_paths(engine, visibility);
    visibility.budget().check()?;
    let acting = paths.and_then(|paths| {
        let sees = |key: &ObjectKey| visibility.includes_object(key);
        engine.acting_objects(&paths.unwrap_or_default(), &sees)
    });
    let acting = acting.unwrap_or_else(|error: InternalError| {
        engine.fail(error);
        ActingObjects::default()
    });
    let mut candidates: Vec<ObjectKey> = Vec::new();
    for object in world.store().objects() {
        visibility.budget().check()?;
        let key = &object.key;
        let canonical = ObjectKey {
            kind: key.kind.clone().canonical(),
            ..key.clone()
        };
        if !acting.objects.contains(&canonical) && !decides_about_others(&key.kind) {
            candidates.push(key.clone());
        }
    }
    visibility.prepare(&candidates);
    candidates.retain(|key| !visibility.includes_object(key));
    visibility.budget().check()?;
    // Namespaces stay where something else does, and above visible paths. Grants stay: what they permit holds for
    // visible objects, too.
    let mut kept = kept_namespaces(world, &candidates);
    kept.extend(acting.namespaces.iter().map(|name| &**name));
    let mut grants = Vec::new();
    candidates.retain(|key| match &*key.kind.kind {
        "Namespace" if key.kind.is_namespace() => !kept.contains(&*key.name),
        "ReferenceGrant" => {
            grants.push(key.clone());
            false
        }
        _ => true,
    });
    Ok(Hidden {
        context: PartContext {
            named: acting.named,
            hidden: hidden_acting(world, &candidates, visibility),
            namespaces: acting.namespaces,
            grants,
            holders: acting.holders,
        },
        objects: candidates,
    })
}

/// The objects in namespaces that stay although the caller does not see them, in a world where policies refer to
/// objects: whether it is known that these exist depends on the others of their kind and namespace.
fn hidden_acting(
    world: &World,
    without: &[ObjectKey],
    visibility: &dyn Visibility,
) -> Vec<ObjectKey> {
    let mut kinds = world.kinds().iter();
    if !kinds.any(|kind| !kind.profile().references.is_empty()) {
        return Vec::new();
    }
    let without: HashSet<&ObjectKey> = without.iter().collect();
    let kept = world.store().objects().map(|object| &object.key);
    let kept = kept.filter(|key| !without.contains(key) && !key.namespace.is_empty());
    let mut kept: Vec<ObjectKey> = kept.cloned().collect();
    visibility.prepare(&kept);
    kept.retain(|key| !visibility.includes_object(key));
    kept
}

/// The namespaces that still contain objects without some.
fn kept_namespaces<'w>(world: &'w World, without: &[ObjectKey]) -> BTreeSet<&'w str> {
    let without: HashSet<&ObjectKey> = without.iter().collect();
    let kept = world.store().objects().map(|object| &object.key);
    let kept = kept.filter(|key| !without.contains(key));
    let namespaces = kept.map(|key| &*key.namespace);
    namespaces.filter(|name| !name.is_empty()).collect()
}

/// Whether objects of a kind decide how others are read: definitions and profiles. They stay, because what they say
/// holds for visible objects, too.
fn decides_about_others(kind: &GroupKind) -> bool {
    *kind == GroupKind::crd()
        || kind.is(groups::ENTAIL, "PolicyProfile")
        || kind.is(groups::ENTAIL, "ControllerAlias")
}
