//! Turns of tasks that may wake by the thousand, such as connections that have not called lately, because one caller
//! closes them all. Those of other callers must not wait until each has run.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Number of tasks that run before all others may run.
const TURNS: usize = 8;
/// A task that waits runs at least so often, however long all others take: a quarter of a core for tasks of 50 us.
const LONGEST_BETWEEN: Duration = Duration::from_micros(200);

/// The turns of a group of tasks.
#[derive(Debug)]
pub(in crate::server) struct Turns {
    left: Semaphore,
    waiting: AtomicUsize,
    /// Whether there is a task that adds new turns.
    has_task: AtomicBool,
}

/// A member of a group that may wait for its turn.
pub(in crate::server) struct Turn {
    turns: Arc<Turns>,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Counts a task that waits.
struct Waiting<'t>(&'t Turns);

impl Default for Turns {
    fn default() -> Self {
        Self {
            left: Semaphore::new(TURNS),
            waiting: AtomicUsize::new(0),
            has_task: AtomicBool::new(false),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    /// Waits for a turn, in the order of the calls.
    async fn take(self: Arc<Self>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(&self);
        // It is never closed.
        if let Ok(turn) = self.left.acquire().await {
            turn.forget();
        }
        drop(waiting);
        self.refill();
    }

    /// Makes sure that a task adds new turns.
    fn refill(self: &Arc<Self>) {
        if self.has_task.swap(true, Ordering::SeqCst) {
            return;
        }
        let turns = Arc::clone(self);
        tokio::spawn(async move {
            let mut last = Instant::now();
            loop {
                yield_turn().await;
                let now = Instant::now();
                if turns.add(now.saturating_duration_since(last)) {
                    last = now;
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

    /// Replaces the turns that were taken, and adds more for those that wait if the last ones were added long ago. Returns
    /// whether there were any.
    fn add(&self, since_last: Duration) -> bool {
        let due = usize::try_from(since_last.as_micros() / LONGEST_BETWEEN.as_micros());
        let due = due.unwrap_or(usize::MAX);
        let due = due.min(self.waiting.load(Ordering::Relaxed)).max(TURNS);
        let missing = due.saturating_sub(self.left.available_permits());
        self.left.add_permits(missing);
        missing > 0
    }
}

impl Turn {
    /// A member of a group.
    pub fn of(turns: Arc<Turns>) -> Self {
        Self {
            turns,
            waiting: None,
        }
    }

    /// Ready when the task may run once.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let turns = &self.turns;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(Arc::clone(turns).take()));
        let polled = waiting.as_mut().poll(context);
        if polled.is_ready() {
            self.waiting = None;
        }
        polled
    }

    /// Gives up the place among those that wait.
    pub fn leave(&mut self) {
        self.waiting = None;
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
    async fn others_run_before_all_of_a_group_have() {
        let (turns, order) = (Arc::<Turns>::default(), Arc::new(Mutex::new(Vec::new())));
        for round in 1..=2 {
            for _ in 0..1_000 {
                let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
                tokio::spawn(async move {
                    let mut turn = Turn::of(turns);
                    poll_fn(|context| turn.poll(context)).await;
                    order.lock().unwrap().push("quiet");
                });
            }
            let of_other = Arc::clone(&order);
            let other = tokio::spawn(async move { of_other.lock().unwrap().push("other") });
            other.await.unwrap();
            let of_other = order.lock().unwrap().iter().position(|of| *of == "other");
            // On a busy machine, the time between two rounds permits more than `TURNS`.
            assert!(of_other.unwrap() <= 500, "{round}: {of_other:?}");
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

    #[tokio::test]
    async fn those_that_wait_run_so_often_however_long_others_take() {
        let turns = Arc::<Turns>::default();
        let mut members: Vec<Turn> = (0..1_000).map(|_| Turn::of(Arc::clone(&turns))).collect();
        let ready = async |members: &mut Vec<Turn>| {
            let before = members.len();
            poll_fn(|context| {
                members.retain_mut(|member| member.poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            before - members.len()
        };
        assert_eq!(ready(&mut members).await, TURNS);
        assert!(turns.add(Duration::ZERO));
        assert_eq!(ready(&mut members).await, TURNS);
        assert!(turns.add(30 * LONGEST_BETWEEN));
        assert_eq!(ready(&mut members).await, 30);
        // No more than those that wait.
        members.truncate(20);
        assert!(turns.add(30 * LONGEST_BETWEEN));
        assert_eq!(ready(&mut members).await, 20);
        members.extend((0..100).map(|_| Turn::of(Arc::clone(&turns))));
        assert_eq!(ready(&mut members).await, 0);
        for member in &mut members {
            member.leave();
        }
        assert_eq!(turns.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_turn_is_lost_between_threads() {
        let turns = Arc::<Turns>::default();
        let tasks = (0..8).map(|_| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                let mut turn = Turn::of(turns);
                for _ in 0..5_000 {
                    poll_fn(|context| turn.poll(context)).await;
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
