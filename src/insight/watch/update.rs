//! What a caller is told, in messages of a bounded size.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use prost::Message;

use crate::api::{EncodedWatchEffectivePoliciesResponse, field, field_header, v1};
use crate::snapshot::{PathAnswer, PathList, Snapshot};
use entail_core::model::GroupKind;

/// Bytes after which a message ends; an answer larger than this is one message.
const MESSAGE_BYTES: usize = 512 * 1024;
/// Fields of the message.
const BODIES: u32 = 2;
const PATHS: u32 = 3;
const REMOVED: u32 = 4;

/// How what a caller holds differs from a snapshot. It holds the answers that are to be told and
/// nothing else of the snapshot: who reads slowly keeps no snapshot alive.
#[derive(Debug)]
pub struct StreamUpdate {
    rows: Arc<PathList>,
    pub(super) reset: bool,
    /// Rows that are new or have another answer, and its number.
    pub(super) paths: Vec<(u32, u32)>,
    /// How many of them are told.
    sent: usize,
    /// The answers that the caller does not hold, by number.
    pub(super) new_answers: HashMap<u32, NewAnswer>,
    pub(super) removed: Vec<Box<str>>,
    pub(super) forgotten: Vec<u32>,
    pub(super) client_roots: Option<Vec<String>>,
    /// The last fields of the last message.
    tail: v1::WatchEffectivePoliciesResponse,
    is_done: bool,
}

/// An answer that a caller does not hold.
#[derive(Debug)]
pub(super) struct NewAnswer {
    /// Fields `policies`.
    policies: Vec<Bytes>,
    etag: String,
}

impl NewAnswer {
    pub fn of(body: &PathAnswer, kinds: &[GroupKind]) -> Self {
        Self {
            policies: body.policies(kinds).cloned().collect(),
            etag: body.etag_of(kinds),
        }
    }
}

impl StreamUpdate {
    pub(super) fn of(rows: Arc<PathList>) -> Self {
        Self {
            rows,
            reset: false,
            paths: Vec::new(),
            sent: 0,
            new_answers: HashMap::new(),
            removed: Vec::new(),
            forgotten: Vec::new(),
            client_roots: None,
            tail: v1::WatchEffectivePoliciesResponse::default(),
            is_done: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.reset && self.paths.is_empty() && self.removed.is_empty()
    }

    /// Says what the update leads to.
    pub(super) fn end(
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

    /// The next message; `None` after the last.
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
        if self.sent == self.paths.len() && self.removed.is_empty() {
            let mut tail = std::mem::take(&mut self.tail);
            tail.forgotten = std::mem::take(&mut self.forgotten);
            let client_roots = self.client_roots.take();
            tail.clients_apart = client_roots.map(|roots| v1::ClientsApart { roots });
            message.extend(tail.encode_to_vec());
            self.is_done = true;
        }
        Some(EncodedWatchEffectivePoliciesResponse {
            message: message.into(),
        })
    }

    fn add_paths(&mut self, message: &mut Vec<u8>) {
        for &(row, number) in self.paths.iter().skip(self.sent) {
            if is_full(message) {
                return;
            }
            self.sent += 1;
            if let Some(fresh) = self.new_answers.remove(&number) {
                fresh.write(number, message);
            }
            let Some(row) = self.rows.rows().get(row as usize) else {
                continue;
            };
            let path = v1::WatchedPath {
                path: row.name.to_string(),
                body: number,
                rule_index: row.rule_index,
            };
            message.extend(field_header(PATHS, path.encoded_len()));
            // A vector takes all that is written to it.
            let _ = path.encode(message);
        }
    }

    fn add_removed(&mut self, message: &mut Vec<u8>) {
        while !is_full(message)
            && let Some(name) = self.removed.pop()
        {
            message.extend(field(REMOVED, name.as_bytes()));
        }
    }
}

/// Whether a message is as long as one should be.
fn is_full(message: &[u8]) -> bool {
    message.len() > MESSAGE_BYTES
}

impl NewAnswer {
    /// Writes field `bodies`.
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
