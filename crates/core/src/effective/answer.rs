//! Computes the effective policy of an attachment chain.

use super::merge_check::EXCLUSIVE;
use super::stack::Acceptance;
use super::{AttachmentChain, PolicyKind, World};
use crate::merge::{FoldDetail, FoldResult, MergedUnit, fold};
use crate::model::{EffectivePolicy, NodeKey, Origin, Outcome, PolicyRef, RejectedPolicy, Unit};
use crate::profile::PolicyClass;

/// The effective policy of a kind on a chain. It has the rejected policies, which answers above the effective level omit.
#[derive(Clone, Debug)]
pub struct FoldedChain {
    effective: EffectivePolicy,
    text: Option<String>,
}

impl World {
    /// Computes the effective policy of a kind on the paths that have this chain.
    pub fn answer(&self, kind: &PolicyKind, chain: &AttachmentChain) -> EffectivePolicy {
        let folded = self.compute(kind, chain, FoldDetail::Rules);
        folded.at_end(chain.inherited_only)
    }

    /// Computes the effective policy of a chain once, for its paths at the effective level and for those above it.
    pub fn fold_chain(&self, kind: &PolicyKind, chain: &AttachmentChain) -> FoldedChain {
        self.compute(kind, chain, FoldDetail::Text)
    }

    fn compute(
        &self,
        kind: &PolicyKind,
        chain: &AttachmentChain,
        detail: FoldDetail,
    ) -> FoldedChain {
        let is_known = !chain.is_unknown() && !kind.is_unprofiled();
        let (mut effective, text) = match is_known {
            true => self.fold(kind, chain, detail),
            false => (EffectivePolicy::default(), None),
        };
        // Both stand beside a result (specification 2.5, 2.8, 5.7).
        let unknown = kind.unknown(chain, &self.topology);
        effective.unknown = super::unknown::both(effective.unknown, unknown);
        if is_known {
            effective.rejected.extend(kind.rejected(chain));
            effective.rejected.sort();
            let same = |a: &mut RejectedPolicy, b: &mut RejectedPolicy| {
                a.policy == b.policy && a.reason == b.reason
            };
            effective.rejected.dedup_by(same);
        }
        FoldedChain { effective, text }
    }

    fn fold(
        &self,
        kind: &PolicyKind,
        chain: &AttachmentChain,
        detail: FoldDetail,
    ) -> (EffectivePolicy, Option<String>) {
        let groups = kind.groups(chain);
        if groups.is_empty() {
            return (EffectivePolicy::default(), None);
        }
        match kind.profile.class {
            PolicyClass::Unprofiled => (EffectivePolicy::default(), None),
            PolicyClass::Direct => (kind.direct(&groups), None),
            PolicyClass::Listed => (self.listed(&groups), None),
            PolicyClass::Inherited => {
                let own = self.own_rules(kind, chain);
                let mut stack = self.stack(kind, &groups);
                stack.groups.extend(own.as_ref().map(|own| own.group()));
                let mut folded = fold(&kind.profile, kind.schemas(), &stack, detail);
                let text = folded.text.take();
                let own = own.as_ref().map(|own| &own.object);
                (kind.effective(folded, own), text)
            }
        }
    }
}

impl FoldedChain {
    /// The effective policy on the paths at the effective level, or, with `inherited_only`, above it; with its spec as text:
    /// compact JSON with sorted keys. The `spec` of the returned policy is empty.
    pub fn into_answer(mut self, inherited_only: bool) -> (EffectivePolicy, Option<String>) {
        let text = self.text.take();
        let mut effective = self.at_end(inherited_only);
        let spec = effective.spec.take();
        (effective, text.or(spec.map(|spec| spec.to_string())))
    }

    /// Sets what depends on where the paths of a chain end.
    fn at_end(self, inherited_only: bool) -> EffectivePolicy {
        let mut effective = self.effective;
        effective.inherited_only = inherited_only;
        if inherited_only {
            effective.rejected.clear();
        }
        effective
    }
}

impl PolicyKind {
    /// The effective policy that a fold results in.
    fn effective(&self, mut folded: FoldResult<'_>, own: Option<&NodeKey>) -> EffectivePolicy {
        let units = std::mem::take(&mut folded.units);
        let refused = folded.refused.iter();
        let refused = refused.filter_map(|&index| self.required_policy(index));
        EffectivePolicy {
            spec: folded.spec.take(),
            rejected: refused
                .map(|policy| RejectedPolicy {
                    policy: PolicyRef::of(&policy.key),
                    reason: Outcome::Invalid.to_string(),
                    message: EXCLUSIVE.to_owned(),
                })
                .collect(),
            origins: self.origins(&folded, units, own),
            unknown: self.unchecked(&folded.unchecked),
            strategy: folded.strategy,
            ..EffectivePolicy::default()
        }
    }

    /// The origins of the units. If one block of one policy sets all of them, that is a single origin for
    /// the whole spec. Units that are set to null have no origin, unless a field of the object stands for
    /// them (specification 6.4, 9.1).
    fn origins(
        &self,
        folded: &FoldResult<'_>,
        units: Vec<MergedUnit<'_>>,
        own: Option<&NodeKey>,
    ) -> Vec<Origin> {
        let mut origins: Vec<Origin> = units
            .into_iter()
            .filter(|unit| !unit.value.is_null() || folded.is_own(unit))
            .filter_map(|unit| self.origin(folded, unit.unit, &unit.sources, own))
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
        folded: &FoldResult<'_>,
        unit: Unit,
        sources: &[usize],
        own: Option<&NodeKey>,
    ) -> Option<Origin> {
        let found = sources.iter().filter_map(|&s| folded.sources.get(s));
        let first = found.clone().next()?;
        let mut policies: Vec<PolicyRef> = found
            .filter_map(|source| self.required_policy(source.policy?))
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

    /// The policies on the chain that are not accepted. Only scopes report them (specification 9.4, 11.14).
    fn rejected(&self, chain: &AttachmentChain) -> Vec<RejectedPolicy> {
        let refused = self.refused(chain).into_iter().filter_map(|refusal| {
            let policy = self.required_policy(refusal.policy)?;
            Some(RejectedPolicy {
                policy: PolicyRef::of(&policy.key),
                reason: Outcome::Invalid.to_string(),
                message: refusal.message,
            })
        });
        let rejected = self
            .acting(chain)
            .flat_map(|(_, on_node, _)| on_node.rejections(chain))
            .filter_map(|rejected| {
                let policy = self.required_policy(rejected.policy)?;
                Some(RejectedPolicy {
                    policy: PolicyRef::of(&policy.key),
                    reason: rejected.reason.clone(),
                    message: rejected.message.clone(),
                })
            });
        refused.chain(rejected).collect()
    }
}

impl Acceptance<'_> {
    /// The reference to the policy in answers.
    pub(super) fn reference(&self) -> PolicyRef {
        PolicyRef::of(&self.policy.key)
    }
}
