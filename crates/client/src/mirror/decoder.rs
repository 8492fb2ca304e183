//! Decodes the messages of a watch stream into a [`PathMap`]. It does no I/O.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use super::EffectivePolicies;
use super::path_map::{PathMap, PathMapDelta, PathSelector};
use crate::v1;

/// Converts an answer to the value that look-ups return.
pub(super) type CompileFn<T> = Box<dyn Fn(&EffectivePolicies) -> T + Send + Sync>;

/// State of a watch stream, and the copy that was built from it. The copy outlives the stream.
pub(super) struct StreamDecoder<T> {
    compile: CompileFn<T>,
    selector: Arc<PathSelector>,
    copy: Arc<PathMap<T>>,
    /// The answers of the stream, by number.
    numbered: HashMap<u32, Arc<T>>,
    /// Answers by etag: an answer that a later stream sends again is not compiled again.
    by_etag: HashMap<String, Weak<T>>,
    /// Changes since the last complete update.
    delta: PathMapDelta<T>,
    /// Whether the update in progress replaces the copy.
    reset: bool,
}

/// A message refers to an answer that the stream has not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protocol error: the server refers to unknown answer {number}")]
pub(super) struct ProtocolError {
    number: u32,
}

impl<T> StreamDecoder<T> {
    pub fn new(selector: PathSelector, compile: CompileFn<T>) -> Self {
        let selector = Arc::new(selector);
        Self {
            compile,
            copy: Arc::new(PathMap::empty(Arc::clone(&selector))),
            selector,
            numbered: HashMap::new(),
            by_etag: HashMap::new(),
            delta: PathMapDelta::default(),
            reset: false,
        }
    }

    /// Prepares for a new stream, which either resumes from the copy or resets it.
    pub fn start_stream(&mut self) {
        self.numbered.clear();
        self.delta = PathMapDelta::default();
        self.reset = false;
    }

    /// Decodes a message; returns the new copy if the message completes an update.
    ///
    /// # Errors
    /// Returns an error if the message is inconsistent: open a new stream without a resume token.
    pub fn decode(
        &mut self,
        message: &mut v1::WatchEffectivePoliciesResponse,
    ) -> Result<Option<Arc<PathMap<T>>>, ProtocolError> {
        if message.reset {
            self.start_stream();
            self.reset = true;
        }
        for body in message.bodies.drain(..) {
            let number = body.number;
            let answer = self.compile_once(body);
            self.numbered.insert(number, answer);
        }
        for path in message.paths.drain(..) {
            let number = path.body;
            let answer = self.numbered.get(&number).ok_or(ProtocolError { number })?;
            let entry = (path.rule_indexes.into(), Arc::clone(answer));
            self.delta.changed.insert(path.path.into(), entry);
        }
        self.delta
            .removed_paths
            .extend(message.removed_paths.drain(..));
        if !message.complete {
            return Ok(None);
        }
        self.delta.client_roots = message
            .client_roots
            .take()
            .map(|client_roots| client_roots.roots);
        let delta = std::mem::take(&mut self.delta);
        let previous = if std::mem::take(&mut self.reset) {
            &PathMap::empty(Arc::clone(&self.selector))
        } else {
            &self.copy
        };
        self.copy = Arc::new(previous.with(delta));
        for number in message.removed_bodies.drain(..) {
            self.numbered.remove(&number);
        }
        // Amortized: removes the dead entries when they may be half of all.
        if self.by_etag.len() > 2 * self.numbered.len() + 64 {
            self.by_etag.retain(|_, answer| answer.strong_count() > 0);
        }
        Ok(Some(Arc::clone(&self.copy)))
    }

    /// Compiles an answer unless one with the same etag is in use.
    fn compile_once(&mut self, body: v1::NumberedBody) -> Arc<T> {
        if let Some(compiled) = self.by_etag.get(&body.etag).and_then(Weak::upgrade) {
            return compiled;
        }
        let answer = EffectivePolicies {
            policies: body.policies,
            etag: body.etag,
        };
        let compiled = Arc::new((self.compile)(&answer));
        self.by_etag.insert(answer.etag, Arc::downgrade(&compiled));
        compiled
    }
}
