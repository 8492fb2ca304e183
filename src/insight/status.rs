//! The status of a server: its kinds, and the problems of its sources.

use super::kind_names::defined_names;
use super::{Code, Visibility};
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::effective::{PolicyKind, World};
use entail_core::model::{GroupKind, Level, Outcome, SourceState};
use entail_core::profile::{EffectiveTarget, PolicyClass, Profile, ProfileOrigin, TargetKinds};

/// The problems of the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceProblems {
    /// The problems.
    pub problems: Vec<SourceProblem>,
}

/// A problem of a source. Its text is `location: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceProblem {
    /// File and line, or the object.
    pub location: String,
    /// Human-readable explanation.
    pub message: String,
    /// The code of its finding. `None` for problems of a cluster: the states of kinds report them.
    pub code: Option<Code>,
}

impl std::fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

/// Returns the status of a server. Problems and totals are empty for callers with restricted
/// visibility.
pub fn server_status(
    snapshot: &Snapshot,
    source_problems: &SourceProblems,
    visibility: &dyn Visibility,
) -> v1::GetServerStatusResponse {
    let world = snapshot.world();
    let version = snapshot.version();
    let profiles = world.problems().iter().map(|p| v1::Problem {
        location: p.location.clone(),
        message: p.message(),
        code: Code::ProfileRefused.id().to_owned(),
    });
    let sources = source_problems.problems.iter().map(|problem| v1::Problem {
        location: problem.location.clone(),
        message: problem.message.clone(),
        code: problem.code.map(Code::id).unwrap_or_default().to_owned(),
    });
    let refused = world.refused().iter().map(|kind| v1::KindStatus {
        kind: kind.to_string(),
        state: v1::kind_state::State::Unknown.into(),
        ..v1::KindStatus::default()
    });
    let is_all = visibility.is_unrestricted();
    let mut kinds: Vec<v1::KindStatus> = world
        .kinds()
        .iter()
        // A kind without a profile is known by its objects alone.
        .filter(|kind| is_all || !kind.is_unprofiled())
        .map(|kind| status(world, kind))
        .chain(refused)
        .filter(|status| visibility.includes_kind(&GroupKind::parse(&status.kind)))
        .collect();
    for kind in kinds.iter_mut().filter(|_| !is_all) {
        (kind.policies, kind.accepted) = (0, 0);
    }
    if is_all {
        let defined = defined_names(world);
        for kind in &mut kinds {
            kind.names = defined.get(&kind.kind).cloned().unwrap_or_default();
        }
    }
    kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
    v1::GetServerStatusResponse {
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds,
        // Problems contain names of files and objects.
        problems: profiles.chain(sources).filter(|_| is_all).collect(),
        // Totals reveal the number of objects that the caller may not see.
        paths: if is_all { snapshot.paths() } else { 0 },
        distinct_answers: if is_all {
            snapshot.distinct_answers() as u64
        } else {
            0
        },
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn status(world: &World, kind: &PolicyKind) -> v1::KindStatus {
    let profile = kind.profile();
    let accepted = kind
        .policies()
        .filter(|(slot, _)| kind.outcome(*slot).0 == Outcome::Accepted)
        .count();
    let state = match world.state(&profile.policy) {
        SourceState::Complete => v1::kind_state::State::Complete,
        SourceState::Stale => v1::kind_state::State::Stale,
        SourceState::Forbidden => v1::kind_state::State::Forbidden,
        SourceState::Unknown => v1::kind_state::State::Unknown,
    };
    v1::KindStatus {
        kind: profile.policy.to_string(),
        state: state.into(),
        profile: match profile.origin {
            ProfileOrigin::Configured => "configured",
            ProfileOrigin::BuiltIn => "built-in",
            ProfileOrigin::Derived => "derived",
        }
        .to_owned(),
        policies: kind.policy_count() as u64,
        accepted: accepted as u64,
        not_computed: kind.not_computed().unwrap_or_default().to_owned(),
        scope_levels: scope_levels(profile)
            .into_iter()
            .map(|level| level.as_str().to_owned())
            .collect(),
        names: Vec::new(),
    }
}

/// The levels of the scopes of a kind (specification 2.3, 7.2).
pub(super) fn scope_levels(profile: &Profile) -> Vec<Level> {
    match (profile.effective, &profile.targets) {
        (EffectiveTarget::Level(level), _) => vec![level],
        (EffectiveTarget::Target, TargetKinds::Listed(targets))
            if profile.class == PolicyClass::Direct =>
        {
            let mut levels = Vec::new();
            for target in targets {
                let level = profile.level_of(&target.kind);
                levels.push(level);
                levels.extend(section_of(level).filter(|_| target.sections));
            }
            levels.sort_unstable();
            levels.dedup();
            levels
        }
        _ => Level::ALL
            .into_iter()
            .filter(|level| *level != Level::Root)
            .collect(),
    }
}

/// The level of the sections of an object.
fn section_of(level: Level) -> Option<Level> {
    match level {
        Level::Gateway | Level::ListenerSet => Some(Level::Listener),
        Level::Route => Some(Level::RouteRule),
        Level::Backend => Some(Level::BackendPort),
        _ => None,
    }
}
