//! Splits an update of streams into messages of bounded size.
//!
//! An [`UpdatePlan`] says what changes between two positions. Streams that make the same step share
//! it, and encode a message only when they send it. A message that several streams are sending is
//! encoded once.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use prost::Message;

use super::ledger::{Cost, Holding};
use super::path_list::PathList;
use crate::api::{field, field_header, v1};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::GroupKind;

/// Size after which a message ends, in bytes. A larger answer is one message. A stream whose caller
/// does not read holds one message, so it is small.
const MESSAGE_BYTES: usize = 16 * 1024;
/// Maximum size of a piece of a message, in bytes. The transport holds a piece until the caller
/// reads, also after the stream has ended.
const PIECE_BYTES: usize = 32 * 1024;
/// Length of the prefix of a gRPC message: no compression, and the length.
const PREFIX_BYTES: usize = 5;
/// Field number of `bodies` in `WatchEffectivePoliciesResponse`.
const BODIES: u32 = 2;
/// Field number of `paths`.
const PATHS: u32 = 3;
/// Field number of `removed_paths`.
const REMOVED: u32 = 4;

/// What brings a stream from one position to the next. It holds the encoded answers to send and no
/// reference to the snapshot, so that a slow reader does not keep old snapshots in memory.
#[derive(Debug)]
pub(super) struct UpdatePlan {
    pub(super) path_list: Arc<PathList>,
    /// Whether the caller drops all paths first.
    pub(super) reset: bool,
    /// The paths that are new or have another answer: index in `path_list` and number of the answer.
    pub(super) paths: Vec<(u32, u32)>,
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
    /// The number of each new answer, by the index in `paths` of the first path that has it; sorted.
    first_uses: Vec<(usize, u32)>,
    /// The messages that streams are sending.
    messages: Mutex<HashMap<Cursor, Weak<WatchMessage>>>,
    holding: Holding,
}

/// An answer that the caller does not have.
#[derive(Debug)]
pub(super) struct NewAnswer {
    /// The encoded fields `policies`.
    policies: Vec<Bytes>,
    etag: String,
}

/// The messages of a plan that one stream has not sent.
#[derive(Clone, Debug)]
pub struct StreamUpdate {
    plan: Arc<UpdatePlan>,
    /// The next message; `None` after the last.
    next: Option<Cursor>,
}

/// Where a message begins: the numbers of paths and of removed paths in earlier messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Cursor {
    paths: usize,
    removed: usize,
}

/// An encoded message of a stream, as it is written to the connection.
#[derive(Debug)]
pub struct WatchMessage {
    /// The prefix of gRPC and the message, in pieces of bounded size.
    pieces: Vec<Bytes>,
    /// Where the next message begins; `None` after the last.
    next: Option<Cursor>,
}

impl NewAnswer {
    pub fn of(answer: &PathAnswer, kinds: &[GroupKind]) -> Self {
        Self {
            policies: answer.policies(kinds).collect(),
            etag: answer.etag_of(kinds),
        }
    }

    fn bytes(&self) -> usize {
        self.policies.iter().map(Bytes::len).sum()
    }

    /// Appends the field `bodies`.
    fn write(&self, number: u32, message: &mut Vec<u8>) {
        let rest = v1::NumberedBody {
            policies: Vec::new(),
            number,
            etag: self.etag.clone(),
        };
        message.extend(field_header(BODIES, self.bytes() + rest.encoded_len()));
        for policy in &self.policies {
            message.extend_from_slice(policy);
        }
        // Encoding into a vector cannot fail.
        let _ = rest.encode(message);
    }
}

impl UpdatePlan {
    pub(super) fn of(path_list: Arc<PathList>) -> Self {
        Self {
            path_list,
            reset: false,
            paths: Vec::new(),
            new_answers: HashMap::new(),
            removed_paths: Vec::new(),
            removed_bodies: Vec::new(),
            client_roots: None,
            tail: v1::WatchEffectivePoliciesResponse::default(),
            first_uses: Vec::new(),
            messages: Mutex::default(),
            holding: Holding::default(),
        }
    }

    /// Whether no path changes.
    pub(super) fn is_empty(&self) -> bool {
        !self.reset && self.paths.is_empty() && self.removed_paths.is_empty()
    }

    /// Completes the plan: sets the fields of the last message, which are the version that the
    /// caller then has and the token to resume from it.
    pub(super) fn complete(
        mut self,
        resume_token: String,
        snapshot: &Snapshot,
        kinds: &[v1::KindState],
    ) -> Self {
        let version = snapshot.version();
        let roots = self.client_roots.take();
        self.tail = v1::WatchEffectivePoliciesResponse {
            complete: true,
            resume_token,
            version: Some(version.message()),
            synced_at: Some(version.synced_at),
            kinds: kinds.to_vec(),
            removed_bodies: std::mem::take(&mut self.removed_bodies),
            client_roots: roots.map(|roots| v1::ClientRoots { roots }),
            ..Default::default()
        };
        let mut seen = HashSet::new();
        for (at, (_, number)) in self.paths.iter().enumerate() {
            if self.new_answers.contains_key(number) && seen.insert(*number) {
                self.first_uses.push((at, *number));
            }
        }
        let answers = self.new_answers.values().map(NewAnswer::bytes);
        let (sum, largest) = answers.fold((0, 0), |(sum, largest): (usize, usize), bytes| {
            (sum + bytes, largest.max(bytes))
        });
        let removed = self.removed_paths.iter().map(|name| name.len() + 16);
        self.holding = Holding::new(Cost {
            // A message is encoded in addition, while streams send it.
            bytes: sum
                + largest
                + MESSAGE_BYTES
                + 160 * self.new_answers.len()
                + 8 * self.paths.len()
                + removed.sum::<usize>()
                + self.tail.encoded_len(),
            paths: 0,
        });
        self
    }

    pub(super) fn holding(&self) -> &Holding {
        &self.holding
    }

    /// Returns the message that begins at a cursor. It is encoded if no stream is sending it.
    fn message(&self, at: Cursor) -> Arc<WatchMessage> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = messages.get(&at).and_then(Weak::upgrade) {
            return message;
        }
        let message = Arc::new(self.encode(at));
        messages.retain(|_, message| message.strong_count() > 0);
        messages.insert(at, Arc::downgrade(&message));
        message
    }

    fn encode(&self, at: Cursor) -> WatchMessage {
        let mut message = vec![0; PREFIX_BYTES];
        let mut next = at;
        if self.reset && at == Cursor::default() {
            let reset = v1::WatchEffectivePoliciesResponse {
                reset: true,
                ..Default::default()
            };
            message.extend(reset.encode_to_vec());
        }
        self.add_paths(&mut next, &mut message);
        for name in self.removed_paths.iter().skip(next.removed) {
            if is_full(&message) {
                break;
            }
            message.extend(field(REMOVED, name.as_bytes()));
            next.removed += 1;
        }
        let is_last = next.paths == self.paths.len() && next.removed == self.removed_paths.len();
        if is_last {
            message.extend(self.tail.encode_to_vec());
        }
        // Answers are limited to far less than 4 GiB.
        let length = u32::try_from(message.len() - PREFIX_BYTES).unwrap_or(u32::MAX);
        for (byte, value) in message.iter_mut().skip(1).zip(length.to_be_bytes()) {
            *byte = value;
        }
        let pieces = message.chunks(PIECE_BYTES);
        WatchMessage {
            // Copied one by one: a piece that is still to be written keeps no other piece in memory.
            pieces: pieces.map(Bytes::copy_from_slice).collect(),
            next: (!is_last).then_some(next),
        }
    }

    fn add_paths(&self, next: &mut Cursor, message: &mut Vec<u8>) {
        let first = self.first_uses.partition_point(|(at, _)| *at < next.paths);
        let mut first_uses = self.first_uses.iter().skip(first).peekable();
        for &(index, number) in self.paths.iter().skip(next.paths) {
            if is_full(message) {
                return;
            }
            if first_uses.next_if(|(at, _)| *at == next.paths).is_some()
                && let Some(answer) = self.new_answers.get(&number)
            {
                answer.write(number, message);
            }
            next.paths += 1;
            let Some(entry) = self.path_list.entries().get(index as usize) else {
                continue;
            };
            let path = v1::WatchedPath {
                path: entry.name.to_string(),
                body: number,
                rule_indexes: entry.rule_indexes.to_vec(),
            };
            message.extend(field_header(PATHS, path.encoded_len()));
            let _ = path.encode(message);
        }
    }
}

/// Whether a message has reached its size.
fn is_full(message: &[u8]) -> bool {
    message.len() > MESSAGE_BYTES
}

impl StreamUpdate {
    pub(super) fn of(plan: Arc<UpdatePlan>) -> Self {
        Self {
            plan,
            next: Some(Cursor::default()),
        }
    }

    /// Returns the next message; `None` after the last.
    pub fn next_message(&mut self) -> Option<Arc<WatchMessage>> {
        let message = self.plan.message(self.next?);
        self.next = message.next;
        Some(message)
    }

    pub(super) fn plan(&self) -> &UpdatePlan {
        &self.plan
    }
}

impl WatchMessage {
    /// The pieces of the frame, in order.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }
}
