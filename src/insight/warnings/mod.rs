//! What somebody who applies or deletes an object should know before it is done: values, policies and paths that would be
//! lost, and why a policy has no effect.
//!
//! Each warning is a short line of ASCII, because API servers pass on no others. A warning names only objects that its
//! reader may know of ([`NameScope`]); all others are counted.

mod broken;
mod losses;
mod outcome;
mod scope;
mod text;

pub use broken::broken_warning;
pub use scope::NameScope;

pub use text::line;

pub(super) use self::outcome::of_policy;

use self::text::count;
use super::absent::query_name;
use super::{ChangeEffect, abridged};
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::model::ObjectKey;

/// Maximum number of warnings about one change. The last one says how many there are besides.
pub const MAX_WARNINGS: usize = 5;

/// How an object changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It is new.
    Created,
    /// It has another version.
    Updated,
    /// It is gone.
    Deleted,
}

/// A changed object, with the names that its warnings may contain.
#[derive(Clone, Copy, Debug)]
pub struct ChangedObject<'a> {
    /// The key of the object.
    pub key: &'a ObjectKey,
    /// How it changes.
    pub change: ObjectChange,
    /// The objects that may be named.
    pub names: &'a NameScope,
}

impl ChangedObject<'_> {
    /// The subject of a sentence about what the change does.
    fn subject(&self) -> String {
        let kind = &self.key.kind.kind;
        match self.change {
            ObjectChange::Deleted => format!("deleting this {kind}"),
            ObjectChange::Created | ObjectChange::Updated => format!("this {kind}"),
        }
    }

    /// The command that shows all effects of the change.
    fn preview(&self) -> String {
        match self.change {
            ObjectChange::Deleted => {
                format!("entail preview --kube --delete {}", query_name(self.key))
            }
            ObjectChange::Created | ObjectChange::Updated => {
                "entail preview --kube -f FILE".to_owned()
            }
        }
    }
}

/// Returns the warnings about the effect of a change, those about the object itself first, and then what most paths lose.
pub fn warnings(
    snapshot: &Snapshot,
    object: ChangedObject<'_>,
    effect: &ChangeEffect,
) -> Vec<String> {
    let own = of_policy(effect.after.world(), object, &effect.differences);
    let mut found: Vec<String> = own.iter().map(|text| line(text)).collect();
    found.extend(losses::of(snapshot, object, &effect.differences));
    let unknown = not_known(snapshot, object, effect);
    let all = found.len();
    let room = MAX_WARNINGS - usize::from(unknown.is_some());
    if all > room {
        found.truncate(room - 1);
        let more = count(all - found.len(), "more warning");
        found.push(line(&format!("{more}: {}", object.preview())));
    }
    found.extend(unknown);
    found
}

/// What is not known of the effect, in at most one warning.
fn not_known(
    snapshot: &Snapshot,
    object: ChangedObject<'_>,
    effect: &ChangeEffect,
) -> Option<String> {
    let own = object.key.kind.to_string();
    let determines = |kind: &&v1::KindState| {
        kind.kind == own || Snapshot::affects_topology(&text::parsed(&kind.kind))
    };
    let incomplete = snapshot.kinds().iter().filter(determines);
    let failed = effect.after.world().kinds().iter();
    let failed = failed.filter(|kind| kind.fault().is_some());
    let failed = failed.map(|kind| format!("{} is UNKNOWN", kind.profile().policy.kind));
    let mut reasons: Vec<String> = incomplete
        .chain(&effect.differences.kinds)
        .map(|kind| format!("{} is {}", text::short(&kind.kind), text::state(kind)))
        .chain(failed)
        .collect();
    reasons.sort();
    reasons.dedup();
    (!reasons.is_empty()).then(|| {
        let reasons = abridged(&reasons, 3);
        line(&format!("not all effects are known: {reasons}"))
    })
}
