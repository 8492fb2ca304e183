//! Turns of the connections that have not called lately. Thousands of them can wake at once, for example because one
//! caller closes them all, and those that call must not wait until each has run.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::sync::Semaphore;

/// Number of quiet connections that run before all other tasks may run.
const TURNS: usize = 8;

/// The turns of all quiet connections of a table.
#[derive(Debug)]
pub(in crate::server) struct QuietTurns {
    left: Semaphore,
    /// Whether there is a task that adds new turns.
    has_task: AtomicBool,
}

/// The turn that a quiet connection waits for.
#[derive(Default)]
pub(in crate::server) struct QuietTurn(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Default for QuietTurns {
    fn default() -> Self {
        Self {
            left: Semaphore::new(TURNS),
            has_task: AtomicBool::new(false),
        }
    }
}

impl QuietTurns {
    /// Waits for a turn, in the order of the calls.
    async fn take(self: Arc<Self>) {
        // It is never closed.
        if let Ok(turn) = self.left.acquire().await {
            turn.forget();
        }
        self.refill();
    }

    /// Makes sure that a task adds new turns.
    fn refill(self: &Arc<Self>) {
        if self.has_task.swap(true, Ordering::SeqCst) {
            return;
        }
        let turns = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                yield_turn().await;
                if turns.add() {
                    continue;
                }
                turns.has_task.swap(false, Ordering::SeqCst);
                // If one was taken meanwhile, it found a task.
                if turns.is_whole() || turns.has_task.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
        });
    }

    fn is_whole(&self) -> bool {
        self.left.available_permits() >= TURNS
    }

    /// Replaces the turns that were taken. Returns whether there were any.
    fn add(&self) -> bool {
        let taken = TURNS.saturating_sub(self.left.available_permits());
        self.left.add_permits(taken);
        taken > 0
    }
}

impl QuietTurn {
    /// Ready when the connection may run once.
    pub fn poll(&mut self, turns: &Arc<QuietTurns>, context: &mut Context<'_>) -> Poll<()> {
        let waiting = self
            .0
            .get_or_insert_with(|| Box::pin(Arc::clone(turns).take()));
        let polled = waiting.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

/// Lets the other tasks run once that are ready. [`tokio::task::yield_now`] would wait until the worker has nothing to
/// do, or for sixty tasks.
pub(in crate::server) async fn yield_turn() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn others_run_before_all_quiet_connections_have() {
        let (turns, order) = (
            Arc::<QuietTurns>::default(),
            Arc::new(Mutex::new(Vec::new())),
        );
        for round in 1..=2 {
            for _ in 0..1_000 {
                let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
                tokio::spawn(async move {
                    let mut turn = QuietTurn::default();
                    poll_fn(|context| turn.poll(&turns, context)).await;
                    order.lock().unwrap().push("quiet");
                });
            }
            let of_other = Arc::clone(&order);
            let other = tokio::spawn(async move { of_other.lock().unwrap().push("other") });
            other.await.unwrap();
            let of_other = order.lock().unwrap().iter().position(|of| *of == "other");
            assert!(of_other.unwrap() <= 2 * TURNS, "{round}: {of_other:?}");
            while order.lock().unwrap().len() < 1_001 {
                yield_now().await;
            }
            order.lock().unwrap().clear();
            // Whoever wakes alone finds a turn.
            while !turns.is_whole() {
                yield_now().await;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_turn_is_lost_between_threads() {
        let turns = Arc::<QuietTurns>::default();
        let tasks = (0..8).map(|_| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                let mut turn = QuietTurn::default();
                for _ in 0..5_000 {
                    poll_fn(|context| turn.poll(&turns, context)).await;
                    yield_now().await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        while !turns.is_whole() {
            yield_now().await;
        }
    }
}
