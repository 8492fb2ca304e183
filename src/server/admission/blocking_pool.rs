//! A bounded pool for work that blocks a thread.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tonic::Status;

use crate::background;
use crate::insight::Budget;

/// Runs work on blocking threads. A limited number runs concurrently and a limited number waits;
/// more is rejected.
#[derive(Debug)]
pub(in crate::server) struct BlockingPool {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    timeout: Duration,
}

/// Ends a budget when it is dropped.
struct BudgetGuard(Arc<Budget>);

impl Drop for BudgetGuard {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl BlockingPool {
    /// Creates a pool that runs `concurrency` jobs and lets `queue` more wait. `timeout` includes
    /// the time in the queue.
    pub fn new(concurrency: usize, queue: usize, timeout: Duration) -> Self {
        let max_permits = Semaphore::MAX_PERMITS;
        Self {
            admitted: Arc::new(Semaphore::new(
                concurrency.saturating_add(queue).min(max_permits),
            )),
            running: Arc::new(Semaphore::new(concurrency.min(max_permits))),
            timeout,
        }
    }

    /// Runs a job that asks a budget before each step. The budget ends when this future does: after the reply, after the
    /// timeout, or when the caller is gone. So the job gives its permits back soon after its request.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub async fn run_within<T: Send + 'static>(
        &self,
        budget: Arc<Budget>,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let _ends_with_this_future = BudgetGuard(budget);
        self.run(work).await
    }

    /// Runs a job, within the span of the caller. A job that has started runs to its end and keeps
    /// its permits until then, even if the caller is gone: otherwise callers that give up could
    /// start any number of jobs.
    ///
    /// # Errors
    /// Returns the error of the job, RESOURCE_EXHAUSTED if the queue is full, DEADLINE_EXCEEDED
    /// after the timeout, and INTERNAL if the job panics.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let admitted = Arc::clone(&self.admitted)
            .try_acquire_owned()
            .map_err(|_| {
                Status::resource_exhausted(
                    "too many requests of this kind are waiting: try again later",
                )
            })?;
        let job = async {
            let running = Arc::clone(&self.running)
                .acquire_owned()
                .await
                .map_err(|_| Status::unavailable("the server is shutting down"))?;
            let span = tracing::Span::current();
            let job = background::spawn_blocking(move || {
                let _permits = (admitted, running);
                span.in_scope(work)
            });
            job.await.map_err(|error| {
                tracing::error!(%error, "the job of a request panicked");
                Status::internal("internal error: see the log of the server")
            })?
        };
        match tokio::time::timeout(self.timeout, job).await {
            Ok(result) => result,
            Err(_) => Err(Status::deadline_exceeded(format!(
                "the request took longer than {} s: narrow it, or try again later",
                self.timeout.as_secs()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tonic::Code;

    use super::*;

    #[tokio::test]
    async fn a_job_beyond_the_queue_is_rejected() {
        let pool = Arc::new(BlockingPool::new(1, 1, Duration::from_secs(10)));
        let (release, released) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(move || Ok(released.recv().is_ok())).await }
        });
        let second = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(|| Ok(true)).await }
        });
        while pool.admitted.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let third = pool.run(|| Ok(true)).await;
        assert_eq!(third.unwrap_err().code(), Code::ResourceExhausted);
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        assert!(second.await.unwrap().unwrap());
        assert!(pool.run(|| Ok(true)).await.unwrap());
    }

    #[tokio::test]
    async fn an_abandoned_job_keeps_its_permits() {
        let pool = BlockingPool::new(1, 0, Duration::from_millis(20));
        let (release, released) = mpsc::channel::<()>();
        let late = pool.run(move || Ok(released.recv().is_ok())).await;
        assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
        let rejected = pool.run(|| Ok(true)).await;
        assert_eq!(rejected.unwrap_err().code(), Code::ResourceExhausted);
        release.send(()).unwrap();
        while pool.admitted.available_permits() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(pool.run(|| Ok(true)).await.unwrap());
    }

    #[tokio::test]
    async fn a_job_stops_when_its_caller_is_gone() {
        let pool = BlockingPool::new(1, 0, Duration::from_millis(20));
        let budget: Arc<Budget> = Arc::default();
        let asked = Arc::clone(&budget);
        let work = move || {
            while asked.step() {
                std::thread::yield_now();
            }
            Ok(())
        };
        let late = pool.run_within(Arc::clone(&budget), work).await;
        assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
        while pool.admitted.available_permits() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(budget.late_steps(), 1);
    }

    #[tokio::test]
    async fn a_job_that_panics_is_an_internal_error() {
        let pool = BlockingPool::new(1, 0, Duration::from_secs(10));
        let broken = pool
            .run(|| -> Result<(), Status> { panic!("intended") })
            .await;
        assert_eq!(broken.unwrap_err().code(), Code::Internal);
        assert!(pool.run(|| Ok(true)).await.unwrap());
    }
}
