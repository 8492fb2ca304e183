//! Splits an update of a stream into messages of bounded size.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use prost::Message;

use super::path_list::PathList;
use crate::api::{EncodedWatchEffectivePoliciesResponse, field, field_header, v1};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::GroupKind;

/// Size after which a message ends, in bytes. A larger answer is one message.
const MESSAGE_BYTES: usize = 512 * 1024;
/// Field number of `bodies` in `WatchEffectivePoliciesResponse`.
const BODIES: u32 = 2;
/// Field number of `paths`.
const PATHS: u32 = 3;
/// Field number of `removed_paths`.
const REMOVED: u32 = 4;

/// The messages that bring a stream up to date with a snapshot. An update holds the encoded answers
/// to send and no reference to the snapshot, so that a slow reader does not keep old snapshots in
/// memory.
#[derive(Debug)]
pub struct StreamUpdate {
    path_list: Arc<PathList>,
    /// Whether the caller drops all paths first.
    pub(super) reset: bool,
    /// The paths that are new or have another answer: index in `path_list` and number of the answer.
    pub(super) paths: Vec<(u32, u32)>,
    /// Number of `paths` in earlier messages.
    sent: usize,
    /// The answers that the caller does not have, by number.
    pub(super) new_answers: HashMap<u32, NewAnswer>,
    /// The names of removed paths.
    pub(super) removed_paths: Vec<Box<str>>,
    /// The numbers of answers that no path has any longer.
    pub(super) removed_bodies: Vec<u32>,
    /// The mesh roots with policies for their own clients; `None` if they have not changed.
    pub(super) client_roots: Option<Vec<String>>,
    /// The fields of the last message only.
    tail: v1::WatchEffectivePoliciesResponse,
    is_done: bool,
}

/// An answer that the caller does not have.
#[derive(Debug)]
pub(super) struct NewAnswer {
    /// The encoded fields `policies`.
    policies: Vec<Bytes>,
    etag: String,
}

impl NewAnswer {
    pub fn of(answer: &PathAnswer, kinds: &[GroupKind]) -> Self {
        Self {
            policies: answer.policies(kinds).cloned().collect(),
            etag: answer.etag_of(kinds),
        }
    }
}

impl StreamUpdate {
    pub(super) fn of(path_list: Arc<PathList>) -> Self {
        Self {
            path_list,
            reset: false,
            paths: Vec::new(),
            sent: 0,
            new_answers: HashMap::new(),
            removed_paths: Vec::new(),
            removed_bodies: Vec::new(),
            client_roots: None,
            tail: v1::WatchEffectivePoliciesResponse::default(),
            is_done: false,
        }
    }

    /// Whether no path changes.
    pub(super) fn is_empty(&self) -> bool {
        !self.reset && self.paths.is_empty() && self.removed_paths.is_empty()
    }

    /// Sets the fields of the last message: the version that the caller then has, and the token to
    /// resume from it.
    pub(super) fn set_tail(
        &mut self,
        resume_token: String,
        snapshot: &Snapshot,
        kinds: &[v1::KindState],
    ) {
        let version = snapshot.version();
        self.tail = v1::WatchEffectivePoliciesResponse {
            complete: true,
            resume_token,
            version: Some(version.message()),
            synced_at: Some(version.synced_at),
            kinds: kinds.to_vec(),
            ..Default::default()
        };
    }

    /// Returns the next message; `None` after the last.
    pub fn next_message(&mut self) -> Option<EncodedWatchEffectivePoliciesResponse> {
        if self.is_done {
            return None;
        }
        let mut message = Vec::new();
        if std::mem::take(&mut self.reset) {
            let reset = v1::WatchEffectivePoliciesResponse {
                reset: true,
                ..Default::default()
            };
            message = reset.encode_to_vec();
        }
        self.add_paths(&mut message);
        self.add_removed(&mut message);
        if self.sent == self.paths.len() && self.removed_paths.is_empty() {
            let mut tail = std::mem::take(&mut self.tail);
            tail.removed_bodies = std::mem::take(&mut self.removed_bodies);
            let client_roots = self.client_roots.take();
            tail.client_roots = client_roots.map(|roots| v1::ClientRoots { roots });
            message.extend(tail.encode_to_vec());
            self.is_done = true;
        }
        Some(EncodedWatchEffectivePoliciesResponse {
            message: message.into(),
        })
    }

    fn add_paths(&mut self, message: &mut Vec<u8>) {
        for &(index, number) in self.paths.iter().skip(self.sent) {
            if is_full(message) {
                return;
            }
            self.sent += 1;
            if let Some(answer) = self.new_answers.remove(&number) {
                answer.write(number, message);
            }
            let Some(entry) = self.path_list.entries().get(index as usize) else {
                continue;
            };
            let path = v1::WatchedPath {
                path: entry.name.to_string(),
                body: number,
                rule_indexes: entry.rule_indexes.to_vec(),
            };
            message.extend(field_header(PATHS, path.encoded_len()));
            // Encoding into a vector cannot fail.
            let _ = path.encode(message);
        }
    }

    fn add_removed(&mut self, message: &mut Vec<u8>) {
        while !is_full(message)
            && let Some(name) = self.removed_paths.pop()
        {
            message.extend(field(REMOVED, name.as_bytes()));
        }
    }
}

/// Whether a message has reached its size.
fn is_full(message: &[u8]) -> bool {
    message.len() > MESSAGE_BYTES
}

impl NewAnswer {
    /// Appends the field `bodies`.
    fn write(&self, number: u32, message: &mut Vec<u8>) {
        let rest = v1::NumberedBody {
            policies: Vec::new(),
            number,
            etag: self.etag.clone(),
        };
        let policies = self.policies.iter().map(Bytes::len).sum::<usize>();
        message.extend(field_header(BODIES, policies + rest.encoded_len()));
        for policy in &self.policies {
            message.extend_from_slice(policy);
        }
        let _ = rest.encode(message);
    }
}
