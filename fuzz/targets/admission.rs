//! Gives the reviewer of the admission webhook the bytes of an AdmissionReview.
//!
//! Whatever they are, no thread panics. They are answered, twice the same, with an AdmissionReview that repeats the `uid`
//! and denies nothing, since no assertion is enforced, or they are refused with a short reason.

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use entail::server::{ClientAddress, Limits, ReviewError, Reviewer, WebhookSettings};
use entail::source::cluster::WatchFilter;
use serde_json::Value;

use super::server::FuzzServer;

static SERVER: LazyLock<FuzzServer> = LazyLock::new(|| FuzzServer::start(Limits::default()));

static REVIEWER: LazyLock<Arc<Reviewer>> = LazyLock::new(|| {
    let filter = WatchFilter::default();
    let settings = WebhookSettings {
        read: Arc::new(move |object| filter.read(object)),
        full_names: false,
    };
    Arc::new(Reviewer::new(
        Arc::clone(&SERVER.subscriptions),
        settings,
        2,
    ))
});

/// Maximum size of an answer: five warnings, the last of which names a command, and the `uid`.
const MAX_ANSWER: usize = 4 * 1024;
/// Maximum size of a reason.
const MAX_REASON: usize = 512;
/// Maximum size of a warning, as the API server has it.
const MAX_WARNING: usize = 256;

/// Checks one input.
pub fn check(input: &[u8]) {
    let answers = SERVER.runtime.block_on(async {
        let text = Bytes::copy_from_slice(input);
        let reviewer = &*REVIEWER;
        let time = Some(Duration::from_secs(10));
        let from = ClientAddress::of(Ipv4Addr::LOCALHOST.into());
        [
            reviewer.review(text.clone(), from, time).await,
            reviewer.review(text, from, time).await,
        ]
    });
    SERVER.check_panics();
    for answer in &answers {
        match answer {
            Ok(answer) => check_answer(answer, input),
            Err(ReviewError::Malformed(why)) => assert!(why.len() <= MAX_REASON, "{why}"),
            // The machine is slow.
            Err(ReviewError::NotRead(why)) => assert!(why.contains("longer than"), "{why}"),
        }
    }
    let is_late = |answer: &Result<String, ReviewError>| match answer {
        Ok(answer) => answer.contains("not computed in time"),
        Err(error) => matches!(error, ReviewError::NotRead(_)),
    };
    let [first, second] = answers;
    assert!(first == second || is_late(&first) || is_late(&second));
}

fn check_answer(answer: &str, input: &[u8]) {
    assert!(answer.len() <= MAX_ANSWER, "{answer}");
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    let response = &answer["response"];
    // The reviewer skips fields that it does not know, with whatever texts and numbers they have.
    match serde_json::from_slice::<Value>(input) {
        Ok(review) => assert_eq!(response["uid"], review["request"]["uid"]),
        Err(_) => assert!(response["uid"].is_string()),
    }
    assert_eq!(response["allowed"], true);
    let warnings = response["warnings"].as_array();
    for warning in warnings.into_iter().flatten() {
        let warning = warning.as_str().unwrap();
        assert!(
            warning.len() <= MAX_WARNING && warning.is_ascii(),
            "{warning}"
        );
    }
}
