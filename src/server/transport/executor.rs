//! Where the replies of a connection are computed: look-ups in the task of the connection, everything else in tasks of
//! their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use hyper::rt::Executor;

/// Runs the requests of one connection.
///
/// A look-up whose message has arrived takes less time than to schedule a task, and its reply can leave together with
/// others. So it is tried at once, and gets a task only if it has to wait.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct RequestExecutor {
    /// Whether the next request is a look-up. HTTP/2 executes each request right after the call of the service.
    is_look_up: Arc<AtomicBool>,
}

impl RequestExecutor {
    /// Says of the request that is executed next whether it is a look-up.
    pub fn expect(&self, is_look_up: bool) {
        self.is_look_up.store(is_look_up, Ordering::Relaxed);
    }
}

impl<F> Executor<F> for RequestExecutor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, request: F) {
        if !self.is_look_up.swap(false, Ordering::Relaxed) {
            tokio::spawn(request);
            return;
        }
        let mut request = Box::pin(request);
        // A task polls it again before it waits, so nothing needs to wake it here.
        let mut context = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| request.as_mut().poll(&mut context)));
        // As in a task, a panic ends the request alone.
        if polled.is_ok_and(|polled| polled.is_pending()) {
            tokio::spawn(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn look_ups_are_tried_at_once_and_the_rest_has_tasks() {
        let executor = RequestExecutor::default();
        let done = Arc::new(AtomicUsize::new(0));
        let request = |waits: bool| {
            let done = Arc::clone(&done);
            async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let is_done = |number| done.load(Ordering::Relaxed) == number;
        executor.expect(true);
        executor.execute(request(false));
        assert!(is_done(1), "a look-up");
        // What is said holds for one request.
        executor.execute(request(false));
        assert!(is_done(1), "another request");
        executor.expect(true);
        executor.execute(request(true));
        assert!(is_done(1), "a look-up that waits");
        executor.expect(true);
        executor.execute(async { panic!("for the test") });
        while !is_done(3) {
            tokio::task::yield_now().await;
        }
    }
}
