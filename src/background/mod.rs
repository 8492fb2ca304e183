//! Work on threads of low priority, so that look-ups come first where both need a core.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{self, JoinHandle};

use crate::cores::cores;

/// The niceness of the threads: one of usual niceness gets nine times as much of a core that both want. Of several such
/// threads, which share a core with one that answers look-ups, all together take less than it does, so that it is not
/// behind them when it is woken. A thread cannot lower it again, so all blocking work of a
/// runtime has it. The admin server has a runtime of its own.
const NICENESS: i32 = 10;

/// The CPU time after which a thread of low priority yields: a part of the 1.4 ms that are a slice on two cores.
const CPU_PER_TURN: Duration = Duration::from_micros(500);

thread_local! {
    /// The CPU time of this thread when it yielded last; `None` for a thread of usual priority.
    static YIELDED: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// A runtime on threads of low priority: for what data planes do not wait for. Dropping it ends its tasks without waiting
/// for them.
#[derive(Debug)]
pub struct BackgroundRuntime {
    handle: Handle,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
}

impl BackgroundRuntime {
    /// Starts the threads: several, so that a long step of one task does not stop the others.
    ///
    /// # Errors
    /// Returns an error if the operating system refuses to start a thread.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(half_the_cores())
            .enable_all()
            .thread_name("entail-nice")
            .on_thread_start(lower_priority)
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Returns the handle to start tasks with.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Half the number of cores, and at least two, because a thread may wait, for example for an access review: how much of one
/// kind of work runs at once.
pub fn half_the_cores() -> usize {
    (cores() / 2).max(2)
}

/// Runs blocking work as [`task::spawn_blocking`] does, on a thread of low priority. Threads that the work starts have it,
/// too.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    task::spawn_blocking(move || {
        lower_priority();
        work()
    })
}

/// Calls `sched_yield` if this thread has a low priority and has used the CPU for [`CPU_PER_TURN`] since the last call that
/// did. Long work of low priority calls this at each of its steps.
///
/// Linux lets a thread finish its slice although one of usual priority is woken, and ends a slice at a tick of its clock,
/// which is 4 ms with many kernels. A thread that yields gives up the rest of its slice, so it must not yield too often.
pub fn yield_core() {
    let Some(last) = YIELDED.get() else { return };
    let now = cpu_time();
    if now.saturating_sub(last) >= CPU_PER_TURN {
        std::thread::yield_now();
        YIELDED.set(Some(now));
    }
}

/// The CPU time that this thread has used.
fn cpu_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default()
    }
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

/// Lowers the priority of this thread. If that is forbidden, it keeps the usual one.
fn lower_priority() {
    // On other systems, it would be that of the process.
    #[cfg(target_os = "linux")]
    match rustix::process::setpriority_process(None, NICENESS) {
        Ok(()) => YIELDED.set(Some(cpu_time())),
        Err(error) => {
            tracing::debug!(%error, "a thread for blocking work has the usual priority");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn tasks_of_the_runtime_are_nicer_than_others() {
        let own = || getpriority_process(None).unwrap();
        let usual = own();
        let runtime = BackgroundRuntime::start().unwrap();
        let of_task = runtime.handle().spawn(async move { own() });
        assert_eq!(of_task.await.unwrap(), NICENESS.max(usual));
        // A runtime must not be dropped here as such.
        drop(runtime);
        assert_eq!(own(), usual);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn blocking_work_is_nicer_than_tasks() {
        let own = || getpriority_process(None).unwrap();
        let usual = own();
        let of_threads = spawn_blocking(move || (own(), std::thread::spawn(own).join().unwrap()));
        let nicer = NICENESS.max(usual);
        assert_eq!(of_threads.await.unwrap(), (nicer, nicer));
        for _ in 0..20 {
            let task = tokio::spawn(async move { own() });
            assert_eq!(task.await.unwrap(), usual);
        }
    }
}
