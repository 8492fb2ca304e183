//! Decides whether anything depends on fields that controllers write often. Most writes in a cluster change only these.

use super::World;
use crate::model::ObjectKey;
use crate::routing::reads_annotation;
use crate::store::{ChangeKind, StoredObject};

impl World {
    /// Reports whether an answer, a status, a finding or the rule of a request can depend on how two versions of an
    /// object differ.
    pub fn depends_on(
        &self,
        key: &ObjectKey,
        change: ChangeKind,
        before: Option<&StoredObject>,
        now: Option<&StoredObject>,
    ) -> bool {
        match change {
            ChangeKind::Whole => true,
            ChangeKind::Metadata => {
                self.reads_status(key)
                    || self
                        .kinds()
                        .iter()
                        .any(|kind| kind.profile.reads_metadata())
                    || self.reads_changed_annotation(before, now)
            }
            ChangeKind::Status => self.reads_status(key),
        }
    }

    /// Whether answers may depend on the status of the object: because its profile reads the status of
    /// its policies, or because some profile reads the status of targets.
    fn reads_status(&self, key: &ObjectKey) -> bool {
        self.kinds().iter().any(|kind| {
            let is_own = *kind.profile.resource() == key.kind;
            kind.profile.reads_target_status() || is_own && kind.profile.reads_own_status()
        })
    }

    fn reads_changed_annotation(
        &self,
        before: Option<&StoredObject>,
        now: Option<&StoredObject>,
    ) -> bool {
        let (Some(before), Some(now)) = (before, now) else {
            return true;
        };
        let (before, now) = (&before.object.annotations, &now.object.annotations);
        let mut changed = before
            .names()
            .chain(now.names())
            .filter(|name| before.get(name) != now.get(name));
        changed.any(|name| {
            let mut kinds = self.kinds().iter();
            reads_annotation(name) || kinds.any(|kind| kind.profile.reads_annotation(name))
        })
    }
}
