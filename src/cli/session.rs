//! A command's questions: who answers, which kinds it is about, and what is not known of them.

use super::render::text::{Style, printable, wrapped};
use super::{CliError, ExitStatus, QueryArgs, connect};
use crate::api::v1;
use crate::insight::{QueryBackend, QueryError};
use v1::kind_state::State;

/// Who answers, and what was asked.
pub(super) struct Session {
    /// Who answers.
    pub(super) ask: Box<dyn QueryBackend>,
    /// What is known at the start.
    pub(super) status: v1::GetServerStatusResponse,
    /// Only these kinds, as `Kind.group`; all if empty.
    pub(super) kinds: Vec<String>,
    /// Some input could not be read: the answers hold for the rest.
    pub(super) is_partial: bool,
}

impl Session {
    /// Reads the manifests or reaches the server.
    pub(super) fn open(args: &QueryArgs) -> Result<Self, CliError> {
        let connect::Connection {
            mut ask,
            incomplete,
        } = connect::connect(&args.source)?;
        let status = ask.server_status()?;
        let mut kinds = Vec::with_capacity(args.kinds.len());
        for text in &args.kinds {
            kinds.push(resolve_kind(&status, text)?);
        }
        Ok(Self {
            ask,
            status,
            kinds,
            is_partial: incomplete,
        })
    }

    /// The kinds that were asked for and of which not everything is known: those that a reply
    /// names and those that nobody knows.
    pub(super) fn incomplete(&self, told: &[v1::KindState]) -> Vec<v1::KindState> {
        let is_wanted = |kind: &str| self.kinds.is_empty() || self.kinds.iter().any(|k| k == kind);
        let mut states: Vec<v1::KindState> = told
            .iter()
            .filter(|state| is_wanted(&state.kind) && state.state() != State::Complete)
            .cloned()
            .collect();
        for kind in &self.kinds {
            let is_known = self.status.kinds.iter().any(|known| known.kind == *kind);
            if !is_known && !states.iter().any(|state| state.kind == *kind) {
                states.push(v1::KindState {
                    kind: kind.clone(),
                    state: State::Unknown.into(),
                });
            }
        }
        states.sort_by(|a, b| a.kind.cmp(&b.kind));
        states.dedup_by(|a, b| a.kind == b.kind);
        states
    }

    /// The exit of an answer: whether all that it rests on is known.
    pub(super) fn exit(&self, states: &[v1::KindState]) -> ExitStatus {
        if states.is_empty() && !self.is_partial {
            ExitStatus::Success
        } else {
            ExitStatus::Incomplete
        }
    }

    /// Why a question has no answer.
    pub(super) fn failure(&self, error: QueryError) -> CliError {
        match CliError::from(error) {
            CliError::NotFound(message) => self.not_found(message),
            other => other,
        }
    }

    /// That nothing has a name. While some input could not be read, nobody knows that.
    pub(super) fn not_found(&self, message: String) -> CliError {
        if !self.is_partial {
            return CliError::NotFound(message);
        }
        CliError::Unreadable(
            "what was asked for is not in the input that could be read: correct the files that \
             the warnings name, or give `--allow-partial`"
                .to_owned(),
        )
    }

    /// Fails if a reply is of another snapshot than the first: parts of two never make a whole.
    pub(super) fn check_version(&self, version: Option<&v1::Version>) -> Result<(), CliError> {
        if version == self.status.version.as_ref() {
            return Ok(());
        }
        Err(CliError::Unreadable(
            "the server has published a new snapshot since the answer began: ask again, or ask \
             for less"
                .to_owned(),
        ))
    }
}

/// The full name of a kind that people write without its group.
fn resolve_kind(status: &v1::GetServerStatusResponse, text: &str) -> Result<String, CliError> {
    let known = || status.kinds.iter().map(|kind| kind.kind.as_str());
    if text.is_empty() {
        return Err(CliError::Usage(
            "`--kind` is empty: name a kind as `Kind.group`".to_owned(),
        ));
    }
    if let Some(kind) = known().find(|kind| kind.eq_ignore_ascii_case(text)) {
        return Ok(kind.to_owned());
    }
    let short = |kind: &str| {
        kind.split_once('.')
            .map_or(kind.to_owned(), |(k, _)| k.to_owned())
    };
    let same: Vec<&str> = known()
        .filter(|kind| short(kind).eq_ignore_ascii_case(text))
        .collect();
    match same.as_slice() {
        [] => Ok(text.to_owned()),
        [kind] => Ok((*kind).to_owned()),
        several => {
            // Built-in profiles stand for many kinds; those with policies are the ones meant.
            let policies = |kind: &str| {
                let found = status.kinds.iter().find(|known| known.kind == kind);
                found.is_some_and(|known| known.policies > 0)
            };
            let meant: Vec<&str> = several.iter().copied().filter(|k| policies(k)).collect();
            match meant.as_slice() {
                [kind] => Ok((*kind).to_owned()),
                _ => Err(CliError::Usage(format!(
                    "`{text}` stands for several kinds: name one of {}",
                    several.join(", ")
                ))),
            }
        }
    }
}

/// Lines that tell what is not known, for people.
pub(super) fn incomplete_lines(states: &[v1::KindState], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for state in states {
        let text = format!("INCOMPLETE: {}", incomplete_line(state));
        lines.extend(
            wrapped(&printable(&text), 0)
                .iter()
                .map(|line| style.alert(line)),
        );
    }
    lines
}

/// What a kind's state means.
pub(super) fn incomplete_line(state: &v1::KindState) -> String {
    let meaning = match state.state() {
        State::Unknown => "there is no profile for it; unknown is not the same as none",
        State::Forbidden => "the server may not read it; what is not seen is not the same as none",
        State::Stale => "its source does not answer at present; this is the last good state",
        State::Complete | State::Unspecified => "the server does not say how much it knows of it",
    };
    let word = state.state().as_str_name();
    format!("{} is {word}: {meaning}", state.kind)
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

    #[test]
    fn kinds_may_be_written_without_group() {
        let status = status(&[("A.x", 0), ("A.y", 2), ("B.x", 0), ("C.x", 1), ("C.y", 1)]);
        assert_eq!(resolve_kind(&status, "a").unwrap(), "A.y");
        assert_eq!(resolve_kind(&status, "B").unwrap(), "B.x");
        assert_eq!(resolve_kind(&status, "a.X").unwrap(), "A.x");
        assert_eq!(resolve_kind(&status, "D.z").unwrap(), "D.z");
        assert!(resolve_kind(&status, "c").is_err());
        assert!(resolve_kind(&status, "").is_err());
    }
}
