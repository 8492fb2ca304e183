//! The waker of a future that is woken while it is polled.
//!
//! HTTP/2 wakes the task of its connection when a reply is ready, also while this task computes the reply. A runtime polls
//! such a task again after all others, and wakes another thread that may take it. Here the future is polled again at once.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Bit: the future is being polled. Without this bit, a wake goes to its task.
const POLLED: u8 = 1;
/// Bit: the future was woken since its last poll began.
const WOKEN: u8 = 2;

/// Polls a future, once more if it was woken meanwhile.
#[derive(Debug)]
pub(super) struct TurnWaker {
    waker: Waker,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    /// The waker of the task that polled the future last.
    task: Mutex<Waker>,
}

impl TurnWaker {
    pub fn new() -> Self {
        let shared = Arc::new(Shared {
            state: AtomicU8::new(0),
            task: Mutex::new(Waker::noop().clone()),
        });
        Self {
            waker: Waker::from(Arc::clone(&shared)),
            shared,
        }
    }

    /// Polls a future in the turn of its task. If the future was woken meanwhile and `may_repeat` returns true, polls it once
    /// more. If it is woken again, the task has another turn later.
    pub fn poll<T>(
        &self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
        may_repeat: impl FnOnce() -> bool,
    ) -> Poll<T> {
        self.shared.task().clone_from(context.waker());
        let (mut polled, mut is_woken) = self.poll_once(&mut poll);
        if is_woken && may_repeat() {
            (polled, is_woken) = self.poll_once(&mut poll);
        }
        if is_woken {
            context.waker().wake_by_ref();
        }
        polled
    }

    /// Polls a future. Also returns whether it has to be polled again.
    fn poll_once<T>(&self, poll: &mut impl FnMut(&mut Context<'_>) -> Poll<T>) -> (Poll<T>, bool) {
        self.shared.state.swap(POLLED, Ordering::AcqRel);
        let polled = poll(&mut Context::from_waker(&self.waker));
        let is_woken = self.shared.state.swap(0, Ordering::AcqRel) & WOKEN != 0;
        let is_pending = polled.is_pending();
        (polled, is_woken && is_pending)
    }
}

impl Shared {
    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Also where the bit is set already, what was done before this happens before the next poll.
        let before = self.state.fetch_or(WOKEN, Ordering::AcqRel);
        if before & POLLED == 0 {
            self.task().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often a task was woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future that is woken in each of its first polls. Returns how often it was polled, how often its task was
    /// woken, and a waker of it.
    fn polled(woken: usize, may_repeat: bool) -> (usize, usize, Waker, Arc<Task>) {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let (turn, mut polls, mut kept) = (TurnWaker::new(), 0, None);
        let poll = |context: &mut Context<'_>| {
            polls += 1;
            kept = Some(context.waker().clone());
            if polls <= woken {
                context.waker().wake_by_ref();
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        };
        let pending = turn.poll(&mut Context::from_waker(&waker), poll, || may_repeat);
        assert!(pending.is_pending());
        (polls, task.0.load(Ordering::Relaxed), kept.unwrap(), task)
    }

    #[test]
    fn a_future_that_was_woken_is_polled_again_in_the_same_turn() {
        for (woken, may_repeat, expected) in [
            (0, true, (1, 0)),
            (1, true, (2, 0)),
            (2, true, (2, 1)),
            (1, false, (1, 1)),
        ] {
            let (polls, wakes, waker, task) = polled(woken, may_repeat);
            assert_eq!((polls, wakes), expected, "{woken} {may_repeat}");
            // After its turn, who wakes the future wakes its task.
            waker.wake();
            assert_eq!(task.0.load(Ordering::Relaxed), wakes + 1);
        }
    }

    #[test]
    fn the_task_that_polled_last_is_woken() {
        let (turn, mut kept) = (TurnWaker::new(), None);
        let tasks = [(); 2].map(|()| Arc::new(Task::default()));
        for task in &tasks {
            let waker = Waker::from(Arc::clone(task));
            let mut context = Context::from_waker(&waker);
            let poll = |context: &mut Context<'_>| {
                kept.get_or_insert_with(|| context.waker().clone());
                Poll::<()>::Pending
            };
            assert!(turn.poll(&mut context, poll, || true).is_pending());
        }
        kept.unwrap().wake_by_ref();
        let woken = tasks.map(|task| task.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
    }

    #[test]
    fn a_future_that_is_done_is_not_polled_again() {
        let mut polls = 0;
        let poll = |context: &mut Context<'_>| {
            polls += 1;
            context.waker().wake_by_ref();
            Poll::Ready(polls)
        };
        let mut context = Context::from_waker(Waker::noop());
        let done = TurnWaker::new().poll(&mut context, poll, || true);
        assert_eq!(done, Poll::Ready(1));
    }
}
