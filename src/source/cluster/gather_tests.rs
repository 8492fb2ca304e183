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
    let crds = GroupKind::crd();
    let mut gathered = Gathered::default();
    gathered.begin(&crds);
    gathered.take(&crds, Said::Listed(Vec::new()));
    assert!(gathered.change().1);
    assert!(!gathered.change().1);
}

#[test]
fn what_was_known_before_the_start_stays_until_the_first_list() {
    let (a, b) = (kind("A"), kind("B"));
    let (x, y) = (object(&a, "x", 1), object(&a, "y", 1));
    let mut gathered = Gathered::default();
    gathered.seed(Known::from([
        (a.clone(), [x.key.clone(), y.key.clone()].into()),
        (b.clone(), BTreeSet::new()),
    ]));
    gathered.begin(&a);
    gathered.begin(&b);
    assert!(gathered.is_seed(&a) && !gathered.is_settled() && gathered.is_behind());
    // Nothing is told of what is known already.
    assert!(gathered.is_empty());
    gathered.take(&a, Said::Trouble("no".to_owned()));
    assert!(gathered.is_seed(&a));
    gathered.take(&a, Said::Listed(vec![object(&a, "y", 2)]));
    gathered.take(&b, Said::Listed(Vec::new()));
    assert!(gathered.is_settled() && !gathered.is_behind());
    let (change, _) = gathered.change();
    assert_eq!(names(&change), (vec!["y".into()], vec!["x".into()]));
    let states: Vec<_> = change.states.iter().map(|told| told.state).collect();
    assert_eq!(states, [SourceState::Complete; 2]);
}

#[test]
fn a_kind_that_is_gone_takes_along_what_was_known_before_the_start() {
    let a = kind("A");
    let mut gathered = Gathered::default();
    gathered.seed(Known::from([(
        a.clone(),
        [object(&a, "x", 1).key.clone()].into(),
    )]));
    gathered.absent(&a);
    assert!(gathered.is_settled());
    assert_eq!(names(&gathered.change().0).1, ["x"]);
}

#[test]
fn a_list_on_its_way_is_not_in_step() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    assert!(gathered.is_loading());
    gathered.take(&a, Said::Listing);
    gathered.take(&a, Said::Listed(vec![object(&a, "x", 1)]));
    assert!(!gathered.is_behind() && !gathered.is_loading());
    gathered.change();
    // What was missed comes with another list.
    gathered.take(&a, Said::Listing);
    assert!(gathered.is_behind() && gathered.is_empty());
    gathered.take(&a, Said::Listed(vec![object(&a, "x", 1)]));
    assert!(!gathered.is_behind());
    // Served at another version: what is known stays.
    gathered.change();
    gathered.doubt(&a);
    let (change, _) = gathered.change();
    assert!(change.deletes.is_empty());
    assert_eq!(change.states[0].state, SourceState::Stale);
}

#[test]
fn what_cannot_be_read_is_not_on_its_way() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    gathered.take(&a, Said::Trouble("no".to_owned()));
    assert!(!gathered.is_loading() && !gathered.is_settled());
}

#[test]
fn what_was_never_kept_does_not_go() {
    let (a, mut gathered) = (kind("A"), Gathered::default());
    gathered.begin(&a);
    gathered.take(&a, Said::Listed(Vec::new()));
    gathered.change();
    gathered.take(&a, Said::Deleted(object(&a, "x", 1).key.clone()));
    assert!(gathered.is_empty());
}
