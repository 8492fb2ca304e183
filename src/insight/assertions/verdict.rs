//! Whether single paths are as expected. Equal answers are checked once.

use std::sync::LazyLock;

use hashbrown::{HashMap, HashSet};
use prost::Message;

use super::document::Assertion;
use super::expectation::{PathObjects, policy_value};
use super::filter::PathContext;
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::effective::World;
use entail_core::engine::{PathEngine, StateId};
use entail_core::model::{EffectivePolicy, GroupKind, InternalError, OrInternal};
use entail_core::profile::PolicyClass;
use entail_core::topology::NodeId;

/// Maximum work of one check of an assertion, in steps of expressions. What is left is not known.
const MAX_WORK: u64 = 50_000_000;
/// Number of verdicts of an assertion from which on all are dropped.
const MAX_KEPT: usize = 400_000;

/// The number of a verdict in [`Verdicts`].
pub(super) type VerdictId = u32;

/// Whether a path is as expected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Verdict {
    /// As expected.
    Passed,
    /// Not as expected, and why.
    Failed(Box<str>),
    /// Not known, and what.
    Unknown(Box<str>),
}

/// The fields of `PathPolicies` that verdicts depend on: the others, such as origins, need not be decoded.
#[derive(Clone, PartialEq, prost::Message)]
struct PoliciesView {
    #[prost(message, repeated, tag = "1")]
    policies: Vec<PolicyView>,
}

/// The fields of `EffectivePolicy` that verdicts depend on.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PolicyView {
    #[prost(string, optional, tag = "3")]
    pub spec_json: Option<String>,
    #[prost(message, repeated, tag = "8")]
    pub listed: Vec<v1::ListedPolicy>,
    #[prost(string, tag = "11")]
    pub not_computed: String,
    #[prost(message, optional, tag = "12")]
    unknown: Option<v1::Unknown>,
}

/// The answers and the objects that a verdict depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VerdictKey {
    /// The etag of the effective policy of each variable; 0 if there is none.
    etags: Box<[u128]>,
    objects: PathContext,
}

/// The verdicts of an assertion.
#[derive(Debug)]
pub(super) struct Verdicts {
    by_answer: HashMap<VerdictKey, VerdictId>,
    ids: HashMap<Verdict, VerdictId>,
    all: Vec<Verdict>,
    /// The work of this check.
    work: u64,
}

impl PolicyView {
    /// The effective policy of a kind at a state; `None` if there is none.
    fn at(
        engine: &PathEngine,
        kind: &GroupKind,
        state: StateId,
    ) -> Result<Option<Self>, InternalError> {
        let world = engine.world();
        let mut kinds = world.kinds().iter().enumerate();
        let known = kinds.find(|(_, known)| known.profile().policy == *kind);
        let Some((number, known)) = known else {
            return Ok(None);
        };
        let Some(chain) = engine.chain(number, state)? else {
            return Ok(None);
        };
        let effective = world.answer(known, &chain);
        Ok((!effective.is_empty()).then(|| effective.into()))
    }
}

impl From<EffectivePolicy> for PolicyView {
    fn from(effective: EffectivePolicy) -> Self {
        let listed = effective.listed.iter();
        let unknown = effective.unknown.as_ref();
        Self {
            spec_json: effective.spec.as_ref().map(ToString::to_string),
            listed: listed
                .map(|listed| v1::ListedPolicy {
                    spec_json: listed.spec.to_string(),
                    ..v1::ListedPolicy::default()
                })
                .collect(),
            not_computed: effective.not_computed.clone().unwrap_or_default(),
            unknown: unknown.map(|unknown| v1::Unknown {
                message: unknown.message.clone(),
                ..v1::Unknown::default()
            }),
        }
    }
}

impl Verdicts {
    /// The verdict [`Verdict::Passed`].
    pub const PASSED: VerdictId = 0;

    /// Knows no answer.
    pub fn new() -> Self {
        Self {
            by_answer: HashMap::new(),
            ids: HashMap::from([(Verdict::Passed, Self::PASSED)]),
            all: vec![Verdict::Passed],
            work: 0,
        }
    }

    /// Begins another check, with its own bound of work.
    pub fn begin(&mut self) {
        self.work = 0;
    }

    /// Whether there are so many verdicts, most of them of former answers, that they are better dropped.
    pub fn is_full(&self) -> bool {
        self.by_answer.len().max(self.all.len()) > MAX_KEPT
    }

    /// Forgets which answers have been checked.
    pub fn forget_answers(&mut self) {
        self.by_answer = HashMap::new();
    }

    /// Whether the last check exceeded its bound of work, so that the verdicts of some paths are missing.
    pub fn is_exhausted(&self) -> bool {
        self.work > MAX_WORK
    }

    /// Forgets the verdicts that depend on some objects.
    pub fn forget(&mut self, nodes: &HashSet<NodeId>) {
        self.by_answer.retain(|key, _| !key.objects.has_any(nodes));
    }

    /// The number of answers whose verdict is known.
    pub fn known(&self) -> usize {
        self.by_answer.len()
    }

    /// A verdict by its number.
    pub fn get(&self, id: VerdictId) -> &Verdict {
        static MISSING: LazyLock<Verdict> =
            LazyLock::new(|| Verdict::Unknown("internal error: a verdict is missing".into()));
        let verdict = self.all.get(id as usize);
        verdict
            .or_internal("a verdict")
            .unwrap_or_else(|_| &MISSING)
    }

    /// The verdict about paths of which something is not known.
    pub fn not_known(&mut self, what: String) -> VerdictId {
        self.id(Verdict::Unknown(what.into()))
    }

    /// Checks the path that ends in a state.
    pub fn of(
        &mut self,
        snapshot: &Snapshot,
        assertion: &Assertion,
        (state, context): (StateId, PathContext),
    ) -> VerdictId {
        let body = snapshot.answer_at(Some(state));
        let etags = assertion.policies.iter().map(|(_, kind)| {
            let etag = body.policy(kind).map(|(etag, _)| etag);
            etag.map_or(Some(0), |etag| u128::from_str_radix(etag, 16).ok())
        });
        let objects = context.read_by(assertion.expectation.objects());
        let key = etags.collect::<Option<Box<[u128]>>>();
        let key = key.map(|etags| VerdictKey { etags, objects });
        if let Some(&known) = key.as_ref().and_then(|key| self.by_answer.get(key)) {
            return known;
        }
        if self.is_exhausted() {
            let message = format!("the assertion needs more than {MAX_WORK} steps in all");
            return self.not_known(message);
        }
        let policies = assertion.policies.iter().map(|(_, kind)| {
            let encoded = body.policy(kind).map(|(_, bytes)| bytes);
            encoded.map(|bytes| decoded(&bytes)).transpose()
        });
        let policies = policies.collect::<Result<Vec<_>, InternalError>>();
        let verdict = policies
            .and_then(|policies| self.check(snapshot.world(), assertion, &policies, objects));
        let verdict = verdict.unwrap_or_else(|error| {
            snapshot.fail(error);
            Verdict::Unknown(error.to_string().into())
        });
        let id = self.id(verdict);
        if let Some(key) = key {
            self.by_answer.insert(key, id);
        }
        id
    }

    /// Checks the path that ends in a state of a world whose answers are not encoded.
    ///
    /// # Errors
    /// There is no such state.
    pub fn of_engine(
        &mut self,
        engine: &PathEngine,
        assertion: &Assertion,
        (state, context): (StateId, PathContext),
    ) -> Result<VerdictId, InternalError> {
        if self.is_exhausted() {
            return Ok(self.not_known(format!(
                "the assertion needs more than {MAX_WORK} steps in all"
            )));
        }
        let policies = assertion.policies.iter();
        let policies = policies.map(|(_, kind)| PolicyView::at(engine, kind, state));
        let policies = policies.collect::<Result<Vec<_>, InternalError>>()?;
        let objects = context.read_by(assertion.expectation.objects());
        let verdict = self.check(engine.world(), assertion, &policies, objects)?;
        Ok(self.id(verdict))
    }

    fn check(
        &mut self,
        world: &World,
        assertion: &Assertion,
        policies: &[Option<PolicyView>],
        objects: PathContext,
    ) -> Result<Verdict, InternalError> {
        let mut values = Vec::with_capacity(policies.len());
        for ((variable, kind), policy) in assertion.policies.iter().zip(policies) {
            let unknown = policy.as_ref().and_then(|policy| policy.unknown.as_ref());
            if let Some(unknown) = unknown {
                let what = format!("{kind}: {}", unknown.message);
                return Ok(Verdict::Unknown(what.into()));
            }
            let is_listed = is_listed(world, kind);
            values.push((&**variable, policy_value(policy.as_ref(), is_listed)?));
        }
        let expectation = &assertion.expectation;
        let path = PathObjects {
            world,
            context: objects,
            own_namespace: assertion.filter.own_namespace.as_ref(),
        };
        let checked = expectation.check(&values, path, &mut self.work);
        Ok(match checked {
            Ok(()) => Verdict::Passed,
            Err(why) => Verdict::Failed(why.into()),
        })
    }

    fn id(&mut self, verdict: Verdict) -> VerdictId {
        if let Some(&id) = self.ids.get(&verdict) {
            return id;
        }
        let id = VerdictId::try_from(self.all.len()).unwrap_or(VerdictId::MAX);
        self.all.push(verdict.clone());
        self.ids.insert(verdict, id);
        id
    }
}

/// Decodes an encoded field `policies`.
fn decoded(bytes: &[u8]) -> Result<PolicyView, InternalError> {
    let policies = PoliciesView::decode(bytes).ok();
    let policy = policies.and_then(|decoded| decoded.policies.into_iter().next());
    policy.or_internal("an encoded policy")
}

/// Whether all profiles of a kind list its policies. Those of different controllers can differ.
fn is_listed(world: &World, kind: &GroupKind) -> bool {
    let kinds = world.profiled_kinds();
    let mut kinds = kinds
        .filter(|known| known.profile().policy == *kind)
        .peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind.profile().class == PolicyClass::Listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_of_a_policy_has_its_fields() {
        let policy = v1::EffectivePolicy {
            group: "g".to_owned(),
            kind: "k".to_owned(),
            spec_json: Some("{}".to_owned()),
            listed: vec![v1::ListedPolicy {
                spec_json: "1".to_owned(),
                ..v1::ListedPolicy::default()
            }],
            not_computed: "n".to_owned(),
            unknown: Some(v1::Unknown {
                message: "m".to_owned(),
                ..v1::Unknown::default()
            }),
            ..v1::EffectivePolicy::default()
        };
        let encoded = v1::PathPolicies {
            policies: vec![policy.clone()],
            ..v1::PathPolicies::default()
        };
        let view = decoded(&encoded.encode_to_vec()).unwrap();
        assert_eq!(view.spec_json, policy.spec_json);
        assert_eq!(view.listed, policy.listed);
        assert_eq!(view.not_computed, policy.not_computed);
        assert_eq!(view.unknown, policy.unknown);
    }
}
