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
    Arc::new(crate::source::object::object(body, None).unwrap().unwrap())
}

fn names(change: &Change) -> (Vec<String>, Vec<String>) {
    let upserts = change.upserts.iter().map(|o| o.key.name.to_string());
    let deletes = change.deletes.iter().map(|key| key.name.to_string());
    (upserts.collect(), deletes.collect())
}

#[test]
fn a_list_is_one_change_that_has_what_is_gone() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    assert!(!gathered.is_settled());
    gathered.take(
        &a,
        Said::Listed(vec![object(&a, "x", 1), object(&a, "y", 1)]),
    );
    assert!(gathered.is_settled());
    assert_eq!(names(&gathered.change().0).0, ["x", "y"]);
    gathered.take(
        &a,
        Said::Listed(vec![object(&a, "y", 2), object(&a, "z", 1)]),
    );
    let (change, _) = gathered.change();
    assert_eq!(
        names(&change),
        (vec!["y".into(), "z".into()], vec!["x".into()])
    );
    assert!(change.states.is_empty() && gathered.is_empty());
}

#[test]
fn of_one_object_the_last_word_counts() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    gathered.take(&a, Said::Listed(Vec::new()));
    gathered.change();
    gathered.take(&a, Said::Applied(object(&a, "x", 1)));
    gathered.take(&a, Said::Applied(object(&a, "x", 2)));
    gathered.take(&a, Said::Applied(object(&a, "y", 1)));
    gathered.take(&a, Said::Deleted(object(&a, "y", 1).key.clone()));
    let (change, decides) = gathered.change();
    assert_eq!(names(&change), (vec!["x".into()], vec!["y".into()]));
    assert_eq!(change.upserts[0].body["spec"]["number"], 2);
    assert!(!decides);
}

#[test]
fn what_is_known_survives_trouble_and_is_stale() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    gathered.take(&a, Said::Trouble("no route to host".into()));
    assert!(!gathered.is_settled(), "nothing is known yet");
    gathered.take(&a, Said::Listed(vec![object(&a, "x", 1)]));
    assert!(gathered.problems().is_empty());
    gathered.change();
    gathered.take(&a, Said::Trouble("connection refused".into()));
    let (change, _) = gathered.change();
    assert_eq!(change.states[0].state, SourceState::Stale);
    assert!(change.upserts.is_empty() && change.deletes.is_empty());
    assert!(gathered.problems()[0].1.contains("stays in use"));
    gathered.take(&a, Said::Resumed);
    assert_eq!(gathered.change().0.states[0].state, SourceState::Complete);
    assert!(gathered.problems().is_empty());
}

#[test]
fn a_forbidden_kind_is_settled_and_told() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    gathered.take(&a, Said::Forbidden("a is forbidden".into()));
    assert!(gathered.is_settled());
    assert_eq!(gathered.change().0.states[0].state, SourceState::Forbidden);
    assert!(gathered.problems()[0].1.contains("grant"));
    gathered.take(&a, Said::Listed(Vec::new()));
    assert_eq!(gathered.change().0.states[0].state, SourceState::Complete);
}

#[test]
fn a_kind_that_goes_takes_its_objects_with_it() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    gathered.take(&a, Said::Listed(vec![object(&a, "x", 1)]));
    gathered.change();
    gathered.absent(&a);
    let (change, _) = gathered.change();
    assert_eq!(names(&change).1, ["x"]);
    assert!(gathered.is_settled());
    gathered.end(&a);
    gathered.change();
    // What its watch has still to say is not heard.
    gathered.take(&a, Said::Applied(object(&a, "x", 1)));
    assert!(gathered.is_empty());
}

#[test]
fn crds_and_profiles_decide_what_is_wanted() {
    let crds = GroupKind::new(groups::APIEXTENSIONS, "CustomResourceDefinition");
    let mut gathered = Gathered::default();
    gathered.begin(&crds);
    gathered.take(&crds, Said::Listed(Vec::new()));
    assert!(gathered.change().1);
    assert!(!gathered.change().1);
}
