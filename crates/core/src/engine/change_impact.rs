//! What a changed object bears on: most of what the API server writes all day bears on nothing.

use super::Engine;
use crate::model::{ObjectKey, at_path, is_unset};
use crate::profile::Profile;
use crate::store::{ChangeKind, Projection, Store, StoredObject};

/// What a changed object bears on.
pub(super) enum ChangeImpact {
    /// No answer.
    Nothing,
    /// It is a policy of a kind.
    Policy(usize),
}

impl Engine {
    /// What a changed object bears on; `None` if it may move paths.
    pub(super) fn change_impact(
        &self,
        key: &ObjectKey,
        change: ChangeKind,
        before: &Store,
    ) -> Option<ChangeImpact> {
        let mut kinds = self.world().kinds().iter();
        let number = kinds.position(|kind| kind.profile.policy == key.kind);
        if change == ChangeKind::Status && !self.reads_status(number) {
            return Some(ChangeImpact::Nothing);
        }
        let now = self.world().store();
        if number.is_none()
            && !key.kind.defines_kinds()
            && let (Some(before), Some(now)) = (before.get(key), now.get(key))
            && self.is_equivalent(before, now)
        {
            return Some(ChangeImpact::Nothing);
        }
        let lives = |store: &Store| store.objects_in_namespace(&key.namespace) > 0;
        let namespace_stays = key.namespace.is_empty() || (lives(before) && lives(now));
        if !namespace_stays
            || Projection::affects_topology(&key.kind)
            || self.referenced_kinds.contains(&key.kind)
        {
            return None;
        }
        Some(number.map_or(ChangeImpact::Nothing, ChangeImpact::Policy))
    }

    /// Whether an answer may rest on the status of an object of a kind: its own, as its profile
    /// reads it, or one that own fields are read from.
    fn reads_status(&self, number: Option<usize>) -> bool {
        let kind = number.and_then(|number| self.world().kinds().get(number));
        let mut kinds = self.world().kinds().iter();
        kind.is_some_and(|kind| kind.profile.reads_own_status())
            || kinds.any(|kind| kind.profile.reads_target_status())
    }

    /// Whether two versions of an object that is no policy mean the same to every answer: a route
    /// may match other requests, a Service select other pods.
    fn is_equivalent(&self, before: &StoredObject, now: &StoredObject) -> bool {
        before.projection == now.projection
            && before.object.labels == now.object.labels
            && self.world().kinds().iter().all(|kind| {
                same_annotation(&kind.profile, before, now)
                    && same_own_fields(&kind.profile, before, now)
            })
    }
}

/// Whether the annotation by which targets choose the strategy says the same (specification 5.3).
fn same_annotation(profile: &Profile, before: &StoredObject, now: &StoredObject) -> bool {
    let mut names = profile.strategy_choice.annotation.iter();
    names.all(|name| before.object.annotations.get(name) == now.object.annotations.get(name))
}

/// Whether the fields that join from objects themselves are the same (specification 6.4).
fn same_own_fields(profile: &Profile, before: &StoredObject, now: &StoredObject) -> bool {
    let rules = match &now.projection {
        // Equal projections: as many rules before.
        Projection::Route(route) => route.rules.len(),
        _ => 0,
    };
    profile.own_fields.iter().all(|field| {
        let mut scopes = std::iter::once(None).chain((0..rules).map(Some));
        scopes.all(|rule| {
            let of = |entry: &StoredObject| {
                let value = at_path(&entry.object.body, &field.object, rule);
                value.filter(|value| !is_unset(Some(value))).cloned()
            };
            of(before) == of(now)
        })
    })
}
