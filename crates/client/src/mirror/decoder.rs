//! From the messages of a stream to copies; no connection is needed for it.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use super::EffectivePolicies;
use super::path_map::{PathMap, PathMapDelta, PathSelector};
use crate::v1;

/// What makes of an answer what look-ups return.
pub(super) type CompileFn<T> = Box<dyn Fn(&EffectivePolicies) -> T + Send + Sync>;

/// Follows a stream.
pub(super) struct StreamDecoder<T> {
    compile: CompileFn<T>,
    scope: Arc<PathSelector>,
    copy: Arc<PathMap<T>>,
    /// The answers of the stream, by number.
    numbered: HashMap<u32, Arc<T>>,
    /// Answers by etag: what another stream tells again is not made again.
    by_etag: HashMap<String, Weak<T>>,
    /// What was told since the last complete update.
    difference: PathMapDelta<T>,
    /// Whether what was told before is void.
    reset: bool,
}

/// A stream that breaks its own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server points to answer {number}, which it has not told")]
pub(super) struct ProtocolError {
    number: u32,
}

impl<T> StreamDecoder<T> {
    pub fn new(scope: PathSelector, compile: CompileFn<T>) -> Self {
        let scope = Arc::new(scope);
        Self {
            compile,
            copy: Arc::new(PathMap::empty(Arc::clone(&scope))),
            scope,
            numbered: HashMap::new(),
            by_etag: HashMap::new(),
            difference: PathMapDelta::default(),
            reset: false,
        }
    }

    /// Begins with a new stream, which resumes or resets.
    pub fn begin(&mut self) {
        self.numbered.clear();
        self.difference = PathMapDelta::default();
        self.reset = false;
    }

    /// Takes a message; returns the copy once an update is complete.
    ///
    /// # Errors
    /// The message makes no sense: begin anew, without a token.
    pub fn take(
        &mut self,
        message: &mut v1::WatchEffectivePoliciesResponse,
    ) -> Result<Option<Arc<PathMap<T>>>, ProtocolError> {
        if message.reset {
            self.begin();
            self.reset = true;
        }
        for body in message.bodies.drain(..) {
            let number = body.number;
            let made = self.make(body);
            self.numbered.insert(number, made);
        }
        for path in message.paths.drain(..) {
            let number = path.body;
            let answer = self.numbered.get(&number).ok_or(ProtocolError { number })?;
            let entry = (path.rule_index, Arc::clone(answer));
            self.difference.changed.insert(path.path.into(), entry);
        }
        self.difference.removed.extend(message.removed.drain(..));
        if !message.complete {
            return Ok(None);
        }
        self.difference.client_roots = message
            .clients_apart
            .take()
            .map(|client_roots| client_roots.roots);
        let difference = std::mem::take(&mut self.difference);
        let before = if std::mem::take(&mut self.reset) {
            &PathMap::empty(Arc::clone(&self.scope))
        } else {
            &self.copy
        };
        self.copy = Arc::new(before.with(difference));
        for number in message.forgotten.drain(..) {
            self.numbered.remove(&number);
        }
        if self.by_etag.len() > 2 * self.numbered.len() + 64 {
            self.by_etag.retain(|_, answer| answer.strong_count() > 0);
        }
        Ok(Some(Arc::clone(&self.copy)))
    }

    fn make(&mut self, body: v1::NumberedBody) -> Arc<T> {
        if let Some(known) = self.by_etag.get(&body.etag).and_then(Weak::upgrade) {
            return known;
        }
        let answer = EffectivePolicies {
            policies: body.policies,
            etag: body.etag,
        };
        let made = Arc::new((self.compile)(&answer));
        self.by_etag.insert(answer.etag, Arc::downgrade(&made));
        made
    }
}
