//! How watches behave while the API server fails, starts, or falls silent.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::fake_api_server::{
    Answer, FakeApiServer, WIDGETS, added, denies, end_of_list, end_of_list_at, healthy, is_list,
    list_at, object, status, widget,
};
use super::{ApiTimeouts, DesiredKinds, KnownObjects};
use entail_core::model::SourceState::{Complete, Forbidden, Stale, Unknown};

const SECOND: Duration = Duration::from_secs(1);

fn timeouts() -> ApiTimeouts {
    ApiTimeouts {
        request: SECOND / 2,
        long_read: SECOND / 5,
        stale_after: SECOND * 75,
        forbidden_after: SECOND * 60,
        start_jitter: Duration::ZERO,
    }
}

/// Counts the requests for lists.
fn counting(
    mut answer: impl FnMut(&str) -> Answer + Send + 'static,
) -> (
    impl FnMut(&str) -> Answer + Send + 'static,
    Arc<AtomicUsize>,
) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let counted = move |request: &str| {
        if is_list(request) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        answer(request)
    };
    (counted, count)
}

#[tokio::test]
async fn a_starting_server_forbids_nothing() {
    let server = FakeApiServer::start(timeouts(), healthy).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    assert!(follower.is_complete && follower.problems.is_empty());
    server.restart(|request| denies(request, false));
    follower.until_state(Stale).await;
    follower.run(SECOND * 2).await;
    server.answer(healthy);
    follower.until_state(Complete).await;
    assert_eq!(follower.states, [Unknown, Complete, Stale, Complete]);
}

#[tokio::test]
async fn a_first_read_by_a_starting_server_waits() {
    let server = FakeApiServer::start(timeouts(), |request| denies(request, false)).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.run(SECOND / 10).await;
    assert!(
        follower.is_loading,
        "a denial that is not confirmed is no error"
    );
    follower.run(SECOND).await;
    assert_eq!(
        (follower.is_complete, &*follower.states),
        (false, &[Unknown][..])
    );
    server.answer(healthy);
    follower.until_state(Complete).await;
}

#[tokio::test]
async fn a_review_of_a_ready_server_confirms_a_denial() {
    let server = FakeApiServer::start(timeouts(), |request| denies(request, true)).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.run(SECOND).await;
    assert_eq!(follower.states, [Unknown, Forbidden]);
    assert!(follower.is_complete);
    // The right is given.
    server.answer(healthy);
    follower.until_state(Complete).await;
    assert!(follower.problems.is_empty());
    assert_eq!(follower.objects.len(), 1);
    // A revoked right shows when the watch is opened again, after two reviews.
    server.restart(|request| denies(request, true));
    follower.until_state(Forbidden).await;
    assert_eq!(
        follower.states,
        [Unknown, Forbidden, Complete, Stale, Forbidden]
    );
    // What may not be read is not served any more; with the right, the kind is listed and not only watched.
    assert!(follower.objects.is_empty(), "{:?}", follower.objects);
    let (allowing, asked) = recording(healthy);
    server.answer(allowing);
    follower.until_state(Complete).await;
    // A server that lags behind must not show an older state than the one that was read before.
    assert_eq!(*asked.lock().unwrap(), ["7"]);
    assert_eq!(follower.objects.len(), 1);
    // The API server counts no review as a write.
    let counts = server.cluster.calls.counts();
    assert_eq!(counts.values().map(|each| each.writes).sum::<u64>(), 0);
    assert!(counts[WIDGETS].failures >= 2);
}

#[tokio::test]
async fn restored_objects_stay_while_the_server_starts() {
    let server = FakeApiServer::start(timeouts(), |request| denies(request, false)).await;
    let known = KnownObjects {
        objects: [(widget(), BTreeSet::new())].into(),
        unverified: None,
    };
    let mut follower = server.follow(known);
    follower.run(SECOND).await;
    assert!(follower.states.is_empty() && !follower.is_complete);
    server.answer(healthy);
    follower.until_state(Complete).await;
    assert_eq!(follower.states, [Complete]);
}

#[tokio::test]
async fn a_swallowed_list_is_reported_and_repeated() {
    let (swallowing, lists) = counting(|request| match is_list(request) {
        true => Answer::Swallow,
        false => healthy(request),
    });
    let server = FakeApiServer::start(timeouts(), swallowing).await;
    let mut follower = server.follow(KnownObjects::default());
    let says = |follower: &super::fake_api_server::Follower, text: &str| {
        follower
            .problems
            .iter()
            .any(|problem| problem.contains(text))
    };
    follower
        .until("not answered", |follower| {
            says(follower, "did not answer within 0.5 s")
        })
        .await;
    follower.run(SECOND * 2).await;
    assert!(server.cluster.calls.unread().contains_key(&widget()));
    assert!(lists.load(Ordering::Relaxed) >= 2, "repeated");
    server.answer(healthy);
    follower.until_state(Complete).await;
    follower.run(SECOND * 2).await;
    assert!(server.cluster.calls.unread().is_empty() && follower.problems.is_empty());
}

#[tokio::test]
async fn a_slow_first_read_has_a_reason_before_its_timeout() {
    let patient = ApiTimeouts {
        request: SECOND * 60,
        ..timeouts()
    };
    for (is_begun, reason) in [(false, "does not answer"), (true, "list is not complete")] {
        let slow = move |request: &str| match is_list(request) {
            true if is_begun => Answer::Watch(vec![added("one")]),
            true => Answer::Swallow,
            false => healthy(request),
        };
        let server = FakeApiServer::start(patient, slow).await;
        let mut follower = server.follow(KnownObjects::default());
        follower
            .until(reason, |follower| {
                follower.problems.iter().any(|text| text.contains(reason))
            })
            .await;
        assert!(!follower.is_loading && !follower.is_complete);
    }
}

#[tokio::test]
async fn silence_makes_a_kind_stale_until_something_is_heard() {
    let short = ApiTimeouts {
        stale_after: SECOND,
        request: SECOND * 30,
        ..timeouts()
    };
    let server = FakeApiServer::start(short, healthy).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    // Without bookmarks, a silent watch is opened again, which shows that the server is well.
    follower.run(SECOND * 4).await;
    assert_eq!(follower.states, [Unknown, Complete]);
    // Nothing is answered any more: the kind becomes stale although no connection ends.
    server.answer(|_| Answer::Swallow);
    follower.until_state(Stale).await;
    assert!(
        follower.problems[0].contains("sent nothing for 1 s"),
        "{:?}",
        follower.problems
    );
    let synced = follower.synced_at;
    follower.run(SECOND * 2).await;
    assert_eq!(follower.synced_at, synced);
    server.restart(healthy);
    follower.until_state(Complete).await;
    assert_eq!(follower.states, [Unknown, Complete, Stale, Complete]);
}

#[tokio::test]
async fn a_watch_that_replaces_another_begins_with_no_older_state() {
    let lists = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lists);
    let recording = move |request: &str| {
        if is_list(request) {
            seen.lock().unwrap().push(request.to_owned());
        }
        healthy(request)
    };
    let server = FakeApiServer::start(timeouts(), recording).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    // Other parts of the objects are needed, so another watch lists them.
    let status = |desired: &mut DesiredKinds| {
        desired.without_status.insert(widget());
    };
    follower.desired.send_modify(status);
    follower
        .until("listed again", |follower| {
            follower.states == [Unknown, Complete, Stale, Complete]
                || follower.states == [Unknown, Complete, Complete]
        })
        .await;
    let lists = lists.lock().unwrap();
    let floors = lists.iter().map(|request| {
        let has = |text: &str| request.contains(text);
        (has("resourceVersion=0"), has("resourceVersion=7"))
    });
    let floors: Vec<(bool, bool)> = floors.collect();
    assert_eq!(floors, [(true, false), (false, true)], "{lists:?}");
}

#[tokio::test]
async fn a_start_waits_for_a_random_part_of_its_jitter() {
    let spread = ApiTimeouts {
        // A random part of it is not over while the test runs.
        start_jitter: SECOND * 3_600 * 24 * 365,
        ..timeouts()
    };
    let (answer, lists) = counting(healthy);
    let server = FakeApiServer::start(spread, answer).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.run(SECOND).await;
    assert!(lists.load(Ordering::Relaxed) == 0 && follower.is_loading);
}

#[tokio::test]
async fn lists_that_are_cut_are_repeated_ever_more_slowly() {
    let (cutting, lists) = counting(|request| match is_list(request) {
        true => Answer::Cut(vec![added("one")]),
        false => healthy(request),
    });
    let server = FakeApiServer::start(timeouts(), cutting).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.run(SECOND * 3).await;
    let count = lists.load(Ordering::Relaxed);
    assert!((2..=8).contains(&count), "{count} lists in 3 s");
    assert!(
        follower.problems[0].contains("the list ended early"),
        "{:?}",
        follower.problems
    );
    assert_eq!(
        server.cluster.calls.counts()[WIDGETS].failures as usize,
        count
    );
    server.answer(healthy);
    follower.until_state(Complete).await;
}

#[tokio::test]
async fn watches_that_end_at_once_are_repeated_ever_more_slowly() {
    // The list succeeds each time, and its watch ends or has expired.
    let expired =
        json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "expired"}});
    for last in [None, Some(expired)] {
        let end = last.clone();
        let (ending, lists) = counting(move |request| match request.split('?').next() {
            Some(WIDGETS) => {
                let mut lines = vec![added("one"), end_of_list()];
                lines.extend(end.clone());
                Answer::Cut(lines)
            }
            _ => healthy(request),
        });
        let server = FakeApiServer::start(timeouts(), ending).await;
        let mut follower = server.follow(KnownObjects::default());
        follower.run(SECOND * 3).await;
        let counts = server.cluster.calls.counts()[WIDGETS];
        assert!(counts.watches <= 8, "{counts:?}");
        assert!(lists.load(Ordering::Relaxed) >= 1);
    }
}

#[tokio::test]
async fn an_expired_version_is_listed_again() {
    let server = FakeApiServer::start(timeouts(), healthy).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    let (expired, lists) = counting(|request| match request.split('?').next() {
        Some(WIDGETS) if !is_list(request) => status(410),
        _ => healthy(request),
    });
    server.restart(expired);
    follower
        .until("a new list", |_| lists.load(Ordering::Relaxed) == 1)
        .await;
    // The last state can be that of before the list.
    follower
        .until("all is listed", |follower| {
            follower.is_complete && follower.states.last() == Some(&Complete)
        })
        .await;
}

#[tokio::test]
async fn objects_that_are_deleted_while_they_are_listed_are_gone() {
    let deleted = || json!({"type": "DELETED", "object": object("one")});
    let modified = || json!({"type": "MODIFIED", "object": object("two")});
    let changing = move |request: &str| match is_list(request) {
        true => Answer::Watch(vec![
            added("one"),
            added("two"),
            deleted(),
            modified(),
            end_of_list(),
        ]),
        false => healthy(request),
    };
    let server = FakeApiServer::start(timeouts(), changing).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    let names = follower.objects.iter().map(|key| &*key.name);
    assert_eq!(names.collect::<Vec<_>>(), ["two"]);
}

/// A function that answers requests.
type BoxedAnswers = Box<dyn FnMut(&str) -> Answer + Send>;

/// The versions that lists were asked for.
type AskedVersions = Arc<Mutex<Vec<String>>>;

/// Records the versions that lists of the kind are asked for.
fn recording(
    mut answer: impl FnMut(&str) -> Answer + Send + 'static,
) -> (impl FnMut(&str) -> Answer + Send + 'static, AskedVersions) {
    let asked = AskedVersions::default();
    let record = Arc::clone(&asked);
    let recorded = move |request: &str| {
        if is_list(request) {
            let parameters = request.split(['?', '&']);
            let version = parameters.filter_map(|each| each.strip_prefix("resourceVersion="));
            record.lock().unwrap().extend(version.map(str::to_owned));
        }
        answer(request)
    };
    (recorded, asked)
}

/// A list of a version without objects, and the end of each watch that follows.
fn lists_only(version: &'static str) -> impl Fn(&str) -> Answer {
    move |request| match request.split('?').next() {
        Some(WIDGETS) if is_list(request) => Answer::Watch(vec![end_of_list_at(version)]),
        Some(WIDGETS) if request.contains("watch=true") => status(410),
        _ => healthy(request),
    }
}

#[tokio::test]
async fn a_server_that_lags_behind_does_not_take_back_what_was_read() {
    let too_large = || {
        let causes =
            json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
        json!({"kind": "Status", "status": "Failure", "code": 504, "message": "Timeout: Too large resource version: 7, current: 6",
            "reason": "Timeout", "details": {"causes": causes, "retryAfterSeconds": 1}})
    };
    let refuses =
        move |request: &str| match is_list(request) && request.contains("resourceVersion=7") {
            true => Answer::Json(504, too_large()),
            false => lists_only("8")(request),
        };
    let refuses_later =
        move |request: &str| match is_list(request) && request.contains("resourceVersion=7") {
            true => Answer::Watch(vec![json!({"type": "ERROR", "object": too_large()})]),
            false => lists_only("8")(request),
        };
    // This one does not compare, and shows its old state.
    let ignores = |request: &str| match request.contains("resourceVersion=7") {
        true => lists_only("6")(request),
        false => lists_only("8")(request),
    };
    let lagging: [BoxedAnswers; 3] = [
        Box::new(refuses),
        Box::new(refuses_later),
        Box::new(ignores),
    ];
    for lagging in lagging {
        let server = FakeApiServer::start(timeouts(), healthy).await;
        let mut follower = server.follow(KnownObjects::default());
        follower.until_state(Complete).await;
        let (lagging, asked) = recording(lagging);
        server.restart(lagging);
        follower
            .until("the newest state", |_| asked.lock().unwrap().len() >= 2)
            .await;
        follower.until_state(Complete).await;
        // First what is not older than what was read, then the newest, whatever its version is.
        assert_eq!(asked.lock().unwrap()[..2], ["7", ""]);
        assert!(follower.states.contains(&Stale));
    }
}

#[tokio::test]
async fn a_storage_that_was_restored_is_noticed_by_a_silent_watch() {
    let short = ApiTimeouts {
        stale_after: SECOND,
        ..timeouts()
    };
    let server = FakeApiServer::start(short, healthy).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    // Watches of a version that does not exist any more are accepted and silent.
    let (restored, asked) = recording(|request| match request.split('?').next() {
        Some(WIDGETS) if is_list(request) => Answer::Watch(vec![end_of_list_at("3")]),
        Some(WIDGETS) if !request.contains("watch=true") => list_at("3"),
        _ => healthy(request),
    });
    server.answer(restored);
    follower
        .until("a new list", |_| !asked.lock().unwrap().is_empty())
        .await;
    assert_eq!(*asked.lock().unwrap(), [""]);
    follower.run(SECOND * 3).await;
    // Once is enough: the version counts from the restored state now.
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(follower.states.last(), Some(&Complete));
}

#[tokio::test]
async fn a_server_that_does_not_stream_lists_is_read_in_pages() {
    let pages = |request: &str| match request.split('?').next() {
        Some(WIDGETS) if is_list(request) => status(400),
        Some(WIDGETS) if request.contains("watch=true") => Answer::Watch(Vec::new()),
        Some(WIDGETS) => {
            let is_last = request.contains("continue=more");
            let (name, token) = if is_last {
                ("two", "")
            } else {
                ("one", "more")
            };
            Answer::Json(
                200,
                json!({"kind": "WidgetList", "apiVersion": "example.com/v1",
                "metadata": {"resourceVersion": "9", "continue": token}, "items": [object(name)]}),
            )
        }
        _ => healthy(request),
    };
    let server = FakeApiServer::start(timeouts(), pages).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    let counts = server.cluster.calls.counts()[WIDGETS];
    assert_eq!((counts.lists, counts.failures), (2, 0));
}

#[tokio::test]
async fn a_kind_is_read_soon_after_a_server_that_denied_everything_is_ready() {
    let server = FakeApiServer::start(timeouts(), healthy).await;
    let mut follower = server.follow(KnownObjects::default());
    follower.until_state(Complete).await;
    // Neither the kind nor `/readyz` may be read, so the server does not say that it is not ready.
    server.restart(|_| status(401));
    follower.until_state(Stale).await;
    follower.run(SECOND * 7).await;
    server.answer(healthy);
    follower.run(SECOND * 3).await;
    assert_eq!(follower.states, [Unknown, Complete, Stale, Complete]);
}
