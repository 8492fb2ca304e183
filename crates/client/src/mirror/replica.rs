//! From the messages of a stream to copies; no connection is needed for it.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use super::Answer;
use super::copy::{Copy, Difference, Scope};
use crate::v1;

/// What makes of an answer what look-ups return.
pub(super) type Compile<T> = Box<dyn Fn(&Answer) -> T + Send + Sync>;

/// Follows a stream.
pub(super) struct Replica<T> {
    compile: Compile<T>,
    scope: Arc<Scope>,
    copy: Arc<Copy<T>>,
    /// The answers of the stream, by number.
    numbered: HashMap<u32, Arc<T>>,
    /// Answers by etag: what another stream tells again is not made again.
    by_etag: HashMap<String, Weak<T>>,
    /// What was told since the last complete update.
    difference: Difference<T>,
    /// Whether what was told before is void.
    reset: bool,
}

/// A stream that breaks its own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server points to answer {number}, which it has not told")]
pub(super) struct Broken {
    number: u32,
}

impl<T> Replica<T> {
    pub fn new(scope: Scope, compile: Compile<T>) -> Self {
        let scope = Arc::new(scope);
        Self {
            compile,
            copy: Arc::new(Copy::empty(Arc::clone(&scope))),
            scope,
            numbered: HashMap::new(),
            by_etag: HashMap::new(),
            difference: Difference::default(),
            reset: false,
        }
    }

    /// Begins with a new stream, which resumes or resets.
    pub fn begin(&mut self) {
        self.numbered.clear();
        self.difference = Difference::default();
        self.reset = false;
    }

    /// Takes a message; returns the copy once an update is complete.
    ///
    /// # Errors
    /// The message makes no sense: begin anew, without a token.
    pub fn take(
        &mut self,
        message: &mut v1::WatchEffectivePoliciesResponse,
    ) -> Result<Option<Arc<Copy<T>>>, Broken> {
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
            let answer = self.numbered.get(&number).ok_or(Broken { number })?;
            let entry = (path.rule_index, Arc::clone(answer));
            self.difference.changed.insert(path.path.into(), entry);
        }
        self.difference.removed.extend(message.removed.drain(..));
        if !message.complete {
            return Ok(None);
        }
        self.difference.apart = message.clients_apart.take().map(|apart| apart.roots);
        let difference = std::mem::take(&mut self.difference);
        let before = if std::mem::take(&mut self.reset) {
            &Copy::empty(Arc::clone(&self.scope))
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
        let answer = Answer {
            policies: body.policies,
            etag: body.etag,
        };
        let made = Arc::new((self.compile)(&answer));
        self.by_etag.insert(answer.etag, Arc::downgrade(&made));
        made
    }
}
