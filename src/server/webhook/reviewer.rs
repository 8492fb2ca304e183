//! Answers admission reviews from the current snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::Semaphore;
use tonic::Status;

use super::counters::{ReviewCounters, ReviewOutcome};
use super::review::Review;
use super::shares::{AddressShare, AddressShares};
use super::{CONNECTIONS, WebhookSettings};
use crate::api::StateReason;
use crate::api::v1::kind_state::State;
use crate::insight::{
    BrokenAssertion, Budget, ChangeEffect, ChangedObject, MAX_WARNINGS, NameScope, ObjectChange,
    Visibility, broken_by, broken_warning, enforced_in, today, unread_assertions, warning_line,
    warnings,
};
use crate::server::admission::blocking_pool::BlockingPool;
use crate::server::admission::connections::ClientAddress;
use crate::snapshot::Snapshot;
use crate::subscription::SubscriptionHub;
use entail_client::EnumName;
use entail_core::effective::World;
use entail_core::model::{Change, GroupKind, ObjectKey};
use entail_core::store::{ChangeSet, ProfileSources, Store, required_kinds};

/// Maximum time to answer a review, also if the API server waits longer.
const MAX_TIME: Duration = Duration::from_millis(1_500);
/// Number of reviews that may wait until others are answered.
const QUEUE: usize = 128;
/// Maximum number of reviews of one address whose effects are computed or wait for it.
const PER_ADDRESS: usize = 64;
/// Number of reviews that may take long which may wait until another of these is answered.
const SLOW_QUEUE: usize = 2;
/// Maximum number of them of one address.
const SLOW_PER_ADDRESS: usize = 2;

/// Reviews up to this number of bytes are answered at once, which nearly all are.
pub(super) const SMALL_REVIEW: usize = 128 * 1024;

/// Answers AdmissionReviews from the current snapshot, on threads of its own.
#[derive(Debug)]
pub struct Reviewer {
    subscriptions: Arc<SubscriptionHub>,
    settings: WebhookSettings,
    /// For reading reviews. Apart from the others, so that a review is read and answered while too many effects are
    /// computed.
    reading: BlockingPool,
    /// For effects that are computed in place, but for those on all that is below a Gateway.
    pool: BlockingPool,
    /// For the other effects, so that these do not delay them: of Gateways, and what needs a world that is read from
    /// scratch.
    slow: BlockingPool,
    /// The turns of larger reviews. They use half of the threads at most, so that they do not delay the others.
    large: Semaphore,
    /// The reviews in `pool` and in `slow`: one address does not use up the queues.
    shares: [Arc<AddressShares>; 2],
    /// The kinds that may have an effect, before it is known which profiles there are.
    built_in_kinds: BTreeSet<GroupKind>,
    counters: Arc<ReviewCounters>,
}

/// Why an AdmissionReview is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The text is no AdmissionReview.
    #[error("{0}")]
    Malformed(String),
    /// The text was not read: others are read first, or reading it failed.
    #[error("{0}")]
    NotRead(String),
}

/// The result of a review.
#[derive(Debug)]
struct Verdict {
    outcome: ReviewOutcome,
    warnings: Vec<String>,
    /// Why the change is denied; `None` if it is allowed.
    denial: Option<String>,
}

/// A change of an object, applied to the objects of a snapshot.
struct AppliedChange {
    snapshot: Arc<Snapshot>,
    key: ObjectKey,
    change: ObjectChange,
    store: Store,
    changed: ChangeSet,
}

/// What a review is answered with, or what it takes to answer it.
enum Step {
    Answered(Verdict),
    /// It may take long.
    Slow(Box<AppliedChange>),
}

/// Sees everything, within a time limit.
#[derive(Debug)]
struct Unrestricted(Arc<Budget>);

impl Reviewer {
    /// Creates a reviewer with a number of threads for effects that are computed in place.
    pub fn new(
        subscriptions: Arc<SubscriptionHub>,
        settings: WebhookSettings,
        threads: usize,
    ) -> Self {
        Self {
            subscriptions,
            settings,
            reading: BlockingPool::new(threads, CONNECTIONS, MAX_TIME),
            pool: BlockingPool::new(threads, QUEUE, MAX_TIME),
            slow: BlockingPool::new(1, SLOW_QUEUE, MAX_TIME),
            large: Semaphore::new((threads / 2).max(1)),
            // The pools bound the number in all.
            shares: [PER_ADDRESS, SLOW_PER_ADDRESS]
                .map(|per_address| AddressShares::new(usize::MAX, per_address)),
            built_in_kinds: built_in_kinds(),
            counters: Arc::default(),
        }
    }

    /// The counters of reviews.
    pub fn counters(&self) -> Arc<ReviewCounters> {
        Arc::clone(&self.counters)
    }

    /// Answers the AdmissionReview in `text`, which came from an address, within a time, and counts it if it is one.
    ///
    /// # Errors
    /// The text is no AdmissionReview, or it was not read.
    pub async fn review(
        self: &Arc<Self>,
        text: Bytes,
        from: ClientAddress,
        time: Option<Duration>,
    ) -> Result<String, ReviewError> {
        let started = tokio::time::Instant::now();
        let end = started + time.unwrap_or(MAX_TIME).min(MAX_TIME);
        let late = |_| {
            ReviewError::NotRead("reading it took longer than the time for a review".to_owned())
        };
        let _turn = match text.len() > SMALL_REVIEW {
            true => Some(
                tokio::time::timeout_at(end, self.large.acquire())
                    .await
                    .map_err(late)?,
            ),
            false => None,
        };
        let read = tokio::time::timeout_at(end, self.parse(text)).await;
        let review = read.map_err(late)??;
        let uid = review.uid.clone();
        let verdict = tokio::time::timeout_at(end, self.verdict(review, from)).await;
        let verdict = verdict.unwrap_or_else(|_| Verdict::not_in_time());
        self.counters.record(verdict.outcome, started.elapsed());
        Ok(Review::answer(
            &uid,
            &verdict.warnings,
            verdict.denial.as_deref(),
        ))
    }

    /// Parses a review on a pool: an object can be large.
    async fn parse(&self, text: Bytes) -> Result<Review, ReviewError> {
        let now = jiff::Timestamp::try_from(SystemTime::now());
        let now = now.map(|now| now.to_string()).unwrap_or_default();
        let read = move || Ok(Review::parse(&text, &now));
        let parsed = self.reading.run(read).await;
        let parsed = parsed.map_err(|status| ReviewError::NotRead(status.message().to_owned()))?;
        parsed.map_err(ReviewError::Malformed)
    }

    async fn verdict(self: &Arc<Self>, review: Review, from: ClientAddress) -> Verdict {
        let [effects, slow] = &self.shares;
        let Some(share) = effects.begin(from) else {
            return Verdict::not_in_time();
        };
        let (budget, reviewer) = (Arc::<Budget>::default(), Arc::clone(self));
        let within = Arc::clone(&budget);
        let work = move || {
            // Until the work ends, also if nobody waits for it any more.
            let _share = share;
            Ok(reviewer.first_step(review, &Unrestricted(within)))
        };
        let step = self.pool.run_within(budget, work).await;
        match step {
            Ok(Step::Answered(verdict)) => verdict,
            Ok(Step::Slow(applied)) => match slow.begin(from) {
                Some(share) => self.slow_step(applied, share).await,
                None => Verdict::not_in_time(),
            },
            Err(status) => Verdict::failed(&status),
        }
    }

    /// Answers a review that may take long: from a world that is read from scratch, if that is needed.
    async fn slow_step(
        self: &Arc<Self>,
        applied: Box<AppliedChange>,
        share: AddressShare,
    ) -> Verdict {
        let (budget, reviewer) = (Arc::<Budget>::default(), Arc::clone(self));
        let within = Unrestricted(Arc::clone(&budget));
        let work = move || {
            let _share = share;
            let AppliedChange {
                snapshot,
                store,
                changed,
                ..
            } = &*applied;
            let in_place = ChangeEffect::in_place(snapshot, store.clone(), changed, &within);
            let whole = || ChangeEffect::of(snapshot, store.clone(), changed, &within);
            let effect = in_place.unwrap_or_else(whole);
            match within.0.step() {
                true => Ok(reviewer.judge(&applied, &effect, &within)),
                false => Ok(Verdict::not_in_time()),
            }
        };
        let verdict = self.slow.run_within(budget, work).await;
        verdict.unwrap_or_else(|status| Verdict::failed(&status))
    }

    /// Answers a review, if that does not take long.
    fn first_step(&self, review: Review, within: &Unrestricted) -> Step {
        let Some(change) = review.change.filter(|_| !review.is_subresource) else {
            return Step::Answered(Verdict::silent());
        };
        let kind = &review.kind;
        let Some(snapshot) = self.subscriptions.snapshots().load() else {
            let verdict = match self.built_in_kinds.contains(kind) {
                true => Verdict::unknown("no effective policies are known yet"),
                false => Verdict::silent(),
            };
            return Step::Answered(verdict);
        };
        if let Some(reason) = unknown_reason(&snapshot, kind) {
            let why = format!("{} is UNKNOWN ({reason})", kind.kind);
            return Step::Answered(Verdict::unknown(&why));
        }
        if !follows(snapshot.world(), kind) {
            return Step::Answered(Verdict::silent());
        }
        if let Some(cut) = review.cut {
            let enforced = enforced_in(&snapshot, &review.namespace);
            let enforced = enforced.filter(|_| !review.is_ending);
            return Step::Answered(Verdict::not_readable(&cut.message(), enforced.as_ref()));
        }
        let applied = match self.apply(snapshot, review, change) {
            Ok(Some(applied)) => applied,
            Ok(None) => return Step::Answered(Verdict::silent()),
            Err(error) => return Step::Answered(Verdict::unknown(&error)),
        };
        let (store, changed) = (applied.store.clone(), &applied.changed);
        let in_place = || ChangeEffect::in_place(&applied.snapshot, store, changed, within);
        // The kind of an object can have another name than it has there.
        let is_slow = applied.changed.keys().any(|key| key.kind.is_above_routes());
        match (!is_slow).then(in_place).flatten() {
            Some(effect) => Step::Answered(self.judge(&applied, &effect, within)),
            None => Step::Slow(Box::new(applied)),
        }
    }

    /// Applies the change of a review to the objects of a snapshot; `None` if it changes nothing.
    ///
    /// # Errors
    /// The object is malformed.
    fn apply(
        &self,
        snapshot: Arc<Snapshot>,
        review: Review,
        change: ObjectChange,
    ) -> Result<Option<AppliedChange>, String> {
        let Some(object) = (self.settings.read)(review.object)? else {
            return Ok(None);
        };
        let key = object.key.clone();
        let mut store = snapshot.world().store().clone();
        let changed = store.apply(match change {
            ObjectChange::Deleted => Change {
                deletes: vec![key.clone()],
                ..Change::default()
            },
            ObjectChange::Created | ObjectChange::Updated => Change {
                upserts: vec![Arc::new(object)],
                ..Change::default()
            },
        });
        Ok((!changed.is_empty()).then_some(AppliedChange {
            snapshot,
            key,
            change,
            store,
            changed,
        }))
    }

    fn judge(
        &self,
        applied: &AppliedChange,
        effect: &ChangeEffect,
        within: &Unrestricted,
    ) -> Verdict {
        let worlds = [applied.snapshot.world(), effect.after.world()];
        let names = match self.settings.full_names {
            true => NameScope::All,
            false => NameScope::own(&applied.key, worlds),
        };
        let object = ChangedObject {
            key: &applied.key,
            change: applied.change,
            names: &names,
        };
        let mut warnings = warnings(&applied.snapshot, object, effect);
        let broken = broken(applied, effect, within);
        let (broken, why_not_all) = match broken {
            Ok(broken) => (broken, not_read(&applied.snapshot)),
            Err(why) => (Vec::new(), Some(why)),
        };
        if let Some(why) = why_not_all {
            let why = format!("not all assertions are checked: {why}");
            warnings.insert(0, warning_line(&why));
        }
        let denies = |broken: &BrokenAssertion| broken.denies_in(&applied.key.namespace);
        let told = |broken: &BrokenAssertion| broken_warning(object, broken);
        let denial = broken.iter().find(|broken| denies(broken)).map(told);
        let others = broken.iter().filter(|broken| !denies(broken));
        warnings.splice(0..0, others.take(MAX_WARNINGS).map(told));
        let outcome = match (&denial, warnings.is_empty()) {
            (Some(_), _) => ReviewOutcome::Denied,
            (None, true) => ReviewOutcome::Silent,
            (None, false) => ReviewOutcome::Warned,
        };
        Verdict {
            outcome,
            warnings,
            denial,
        }
    }
}

impl Verdict {
    fn silent() -> Self {
        Self {
            outcome: ReviewOutcome::Silent,
            warnings: Vec::new(),
            denial: None,
        }
    }

    /// The effect is not known.
    fn unknown(why: &str) -> Self {
        Self {
            outcome: ReviewOutcome::NotComputed,
            warnings: vec![warning_line(&format!(
                "the effect of this change is not known: {why}"
            ))],
            denial: None,
        }
    }

    /// The object exceeds the bounds. If an assertion is enforced, the change is denied: nobody gets around an assertion by
    /// the shape of an object.
    fn not_readable(why: &str, enforced: Option<&ObjectKey>) -> Self {
        match enforced {
            Some(assertion) => Self {
                outcome: ReviewOutcome::Denied,
                warnings: Vec::new(),
                denial: Some(warning_line(&format!(
                    "`{assertion}` is enforced, and it cannot be checked: the object is {why}"
                ))),
            },
            None => Self::unknown(&format!("the object is {why}")),
        }
    }

    fn not_in_time() -> Self {
        Self {
            outcome: ReviewOutcome::NotComputed,
            warnings: vec![warning_line(
                "the effect of this change was not computed in time",
            )],
            denial: None,
        }
    }

    /// The work of a review failed.
    fn failed(status: &Status) -> Self {
        match status.code() {
            tonic::Code::Internal => Self::unknown("internal error: see the log of the server"),
            _ => Self::not_in_time(),
        }
    }
}

impl Visibility for Unrestricted {
    fn is_unrestricted(&self) -> bool {
        true
    }

    fn includes_path(&self, _: &str) -> bool {
        true
    }

    fn includes_kind(&self, _: &GroupKind) -> bool {
        true
    }

    fn includes_object(&self, _: &ObjectKey) -> bool {
        true
    }

    fn budget(&self) -> &Budget {
        &self.0
    }
}

/// The assertions that a change breaks.
///
/// # Errors
/// Not all paths could be checked. The text says why.
fn broken(
    applied: &AppliedChange,
    effect: &ChangeEffect,
    within: &Unrestricted,
) -> Result<Vec<BrokenAssertion>, String> {
    let differences = &effect.differences;
    if differences.truncated {
        return Err("too many paths change".to_owned());
    }
    let changed = differences.changes.iter().flat_map(|change| &change.paths);
    let changed = changed.chain(&differences.paths_added).map(String::as_str);
    let day = (today(), &*within.0);
    let broken = broken_by(
        &applied.snapshot,
        (effect.after.paths(), std::slice::from_ref(&applied.key)),
        changed,
        day,
    );
    let broken = broken.map_err(|error| error.to_string())?;
    match within.0.step() {
        true => Ok(broken),
        false => Err("not in time".to_owned()),
    }
}

/// Why not all assertions of a snapshot are known; `None` if they are.
fn not_read(snapshot: &Snapshot) -> Option<String> {
    let unread = unread_assertions(snapshot);
    let unread = unread.map(|kind| {
        let state = kind.state().name();
        format!("{} is {state}", GroupKind::parse(&kind.kind).kind)
    });
    let unread: Vec<String> = unread.collect();
    (!unread.is_empty()).then(|| unread.join(", "))
}

/// The kinds that determine paths or profiles, and the policy kinds with built-in profiles.
fn built_in_kinds() -> BTreeSet<GroupKind> {
    let registry = ProfileSources::shipped().resolve(&Store::default());
    let profiles = registry.profiles.values();
    let policies = profiles.map(|profile| profile.resource().clone());
    required_kinds().chain(policies).collect()
}

/// Why nothing is known of the policies of a kind; `None` if they are known.
fn unknown_reason(snapshot: &Snapshot, kind: &GroupKind) -> Option<String> {
    let name = kind.to_string();
    let states = snapshot.kinds().iter();
    let mut unknown = states.filter(|state| state.state() == State::Unknown);
    if let Some(state) = unknown.find(|state| state.kind == name) {
        return Some(state.reason.clone());
    }
    let kinds = snapshot.world().kinds().iter();
    let mut of_resource = kinds.filter(|known| known.profile().resource() == kind);
    let first = of_resource.next()?;
    let lacks_profile = first.is_unprofiled() && of_resource.all(|known| known.is_unprofiled());
    lacks_profile.then(|| StateReason::NoProfile.kind_state(name).reason)
}

/// Whether objects of a kind may have an effect: they determine paths or profiles, or are policies or targets.
fn follows(world: &World, kind: &GroupKind) -> bool {
    required_kinds().any(|required| required == *kind)
        || world.kinds().iter().any(|known| {
            let mut kinds = known.profile().kinds();
            kinds.any(|other| other == kind)
        })
}

#[cfg(test)]
mod tests {
    use entail_core::model::{KindState, SourceState};
    use serde_json::{Value, json};

    use super::*;
    use crate::snapshot::Version;

    fn reviewer() -> Arc<Reviewer> {
        let settings = WebhookSettings {
            read: Arc::new(|_| Ok(None)),
            full_names: false,
        };
        Arc::new(Reviewer::new(Arc::default(), settings, 1))
    }

    /// The warnings for a new object of a kind that is not followed.
    async fn warnings_of(reviewer: &Arc<Reviewer>, address: u8) -> Value {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "7", "operation": "CREATE", "object": {},
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        }});
        let from = ClientAddress::of([127, 0, 0, address].into());
        let answer = reviewer.review(review.to_string().into(), from, None).await;
        let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
        assert_eq!(answer["response"]["allowed"], json!(true));
        answer["response"]["warnings"].clone()
    }

    #[test]
    fn assertions_that_cannot_be_read_are_told() {
        let kind = GroupKind::assertions().into_iter().next().unwrap();
        let with_state = |state| {
            let mut store = Store::default();
            store.apply(Change {
                states: vec![KindState {
                    kind: kind.clone(),
                    state,
                }],
                ..Change::default()
            });
            let world = World::from_store(store, &ProfileSources::shipped());
            let version = Version {
                epoch: "one".into(),
                generation: 1,
                synced_at: prost_types::Timestamp::default(),
            };
            not_read(&Snapshot::build(world, version))
        };
        assert_eq!(with_state(SourceState::Complete), None);
        let told = with_state(SourceState::Forbidden).unwrap();
        assert_eq!(told, format!("{} is FORBIDDEN", kind.kind));
    }

    #[tokio::test]
    async fn an_address_with_many_reviews_does_not_keep_out_others() {
        let (reviewer, [one, other]) = (reviewer(), [1, 2]);
        let of_one = ClientAddress::of([127, 0, 0, one].into());
        let [effects, _] = &reviewer.shares;
        let held: Vec<_> = (0..PER_ADDRESS)
            .map(|_| effects.begin(of_one).unwrap())
            .collect();
        let warnings = warnings_of(&reviewer, one).await;
        assert!(
            warnings.to_string().contains("was not computed in time"),
            "{warnings}"
        );
        assert_eq!(warnings_of(&reviewer, other).await, Value::Null);
        drop(held);
        assert_eq!(warnings_of(&reviewer, one).await, Value::Null);
    }
}
