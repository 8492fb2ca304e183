//! Where the replies of a connection are computed: look-ups in the task of the connection, all others first in one more
//! task for each priority, and in tasks of their own once they have to wait.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use hyper::rt::Executor;
use tokio::runtime::Handle;

use crate::background;
use crate::server::admission::turns::{Turn, Turns, yield_turn};

/// Maximum number of requests that wait to be tried. Requests that the caller gives up wait, too, and do not count for
/// the limit of streams.
const MAX_UNTRIED: usize = 1_024;
/// Maximum number of look-ups that are tried in a turn of the connection. Those that are not answered at once take longer
/// than what a turn reads suggests.
const LOOK_UPS_PER_TURN: usize = 256;

/// Runs the requests of one connection.
///
/// A look-up whose message has arrived takes less time than to schedule a task, and its reply can leave together with
/// others. So it is tried at once, and gets a task only if it has to wait.
///
/// Of each other priority, one task tries the requests in the order of their arrival, and lets the tasks of other
/// connections run after each. Those that had to wait run in turns, too. So a thousand requests of one connection do not
/// delay those of another.
#[derive(Clone, Debug)]
pub(in crate::server) struct RequestExecutor(Arc<Shared>);

/// How urgent a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Priority {
    /// A look-up of paths.
    LookUp = 0,
    /// Another request that a data plane waits for.
    Usual = 1,
    /// The request of a person or of a tool, or a batch: its messages are decoded and its reply is encoded on threads of low
    /// priority.
    Low = 2,
}

#[derive(Debug)]
struct Shared {
    /// The [`Priority`] of the next request. HTTP/2 executes each request right after the call of the service.
    next: AtomicU8,
    /// The number of look-ups in this turn of the connection.
    look_ups: AtomicUsize,
    usual: Untried,
    low: Untried,
}

/// The requests of a priority that have not been tried.
#[derive(Debug)]
struct Untried {
    /// The runtime of their tasks; that of the connection if `None`.
    runtime: Option<Handle>,
    queue: Mutex<Queue>,
    /// The turns of requests that had to wait.
    turns: Arc<Turns>,
}

/// A request that had to wait.
struct Waiting<F: ?Sized> {
    turn: Turn,
    request: Pin<Box<F>>,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether there is a task that tries them.
    has_task: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.requests.len();
        f.debug_tuple("Queue").field(&count).finish()
    }
}

impl Untried {
    fn on(runtime: Option<Handle>) -> Self {
        Self {
            runtime,
            queue: Mutex::default(),
            turns: Arc::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries each request in the queue. Ends when the queue is empty.
    async fn try_each(&self) {
        loop {
            let request = {
                let mut queue = self.queue();
                let first = queue.requests.pop_front();
                queue.has_task = first.is_some();
                first
            };
            let Some(request) = request else {
                return;
            };
            try_at_once(request, &self.turns);
            background::yield_core();
            yield_turn().await;
        }
    }
}

impl Shared {
    fn untried(&self, is_low: bool) -> &Untried {
        match is_low {
            true => &self.low,
            false => &self.usual,
        }
    }
}

impl RequestExecutor {
    /// Creates the executor of a connection, and the runtime for requests of low priority; by default, that of the
    /// connection.
    pub fn new(background: Option<Handle>) -> Self {
        Self(Arc::new(Shared {
            next: AtomicU8::new(Priority::Usual as u8),
            look_ups: AtomicUsize::new(0),
            usual: Untried::on(None),
            low: Untried::on(background),
        }))
    }

    /// Begins a turn of the connection.
    pub fn begin_turn(&self) {
        self.0.look_ups.store(0, Ordering::Relaxed);
    }

    /// The number of look-ups in this turn of the connection.
    pub fn look_ups(&self) -> usize {
        self.0.look_ups.load(Ordering::Relaxed)
    }

    /// Says how urgent the request is that is executed next.
    pub fn expect(&self, priority: Priority) {
        self.0.next.store(priority as u8, Ordering::Relaxed);
    }
}

impl<F> Executor<F> for RequestExecutor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, request: F) {
        let priority = self.0.next.swap(Priority::Usual as u8, Ordering::Relaxed);
        if priority == Priority::LookUp as u8
            && self.0.look_ups.fetch_add(1, Ordering::Relaxed) < LOOK_UPS_PER_TURN
        {
            try_at_once(Box::pin(request), &self.0.usual.turns);
            return;
        }
        let request = Box::pin(async {
            request.await;
        });
        let is_low = priority == Priority::Low as u8;
        let untried = self.0.untried(is_low);
        let mut queue = untried.queue();
        if queue.requests.len() >= MAX_UNTRIED {
            drop(queue);
            // In the turn of the connection, which sends no more meanwhile.
            let _entered = untried.runtime.as_ref().map(Handle::enter);
            try_at_once(request, &untried.turns);
            return;
        }
        queue.requests.push_back(request);
        if !std::mem::replace(&mut queue.has_task, true) {
            let shared = Arc::clone(&self.0);
            let task = async move { shared.untried(is_low).try_each().await };
            match &untried.runtime {
                Some(runtime) => runtime.spawn(task),
                None => tokio::spawn(task),
            };
        }
    }
}

/// Polls a request, and spawns a task for it if it has to wait, which runs in turns.
fn try_at_once<F>(mut request: Pin<Box<F>>, turns: &Arc<Turns>)
where
    F: Future<Output: Send + 'static> + Send + ?Sized + 'static,
{
    // As in a task, a panic ends the request alone, also one when it is dropped.
    let waiting = catch_unwind(AssertUnwindSafe(move || {
        // A task polls it again before it waits, so nothing needs to wake it here.
        let mut context = Context::from_waker(Waker::noop());
        let polled = request.as_mut().poll(&mut context);
        polled.is_pending().then_some(request)
    }));
    if let Ok(Some(request)) = waiting {
        let turn = Turn::of(Arc::clone(turns));
        tokio::spawn(Waiting { turn, request });
    }
}

impl<F: Future + ?Sized> Future for Waiting<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        ready!(self.turn.poll(context));
        self.request.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn look_ups_are_tried_at_once_and_the_rest_has_tasks() {
        let executor = RequestExecutor::new(None);
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
        executor.expect(Priority::LookUp);
        executor.execute(request(false));
        assert!(is_done(1), "a look-up");
        // What is said holds for one request.
        executor.execute(request(false));
        assert!(is_done(1), "another request");
        executor.expect(Priority::LookUp);
        executor.execute(request(true));
        assert!(is_done(1), "a look-up that waits");
        executor.expect(Priority::LookUp);
        executor.execute(async { panic!("for the test") });
        executor.execute(async { panic!("for the test") });
        executor.execute(request(true));
        while !is_done(4) {
            tokio::task::yield_now().await;
        }
        executor.execute(request(false));
        while !is_done(5) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_requests_of_connections_take_turns() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let execute = |executor: &RequestExecutor, connection: u8| {
            let order = Arc::clone(&order);
            executor.execute(async move { order.lock().unwrap().push(connection) });
        };
        let (many, few) = (RequestExecutor::new(None), RequestExecutor::new(None));
        for _ in 0..1_000 {
            execute(&many, 1);
        }
        execute(&few, 2);
        execute(&few, 2);
        // The two queues of a connection do not wait for each other, either.
        many.expect(Priority::Low);
        execute(&many, 2);
        while order.lock().unwrap().len() < 1_003 {
            tokio::task::yield_now().await;
        }
        let order = order.lock().unwrap();
        let last_of_few = order.iter().rposition(|connection| *connection == 2);
        assert!(last_of_few.unwrap() < 6, "{last_of_few:?}");
    }

    #[tokio::test]
    async fn a_connection_with_very_many_requests_answers_them_in_its_turn() {
        let executor = RequestExecutor::new(None);
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..MAX_UNTRIED + 10 {
            let done = Arc::clone(&done);
            executor.execute(async move {
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(done.load(Ordering::Relaxed), 10);
        while done.load(Ordering::Relaxed) < MAX_UNTRIED + 10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn requests_of_low_priority_run_on_their_runtime() {
        let background = tokio::runtime::Runtime::new().unwrap();
        let executor = RequestExecutor::new(Some(background.handle().clone()));
        let (sender, mut threads) = tokio::sync::mpsc::channel(1);
        let own = std::thread::current().id();
        for (priority, waits, is_here) in [
            (Priority::LookUp, false, true),
            (Priority::Usual, true, true),
            (Priority::Low, false, false),
            (Priority::Low, true, false),
        ] {
            let sender = sender.clone();
            executor.expect(priority);
            executor.execute(async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                sender.send(std::thread::current().id()).await.unwrap();
            });
            let thread = threads.recv().await.unwrap();
            assert_eq!(thread == own, is_here, "{priority:?}, {waits}");
        }
        background.shutdown_background();
    }
}
