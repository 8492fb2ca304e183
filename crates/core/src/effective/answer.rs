//! What frames come to: the answer of a kind on a path.

use super::stack::Standing;
use super::{Frames, Kind, World};
use crate::merge::{Folded, Tell, fold};
use crate::model::{Effective, NodeKey, Origin, PolicyRef, Rejected, Unit};
use crate::profile::Class;

impl World {
    /// The answer of a kind on the paths that have these frames.
    pub fn answer(&self, kind: &Kind, frames: &Frames) -> Effective {
        self.told(kind, frames, Tell::Rules).0
    }

    /// The same for those who only hand it on: the spec is left out, and comes as compact JSON, its
    /// keys sorted.
    pub fn written_answer(&self, kind: &Kind, frames: &Frames) -> (Effective, Option<String>) {
        let (mut effective, text) = self.told(kind, frames, Tell::Text);
        let spec = effective.spec.take();
        (effective, text.or(spec.map(|spec| spec.to_string())))
    }

    fn told(&self, kind: &Kind, frames: &Frames, tell: Tell) -> (Effective, Option<String>) {
        let (mut effective, text) = self.computed(kind, frames, tell);
        effective.inherited_only = frames.inherited_only;
        effective.rejected = kind.rejected(frames);
        (effective, text)
    }

    fn computed(&self, kind: &Kind, frames: &Frames, tell: Tell) -> (Effective, Option<String>) {
        let groups = kind.groups(frames);
        if groups.is_empty() {
            return (Effective::default(), None);
        }
        match kind.profile.class {
            Class::Direct => (kind.direct(&groups), None),
            Class::Listed => (self.listed(&groups), None),
            Class::Inherited => {
                let own = self.own_rules(kind, frames);
                let mut stack = self.stack(kind, &groups);
                stack.groups.extend(own.as_ref().map(|own| own.group()));
                let mut folded = fold(&kind.profile, kind.schemas(), &stack, tell);
                let text = folded.text.take();
                let own = own.as_ref().map(|own| &own.object);
                (kind.effective(&folded, own), text)
            }
        }
    }
}

impl Kind {
    /// From a fold to an answer.
    pub(super) fn effective(&self, folded: &Folded<'_>, own: Option<&NodeKey>) -> Effective {
        Effective {
            spec: folded.spec.clone(),
            origins: self.origins(folded, own),
            strategy: folded.strategy,
            ..Effective::default()
        }
    }

    /// Who says what: one origin for everything where one block of one policy gives everything,
    /// else one a unit; tombstones have none (SEMANTICS §9.1).
    fn origins(&self, folded: &Folded<'_>, own: Option<&NodeKey>) -> Vec<Origin> {
        let mut origins: Vec<Origin> = folded
            .units
            .iter()
            .filter(|unit| !unit.value.is_null())
            .filter_map(|unit| self.origin(folded, unit.unit.clone(), &unit.sources, own))
            .collect();
        let same = origins.windows(2).all(|pair| match pair {
            [a, b] => a.policies == b.policies && a.object == b.object && a.block == b.block,
            _ => true,
        });
        if same {
            origins.truncate(1);
            for origin in &mut origins {
                origin.unit = Unit::default();
            }
        }
        origins
    }

    /// The origin of a unit.
    pub(super) fn origin(
        &self,
        folded: &Folded<'_>,
        unit: Unit,
        sources: &[usize],
        own: Option<&NodeKey>,
    ) -> Option<Origin> {
        let found = sources.iter().filter_map(|&s| folded.sources.get(s));
        let first = found.clone().next()?;
        let mut policies: Vec<PolicyRef> = found
            .filter_map(|source| self.policies.get(source.policy?))
            .map(|policy| PolicyRef::of(&policy.key))
            .collect();
        policies.sort();
        policies.dedup();
        Some(Origin {
            unit,
            policies,
            object: own
                .filter(|_| first.policy.is_none())
                .map(|node| node.object.clone()),
            block: first.block,
            strategy: first.strategy,
        })
    }

    /// Policies that are attached here but not accepted, told at scopes (SEMANTICS §9.4, §11.14).
    fn rejected(&self, frames: &Frames) -> Vec<Rejected> {
        if frames.inherited_only {
            return Vec::new();
        }
        let mut found: Vec<Rejected> = frames
            .steps
            .iter()
            .filter_map(|step| self.nodes.get(&step.node))
            .flat_map(|here| &here.rejected)
            .filter(|rejected| frames.includes(&rejected.group))
            .filter_map(|rejected| {
                let policy = self.policies.get(rejected.policy)?;
                Some(Rejected {
                    policy: PolicyRef::of(&policy.key),
                    reason: rejected.reason.clone(),
                    message: rejected.message.clone(),
                })
            })
            .collect();
        found.sort();
        found.dedup_by(|a, b| a.policy == b.policy && a.reason == b.reason);
        found
    }
}

impl Standing<'_> {
    /// The policy's name in answers.
    pub(super) fn reference(&self) -> PolicyRef {
        PolicyRef::of(&self.policy.key)
    }
}
