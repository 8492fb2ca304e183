//! Work in the background: on threads of low priority, so that look-ups come first where both need a core.

use std::io;
use std::thread::{self, Builder};

use tokio::sync::oneshot;

/// The niceness of the threads: one of usual niceness gets three times as much of a core that both want, and is woken
/// without waiting for the other one. It cannot be lowered again, so the threads do nothing else.
const NICENESS: i32 = 5;

/// Why work in the background has no result.
#[derive(Debug, thiserror::Error)]
pub enum BackgroundError {
    /// No thread could be started.
    #[error("no thread can be started: {0}")]
    NoThread(#[from] io::Error),
    /// The work panicked.
    #[error("it panicked")]
    Panicked,
}

/// Runs blocking work on a thread of its own.
///
/// # Errors
/// There is no thread, or the work panicked.
pub async fn run<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BackgroundError> {
    let (sender, receiver) = oneshot::channel();
    start(name, move || {
        // Nobody waits if the server ends.
        drop(sender.send(work()));
    })?;
    receiver.await.map_err(|_| BackgroundError::Panicked)
}

/// Starts blocking work for whose end nobody waits.
///
/// # Errors
/// There is no thread.
pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread: thread::JoinHandle<()> = Builder::new().name(name.to_owned()).spawn(move || {
        lower_priority();
        work();
    })?;
    drop(thread);
    Ok(())
}

/// Lowers the priority of this thread. Without the permission it keeps its own.
fn lower_priority() {
    // On other systems, it would be that of the process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "a thread for work in the background has the usual priority");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn background_threads_are_nicer_than_others() {
        let before = getpriority_process(None).unwrap();
        let inside = run("test", || getpriority_process(None)).await.unwrap();
        assert_eq!(inside, Ok(NICENESS.max(before)));
        assert_eq!(getpriority_process(None), Ok(before));
        let failed = run("test", || panic!("as a defect would")).await;
        assert!(matches!(failed, Err(BackgroundError::Panicked)));
    }
}
