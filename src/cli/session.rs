//! [`Session`]: the backend of one command, its policy kinds, and their states.

use super::levels::kind_name;
use super::render::text::{Style, printable, wrapped};
use super::{CliError, ExitStatus, QueryArgs, connect};
use crate::api::{ALL_KINDS, StateReason, unknown_state, v1};
use crate::insight::{Code, QueryBackend, QueryError, is_name_of};
use crate::snapshot::Snapshot;
use entail_client::EnumName;
use entail_core::model::{GroupKind, did_you_mean};
use v1::get_effective_policies_request::Target;
use v1::kind_state::State;

/// The backend of one command, and the policy kinds that it selects.
pub(super) struct Session {
    /// Answers the queries.
    pub(super) backend: Box<dyn QueryBackend>,
    /// The status of the backend at the start of the command.
    pub(super) status: v1::GetServerStatusResponse,
    /// The selected kinds, as `Kind.group`; all kinds if empty.
    pub(super) kinds: Vec<String>,
    /// Some input could not be read: the answers cover the rest.
    pub(super) is_partial: bool,
    /// The kinds of which the inputs lack objects that paths depend on.
    pub(super) lacking: Vec<v1::KindState>,
}

impl Session {
    /// Connects to the source, and resolves the names of the selected kinds.
    pub(super) fn open(args: &QueryArgs) -> Result<Self, CliError> {
        Self::of(connect::connect(&args.source)?, args)
    }

    /// Opens a session like [`open`](Self::open) for a command that prints findings: what the findings say of the
    /// inputs is not printed on standard error.
    pub(super) fn open_for_findings(args: &QueryArgs) -> Result<Self, CliError> {
        Self::of(connect::connect_for_findings(&args.source)?, args)
    }

    fn of(connection: connect::Connection, args: &QueryArgs) -> Result<Self, CliError> {
        let connect::Connection {
            mut backend,
            incomplete,
            lacking,
        } = connection;
        let status = backend.server_status()?;
        let mut kinds = Vec::with_capacity(args.kinds.len());
        for text in &args.kinds {
            kinds.push(resolve_kind(&status, text)?);
        }
        Ok(Self {
            backend,
            status,
            kinds,
            is_partial: incomplete,
            lacking,
        })
    }

    /// Returns the kinds whose state is not COMPLETE: of the selected ones, and of those that all answers depend on. A
    /// selected kind that the backend does not list is UNKNOWN.
    pub(super) fn incomplete(&self, reported: &[v1::KindState]) -> Vec<v1::KindState> {
        let concerns = |kind: &str| {
            kind == ALL_KINDS
                || is_selected(&self.kinds, kind)
                || Snapshot::affects_topology(&GroupKind::parse(kind))
        };
        let incomplete = reported
            .iter()
            .filter(|state| state.state() != State::Complete && concerns(&state.kind));
        let mut states: Vec<v1::KindState> = incomplete.chain(&self.lacking).cloned().collect();
        for kind in &self.kinds {
            let named = std::slice::from_ref(kind);
            if states.iter().any(|state| is_selected(named, &state.kind)) {
                continue;
            }
            let listed = self.status.kinds.iter();
            let listed: Vec<State> = listed
                .filter(|listed| is_selected(named, &listed.kind))
                .map(v1::KindStatus::state)
                .collect();
            if listed.is_empty() {
                states.push(StateReason::without_profile(kind.clone(), reported));
            } else if listed.iter().all(|state| *state == State::Unknown) {
                let refused = Code::ProfileRefused.id();
                let mut problems = self.status.problems.iter();
                let reason = match problems.any(|problem| problem.code == refused) {
                    true => StateReason::ProfileRefused,
                    false => StateReason::NotRead,
                };
                states.push(reason.kind_state(kind.clone()));
            }
        }
        states.sort_by(|a, b| a.kind.cmp(&b.kind));
        states.dedup();
        for state in &mut states {
            self.explain(state);
        }
        states
    }

    /// Asks for the kind with a profile whose name is nearest; empty if none is near.
    fn nearest_kind(&self, text: &str) -> String {
        let asked = GroupKind::parse(text);
        let kinds = self.status.kinds.iter();
        let kinds = kinds.map(|listed| GroupKind::parse(&listed.kind));
        // A kind of another group is another kind.
        let kinds = kinds.filter(|kind| asked.group.is_empty() || kind.group == asked.group);
        let kinds = kinds.filter(|kind| kind.kind != asked.kind);
        did_you_mean(
            &asked.kind,
            kinds.map(|kind| kind.kind.to_string()).collect(),
        )
    }

    /// Adds to the state of a kind that could not be read what the backend reports as its problem, and to that of a
    /// selected kind without a profile the one that may be meant.
    fn explain(&self, state: &mut v1::KindState) {
        if state.reason == "NoProfile" && self.kinds.contains(&state.kind) {
            state.message.push_str(&self.nearest_kind(&state.kind));
        }
        let mut problems = self.status.problems.iter();
        let problem = problems.find(|problem| problem.location == state.kind);
        let is_of_source = matches!(
            &*state.reason,
            "NotRead" | "Forbidden" | "SourceUnavailable"
        );
        if let Some(problem) = problem.filter(|_| is_of_source) {
            state.message = format!("{}: {}", state.message, problem.message);
        }
    }

    /// Returns the selected kinds whose state is not COMPLETE, and those that are not fully known in some
    /// effective policies.
    pub(super) fn incomplete_with<'p>(
        &self,
        reported: &[v1::KindState],
        policies: impl IntoIterator<Item = &'p v1::EffectivePolicy>,
    ) -> Vec<v1::KindState> {
        let mut states = self.incomplete(reported);
        states.extend(unknown_states(policies));
        states
    }

    /// The exit status of an answer with these incomplete kinds.
    pub(super) fn exit(&self, states: &[v1::KindState]) -> ExitStatus {
        if states.is_empty() && !self.is_partial {
            ExitStatus::Success
        } else {
            ExitStatus::Incomplete
        }
    }

    /// Converts an error of the backend to an error of the command.
    pub(super) fn failure(&self, error: QueryError) -> CliError {
        match CliError::from(error) {
            CliError::NotFound(message) => self.not_found(message),
            other => other,
        }
    }

    /// Returns the error for a name that is not in the input. While some input could not be read,
    /// the name may be there, so this is not a "not found" error.
    pub(super) fn not_found(&self, message: String) -> CliError {
        if !self.is_partial {
            return CliError::NotFound(message);
        }
        CliError::Unreadable(
            "the name is not in the input that could be read: correct what the warnings name, or set \
             `--allow-partial`"
                .to_owned(),
        )
    }

    /// Checks that a reply is of the same snapshot as the first one.
    ///
    /// # Errors
    /// The snapshot changed. Pages of different snapshots do not form a consistent answer.
    pub(super) fn check_version(&self, version: Option<&v1::Version>) -> Result<(), CliError> {
        if version == self.status.version.as_ref() {
            return Ok(());
        }
        Err(CliError::Unreadable(
            "the snapshot changed while the answer was read: retry, or narrow the query".to_owned(),
        ))
    }

    /// Returns a page of paths.
    ///
    /// # Errors
    /// The query failed, or the page is of another snapshot than the first reply.
    pub(super) fn list_paths(
        &mut self,
        request: &v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, CliError> {
        let page = self.backend.list_paths(request.clone());
        let page = page.map_err(|error| self.failure(error))?;
        self.check_version(page.version.as_ref())?;
        Ok(page)
    }

    /// Returns the effective policies of a path, of the selected kinds.
    ///
    /// # Errors
    /// The query failed.
    pub(super) fn look_up(
        &mut self,
        path: &str,
    ) -> Result<v1::GetEffectivePoliciesResponse, CliError> {
        let reply = self.backend.get(v1::GetEffectivePoliciesRequest {
            target: Some(Target::Path(path.to_owned())),
            kinds: self.kinds.clone(),
            if_none_match: String::new(),
        });
        reply.map_err(|error| self.failure(error))
    }
}

/// Whether a kind is one of the selected ones, or a section of one (specification 2.14). All are selected if
/// `selected` is empty.
pub(in crate::cli) fn is_selected(selected: &[String], kind: &str) -> bool {
    let kind = GroupKind::parse(kind);
    let mut named = selected.iter().map(|named| GroupKind::parse(named));
    selected.is_empty() || named.any(|named| named.names(&kind))
}

/// Returns the full name, `Kind.group`, of a kind that may be given without its group.
///
/// # Errors
/// The name is empty or ambiguous.
fn resolve_kind(status: &v1::GetServerStatusResponse, text: &str) -> Result<String, CliError> {
    let all = || status.kinds.iter().map(|kind| kind.kind.as_str());
    if text.is_empty() {
        return Err(CliError::Usage(
            "`--kind` is empty: use `Kind.group`".to_owned(),
        ));
    }
    if let Some(kind) = all().find(|kind| kind.eq_ignore_ascii_case(text)) {
        return Ok(kind.to_owned());
    }
    let listed = status.kinds.iter();
    let mut matching: Vec<String> = listed
        .clone()
        .filter(|listed| is_name_of(text, &GroupKind::parse(&listed.kind), &listed.names))
        .map(|listed| listed.kind.clone())
        .collect();
    if matching.is_empty() {
        // The name of a resource kind selects all of its sections.
        let resources =
            listed.map(|listed| (GroupKind::parse(&listed.kind).resource(), &listed.names));
        let named = resources.filter(|(resource, names)| is_name_of(text, resource, names));
        matching.extend(named.map(|(resource, _)| resource.to_string()));
        matching.dedup();
    }
    match matching.as_slice() {
        [] => Ok(text.to_owned()),
        [kind] => Ok(kind.clone()),
        several => {
            // Built-in profiles share kind names. Prefer the only kind that has policies.
            let has_policies = |kind: &str| {
                let listed = status.kinds.iter().find(|listed| listed.kind == kind);
                listed.is_some_and(|listed| listed.policies > 0)
            };
            let in_use: Vec<&String> = several.iter().filter(|k| has_policies(k)).collect();
            match in_use.as_slice() {
                [kind] => Ok((*kind).clone()),
                _ => Err(CliError::Usage(format!(
                    "`{text}` is ambiguous: use one of {}",
                    several.join(", ")
                ))),
            }
        }
    }
}

/// Returns the states of the kinds that are not fully known on some paths, each reason of a kind once.
pub(super) fn unknown_states<'p>(
    policies: impl IntoIterator<Item = &'p v1::EffectivePolicy>,
) -> Vec<v1::KindState> {
    let unknown = policies.into_iter().filter_map(|policy| {
        let unknown = policy.unknown.as_ref()?;
        let kind = kind_name(policy);
        Some(unknown_state(kind, &unknown.reason, &unknown.message))
    });
    let mut states: Vec<v1::KindState> = unknown.collect();
    states.sort_by(|a, b| (&a.reason, &a.message, &a.kind).cmp(&(&b.reason, &b.message, &b.kind)));
    states.dedup();
    states
}

/// Returns the `INCOMPLETE` lines of human-readable output, wrapped.
pub(super) fn incomplete_lines(states: &[v1::KindState], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, state) in states.iter().enumerate() {
        // What helps against several lines stands once, in the last of them.
        let mut later = states.iter().skip(at + 1);
        let line = match later.any(|other| hint(other) == hint(state)) {
            true => described(state),
            false => incomplete_line(state),
        };
        let text = format!("INCOMPLETE: {line}");
        lines.extend(
            wrapped(&printable(&text), 0)
                .iter()
                .map(|line| style.alert(line)),
        );
    }
    lines
}

/// Describes the state of a kind that is not COMPLETE, and what to do.
pub(super) fn incomplete_line(state: &v1::KindState) -> String {
    let (what, hint) = (described(state), hint(state));
    match what.ends_with('?') {
        true => format!("{what}{}", hint.trim_start_matches('.')),
        false => what + hint,
    }
}

fn described(state: &v1::KindState) -> String {
    let name = state.state().name();
    match &*state.kind {
        ALL_KINDS => format!("all kinds are {name}: {}", state.message),
        kind => format!("{kind} is {name}: {}", state.message),
    }
}

/// What to do about a kind that is not COMPLETE.
fn hint(state: &v1::KindState) -> &'static str {
    match &*state.reason {
        "ControllerUnknown" => {
            ". Set `--controller NAME=GROUP` for a controller with a name of its own: GROUP is the API group of its \
             policies. Add a missing Gateway or GatewayClass, or set `--assume-class CLASS=CONTROLLER`"
        }
        "DelegationNotFollowed" => {
            ". `entail lint` says why. `entail status` lists the policies: merge them by hand, or ask the controller"
        }
        "NoProfile" | "FilterUnknown" => ". To evaluate it, write a PolicyProfile",
        "ReferenceNotChecked" => {
            ". Add the object to the manifests, or permit the server to read its kind"
        }
        "PolicyUnreadable" => ". `entail lint` says what cannot be read",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(kinds: &[(&str, u64)]) -> v1::GetServerStatusResponse {
        v1::GetServerStatusResponse {
            kinds: kinds
                .iter()
                .map(|(kind, policies)| v1::KindStatus {
                    kind: (*kind).to_owned(),
                    policies: *policies,
                    ..v1::KindStatus::default()
                })
                .collect(),
            ..v1::GetServerStatusResponse::default()
        }
    }

    /// A session with these selected kinds and this status.
    fn session(kinds: &[&str], status: v1::GetServerStatusResponse) -> Session {
        let folder = tempfile::tempdir().unwrap();
        let inputs = crate::app::Inputs {
            manifests: vec![folder.path().to_owned()],
            ..crate::app::Inputs::default()
        };
        Session {
            backend: Box::new(crate::app::load(&inputs).unwrap().local),
            status,
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            is_partial: false,
            lacking: Vec::new(),
        }
    }

    fn told(states: &[v1::KindState]) -> Vec<(&str, State, &str)> {
        let told = states.iter();
        told.map(|state| (&*state.kind, state.state(), &*state.reason))
            .collect()
    }

    #[test]
    fn kinds_that_all_answers_depend_on_are_reported() {
        const ROUTES: &str = "HTTPRoute.gateway.networking.k8s.io";
        let session = session(&["A.x"], status(&[("A.x", 0), ("B.x", 0)]));
        let reported = [ROUTES, "B.x"].map(|kind| StateReason::Forbidden.kind_state(kind.into()));
        let states = session.incomplete(&reported);
        assert_eq!(told(&states), [(ROUTES, State::Forbidden, "Forbidden")]);
        assert_eq!(session.exit(&states), ExitStatus::Incomplete);
    }

    #[test]
    fn a_kind_whose_profile_could_not_be_read_is_not_one_without_a_profile() {
        const PROFILES: &str = "PolicyProfile.entail.dev";
        let session = session(&["A.x"], status(&[]));
        let unread = StateReason::NotRead.kind_state(PROFILES.to_owned());
        let states = session.incomplete(&[unread]);
        assert_eq!(
            told(&states),
            [
                ("A.x", State::Unknown, "NotRead"),
                (PROFILES, State::Unknown, "NotRead")
            ]
        );
        assert!(states[0].message.contains(PROFILES), "{states:?}");
        let states = session.incomplete(&[]);
        assert_eq!(told(&states), [("A.x", State::Unknown, "NoProfile")]);
    }

    #[test]
    fn why_a_kind_could_not_be_read_is_told() {
        let mut status = status(&[("A.x", 0)]);
        status.kinds[0].state = State::Unknown.into();
        status.problems.push(v1::Problem {
            location: "A.x".to_owned(),
            message: "no route to host".to_owned(),
            code: String::new(),
        });
        let session = session(&["A.x"], status);
        let reported = [StateReason::NotRead.kind_state("A.x".to_owned())];
        for reported in [&reported[..], &[]] {
            let states = session.incomplete(reported);
            assert_eq!(told(&states), [("A.x", State::Unknown, "NotRead")]);
            assert!(
                states[0].message.ends_with(": no route to host"),
                "{states:?}"
            );
        }
    }

    #[test]
    fn what_helps_stands_once() {
        let state = |kind: &str, reason: &str| v1::KindState {
            kind: kind.to_owned(),
            reason: reason.to_owned(),
            message: "m".to_owned(),
            ..v1::KindState::default()
        };
        let states = [
            state("A.x", "FilterUnknown"),
            state("B.x", "InternalError"),
            state("C.x", "NoProfile"),
        ];
        let lines = incomplete_lines(&states, Style::new(false));
        assert_eq!(lines.len(), 3, "{lines:?}");
        let last = lines.last().map(String::as_str);
        assert!(
            last.is_some_and(|line| line.ends_with(": m. To evaluate it, write a PolicyProfile"))
        );
        assert!(
            !lines
                .iter()
                .take(2)
                .any(|line| line.contains("PolicyProfile")),
            "{lines:?}"
        );
    }

    #[test]
    fn kinds_may_be_given_without_group() {
        let status = status(&[("A.x", 0), ("A.y", 2), ("B.x", 0), ("C.x", 1), ("C.y", 1)]);
        assert_eq!(resolve_kind(&status, "a").unwrap(), "A.y");
        assert_eq!(resolve_kind(&status, "B").unwrap(), "B.x");
        assert_eq!(resolve_kind(&status, "a.X").unwrap(), "A.x");
        assert_eq!(resolve_kind(&status, "D.z").unwrap(), "D.z");
        assert!(resolve_kind(&status, "c").is_err());
        assert!(resolve_kind(&status, "").is_err());
    }
}
