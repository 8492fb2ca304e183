use super::*;
use serde_json::json;

fn kind(name: &str) -> GroupKind {
    GroupKind::new("example.com", name)
}

fn object(kind: &GroupKind, name: &str, number: u64) -> Arc<Object> {
    let body = json!({
        "apiVersion": "example.com/v1", "kind": kind.kind,
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"number": number},
    });
    Arc::new(
        crate::source::object::parse_object(body, None)
            .unwrap()
            .unwrap(),
    )
}

fn names(change: &Change) -> (Vec<String>, Vec<String>) {
    let upserts = change.upserts.iter().map(|o| o.key.name.to_string());
    let deletes = change.deletes.iter().map(|key| key.name.to_string());
    (upserts.collect(), deletes.collect())
}

#[test]
fn a_list_is_one_change_and_deletes_objects_that_are_missing() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    assert!(!collector.is_complete());
    collector.apply(
        &a,
        KindUpdate::Listed(vec![object(&a, "x", 1), object(&a, "y", 1)]),
    );
    assert!(collector.is_complete());
    assert_eq!(names(&collector.take_change().0).0, ["x", "y"]);
    collector.apply(
        &a,
        KindUpdate::Listed(vec![object(&a, "y", 2), object(&a, "z", 1)]),
    );
    let (change, _) = collector.take_change();
    assert_eq!(
        names(&change),
        (vec!["y".into(), "z".into()], vec!["x".into()])
    );
    assert!(change.states.is_empty() && collector.is_empty());
}

#[test]
fn the_last_event_of_an_object_applies() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    collector.take_change();
    collector.apply(&a, KindUpdate::Applied(object(&a, "x", 1)));
    collector.apply(&a, KindUpdate::Applied(object(&a, "x", 2)));
    collector.apply(&a, KindUpdate::Applied(object(&a, "y", 1)));
    collector.apply(&a, KindUpdate::Deleted(object(&a, "y", 1).key.clone()));
    let (change, decides) = collector.take_change();
    assert_eq!(names(&change), (vec!["x".into()], vec!["y".into()]));
    assert_eq!(change.upserts[0].body.value()["spec"]["number"], 2);
    assert!(!decides);
}

#[test]
fn objects_stay_in_use_as_stale_after_an_error() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Error("no route to host".into()));
    assert!(!collector.is_complete(), "the kind has not been read");
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "x", 1)]));
    assert!(collector.problems().is_empty());
    collector.take_change();
    collector.apply(&a, KindUpdate::Error("connection refused".into()));
    let (change, _) = collector.take_change();
    assert_eq!(change.states[0].state, SourceState::Stale);
    assert!(change.upserts.is_empty() && change.deletes.is_empty());
    assert!(collector.problems()[0].1.contains("stay in use"));
    collector.apply(&a, KindUpdate::Resumed);
    assert_eq!(
        collector.take_change().0.states[0].state,
        SourceState::Complete
    );
    assert!(collector.problems().is_empty());
}

#[test]
fn a_forbidden_kind_is_complete_and_a_problem() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Forbidden("a is forbidden".into()));
    assert!(collector.is_complete());
    assert_eq!(
        collector.take_change().0.states[0].state,
        SourceState::Forbidden
    );
    assert!(collector.problems()[0].1.contains("grant"));
    // Lists in pages are announced before they are denied.
    collector.apply(&a, KindUpdate::Listing);
    assert!(!collector.has_stale_kinds());
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    assert_eq!(
        collector.take_change().0.states[0].state,
        SourceState::Complete
    );
}

#[test]
fn removing_a_kind_deletes_its_objects() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "x", 1)]));
    collector.take_change();
    collector.mark_not_served(&a);
    let (change, _) = collector.take_change();
    assert_eq!(names(&change).1, ["x"]);
    assert!(collector.is_complete());
    collector.remove(&a);
    collector.take_change();
    // Later events of its watch are ignored.
    collector.apply(&a, KindUpdate::Applied(object(&a, "x", 1)));
    assert!(collector.is_empty());
}

#[test]
fn changes_of_crds_can_change_the_desired_kinds() {
    let crds = GroupKind::crd();
    let mut collector = ChangeCollector::default();
    collector.start(&crds);
    collector.apply(&crds, KindUpdate::Listed(Vec::new()));
    assert!(collector.take_change().1);
    assert!(!collector.take_change().1);
}

#[test]
fn restored_objects_stay_until_the_first_list() {
    let (a, b) = (kind("A"), kind("B"));
    let (x, y) = (object(&a, "x", 1), object(&a, "y", 1));
    let mut collector = ChangeCollector::default();
    collector.seed(BTreeMap::from([
        (a.clone(), [x.key.clone(), y.key.clone()].into()),
        (b.clone(), BTreeSet::new()),
    ]));
    collector.start(&a);
    collector.start(&b);
    assert!(collector.is_restored(&a) && !collector.is_complete() && collector.has_stale_kinds());
    // Restored objects are not sent again.
    assert!(collector.is_empty());
    collector.apply(&a, KindUpdate::Error("no".to_owned()));
    assert!(collector.is_restored(&a));
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "y", 2)]));
    collector.apply(&b, KindUpdate::Listed(Vec::new()));
    assert!(collector.is_complete() && !collector.has_stale_kinds());
    let (change, _) = collector.take_change();
    assert_eq!(names(&change), (vec!["y".into()], vec!["x".into()]));
    let states: Vec<_> = change.states.iter().map(|new| new.state).collect();
    assert_eq!(states, [SourceState::Complete; 2]);
}

#[test]
fn restored_objects_of_another_cluster_are_deleted_and_their_kinds_unknown() {
    let (a, b) = (kind("A"), kind("B"));
    let (x, y) = (object(&a, "x", 1), object(&b, "y", 1));
    let mut collector = ChangeCollector::default();
    collector.seed(BTreeMap::from([
        (a.clone(), [x.key.clone()].into()),
        (b.clone(), [y.key.clone()].into()),
    ]));
    // One kind was listed since.
    collector.start(&b);
    collector.apply(&b, KindUpdate::Listed(vec![y]));
    collector.take_change();
    collector.discard_restored();
    assert!(!collector.is_restored(&a) && collector.is_complete_kind(&b));
    let (change, _) = collector.take_change();
    assert_eq!(names(&change), (vec![], vec!["x".into()]));
    assert_eq!(change.states.len(), 1);
    assert_eq!(change.states[0].state, SourceState::Unknown);
}

#[test]
fn restored_objects_of_an_unserved_kind_are_deleted() {
    let a = kind("A");
    let mut collector = ChangeCollector::default();
    collector.seed(BTreeMap::from([(
        a.clone(),
        [object(&a, "x", 1).key.clone()].into(),
    )]));
    collector.mark_not_served(&a);
    assert!(collector.is_complete());
    assert_eq!(names(&collector.take_change().0).1, ["x"]);
}

#[test]
fn a_kind_is_stale_while_it_is_listed_again() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    assert!(collector.is_loading());
    collector.apply(&a, KindUpdate::Listing);
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "x", 1)]));
    assert!(!collector.has_stale_kinds() && !collector.is_loading());
    collector.take_change();
    // Events were missed: the watch lists again.
    collector.apply(&a, KindUpdate::Listing);
    assert!(collector.has_stale_kinds() && collector.is_empty());
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "x", 1)]));
    assert!(!collector.has_stale_kinds());
    // Served at another version: the objects stay in use.
    collector.take_change();
    collector.mark_stale(&a);
    let (change, _) = collector.take_change();
    assert!(change.deletes.is_empty());
    assert_eq!(change.states[0].state, SourceState::Stale);
}

#[test]
fn an_unreadable_kind_is_not_loading() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Error("no".to_owned()));
    assert!(!collector.is_loading() && !collector.is_complete());
}

#[test]
fn an_object_that_is_repeated_is_not_a_change() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    let list = |number| KindUpdate::Listed(vec![object(&a, "x", number), object(&a, "y", 1)]);
    collector.apply(&a, list(1));
    collector.take_change();
    collector.apply(&a, KindUpdate::Applied(object(&a, "x", 1)));
    assert!(collector.is_empty());
    collector.apply(&a, KindUpdate::Listing);
    collector.apply(&a, list(1));
    assert!(collector.is_empty() && !collector.has_stale_kinds());
    collector.apply(&a, list(2));
    assert_eq!(names(&collector.take_change().0).0, ["x"]);
    // What was deleted is new when it comes back.
    collector.apply(&a, KindUpdate::Deleted(object(&a, "x", 2).key.clone()));
    collector.apply(&a, KindUpdate::Applied(object(&a, "x", 2)));
    assert_eq!(
        names(&collector.take_change().0),
        (vec!["x".into()], vec![])
    );
    // The store may have dropped an XListenerSet for the ListenerSet with its name.
    let experimental = GroupKind::new("gateway.networking.x-k8s.io", "XListenerSet");
    collector.start(&experimental);
    for _ in 0..2 {
        let set = Arc::new(Object {
            key: ObjectKey::new(experimental.clone(), "ns", "x"),
            ..Object::clone(&object(&a, "x", 1))
        });
        collector.apply(&experimental, KindUpdate::Applied(set));
        assert_eq!(names(&collector.take_change().0).0, ["x"]);
    }
    // Of the objects of a checkpoint only the keys are known.
    let mut restored = ChangeCollector::default();
    let keys = [object(&a, "x", 1).key.clone()];
    restored.seed([(a.clone(), keys.into())].into());
    restored.apply(&a, list(1));
    assert_eq!(names(&restored.take_change().0).0, ["x", "y"]);
}

#[test]
fn deleting_an_unknown_object_is_not_a_change() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    collector.take_change();
    collector.apply(&a, KindUpdate::Deleted(object(&a, "x", 1).key.clone()));
    assert!(collector.is_empty());
}

#[test]
fn objects_of_which_other_parts_are_needed_stay_until_they_are_listed() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "x", 1)]));
    collector.take_change();
    collector.mark_outdated(&a);
    assert!(!collector.is_complete() && collector.has_stale_kinds());
    let (change, _) = collector.take_change();
    assert_eq!(names(&change), (Vec::new(), Vec::new()));
    assert_eq!(change.states[0].state, SourceState::Stale);
    collector.apply(&a, KindUpdate::Listed(vec![object(&a, "x", 2)]));
    assert!(collector.is_complete() && !collector.has_stale_kinds());
    assert_eq!(names(&collector.take_change().0).0, ["x"]);
}

#[test]
fn a_denial_of_a_kind_that_was_read_makes_it_stale() {
    let (a, b) = (kind("A"), kind("B"));
    let mut collector = ChangeCollector::default();
    collector.seed(BTreeMap::from([(
        b.clone(),
        [object(&b, "x", 1).key.clone()].into(),
    )]));
    collector.start(&a);
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    collector.take_change();
    for kind in [&a, &b] {
        collector.apply(kind, KindUpdate::Denied("denied".to_owned()));
    }
    let (change, _) = collector.take_change();
    assert_eq!(change.states.len(), 1, "B was stale before");
    assert_eq!(change.states[0].state, SourceState::Stale);
    assert!(collector.is_restored(&b) && change.deletes.is_empty());
    collector.apply(&a, KindUpdate::Forbidden("denied".to_owned()));
    assert_eq!(
        collector.take_change().0.states[0].state,
        SourceState::Forbidden
    );
    // A further denial changes nothing.
    collector.apply(&a, KindUpdate::Denied("denied".to_owned()));
    assert!(collector.is_empty() && !collector.is_loading());
}

#[test]
fn a_denial_of_a_kind_that_was_not_read_is_no_error_yet() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    collector.apply(&a, KindUpdate::Denied("denied".to_owned()));
    assert!(collector.is_loading() && !collector.is_complete());
    assert_eq!(
        collector.problems()[0].1,
        "denied; it is FORBIDDEN once that is confirmed"
    );
    collector.set_waits_for(&a, "the test");
    assert!(!collector.is_loading(), "it takes long");
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    assert!(collector.is_complete() && collector.problems().is_empty());
}

#[test]
fn a_kind_that_has_not_been_read_for_long_has_a_reason() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    assert_eq!(collector.unread().count(), 1);
    assert!(collector.problems().is_empty() && collector.is_loading());
    collector.set_waits_for(&a, "the test");
    assert!(collector.problems()[0].1.contains("the test") && !collector.is_loading());
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    assert_eq!(collector.unread().count(), 0);
    assert!(collector.problems().is_empty());
}

#[test]
fn a_silent_kind_is_stale_until_something_is_heard() {
    let (a, mut collector) = (kind("A"), ChangeCollector::default());
    collector.start(&a);
    let silent = || Some("silent".to_owned());
    collector.set_silent(&a, silent());
    assert!(!collector.has_stale_kinds(), "it has not been read");
    collector.apply(&a, KindUpdate::Listed(Vec::new()));
    collector.take_change();
    collector.set_silent(&a, silent());
    assert!(collector.has_stale_kinds() && collector.problems()[0].1.starts_with("silent"));
    collector.set_silent(&a, None);
    assert!(!collector.has_stale_kinds() && collector.problems().is_empty());
    // An error is not over when something is heard.
    collector.apply(&a, KindUpdate::Error("refused".to_owned()));
    collector.set_silent(&a, silent());
    collector.set_silent(&a, None);
    assert!(collector.has_stale_kinds() && collector.problems()[0].1.starts_with("refused"));
}
