//! A bounded pool for work that takes its time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tonic::Status;

/// Runs work on blocking threads, so many at once; so many more wait, others are turned away.
#[derive(Debug)]
pub(in crate::server) struct BlockingPool {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    timeout: Duration,
}

impl BlockingPool {
    pub fn new(at_once: usize, waiting: usize, timeout: Duration) -> Self {
        let most = Semaphore::MAX_PERMITS;
        Self {
            admitted: Arc::new(Semaphore::new(at_once.saturating_add(waiting).min(most))),
            running: Arc::new(Semaphore::new(at_once.min(most))),
            timeout,
        }
    }

    /// Runs work. What has begun runs to its end and keeps its place until then, even if nobody
    /// waits for it any more: otherwise callers that give up could start any amount of it.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let admitted = Arc::clone(&self.admitted)
            .try_acquire_owned()
            .map_err(|_| {
                Status::resource_exhausted("too many such requests are waiting: try again later")
            })?;
        let job = async {
            let running = Arc::clone(&self.running)
                .acquire_owned()
                .await
                .map_err(|_| Status::unavailable("the server stops"))?;
            let job = tokio::task::spawn_blocking(move || {
                let _permits = (admitted, running);
                work()
            });
            job.await.map_err(|error| {
                tracing::error!(%error, "a request could not be worked on");
                Status::internal("the request could not be worked on: see the server's log")
            })?
        };
        match tokio::time::timeout(self.timeout, job).await {
            Ok(done) => done,
            Err(_) => Err(Status::deadline_exceeded(format!(
                "the request took longer than {} s: ask for less at once, or try again later",
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
    async fn work_beyond_the_bound_is_turned_away() {
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
    async fn work_that_nobody_waits_for_keeps_its_place() {
        let pool = BlockingPool::new(1, 0, Duration::from_millis(20));
        let (release, released) = mpsc::channel::<()>();
        let late = pool.run(move || Ok(released.recv().is_ok())).await;
        assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
        let turned_away = pool.run(|| Ok(true)).await;
        assert_eq!(turned_away.unwrap_err().code(), Code::ResourceExhausted);
        release.send(()).unwrap();
        while pool.admitted.available_permits() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(pool.run(|| Ok(true)).await.unwrap());
    }

    #[tokio::test]
    async fn work_that_panics_is_an_internal_error() {
        let pool = BlockingPool::new(1, 0, Duration::from_secs(10));
        let broken = pool
            .run(|| -> Result<(), Status> { panic!("on purpose") })
            .await;
        assert_eq!(broken.unwrap_err().code(), Code::Internal);
        assert!(pool.run(|| Ok(true)).await.unwrap());
    }
}
