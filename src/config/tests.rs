use super::*;

fn settings() -> ServeSettings {
    let inputs = Inputs {
        manifests: vec!["a".into()],
        ..Inputs::default()
    };
    ServeSettings {
        inputs,
        ..ServeSettings::default()
    }
}

#[test]
fn defaults_are_right() {
    let listeners = settings().check().unwrap();
    assert_eq!(listeners.all, [DEFAULT_LISTEN.parse().unwrap()]);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let mut wrong = settings();
    wrong.inputs.manifests.clear();
    wrong.listen = ["nowhere", "0.0.0.0:1", "unix:/x", "unix:/x"]
        .map(str::to_owned)
        .into();
    wrong.health_listen = Some("x".to_owned());
    wrong.port_file = Some("p".into());
    wrong.drain_timeout = Duration::MAX;
    wrong.limits.streams = 0;
    wrong.log.filter = Some("=".to_owned());
    let told = wrong.check().unwrap_err();
    let words = [
        "nothing to read",
        "`nowhere`",
        "--insecure-listen",
        "stands twice",
        "--health-listen",
        "--port-file",
        "--drain-timeout",
        "streams",
        "--log",
    ];
    assert_eq!(told.len(), words.len(), "{told:#?}");
    for (told, word) in told.iter().zip(words) {
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn an_open_listener_has_to_be_asked_for() {
    let mut open = settings();
    open.listen = vec!["0.0.0.0:1".to_owned()];
    open.health_listen = Some("0.0.0.0:2".to_owned());
    assert_eq!(open.check().unwrap_err().len(), 1);
    open.insecure_listen = true;
    open.check().unwrap();
}

#[test]
fn any_port_may_be_asked_for_twice() {
    let mut settings = settings();
    settings.listen = vec!["127.0.0.1:0".to_owned(); 2];
    assert_eq!(settings.check().unwrap().all.len(), 2);
}

#[test]
fn callers_that_are_known_may_come_from_afar() {
    let mut open = settings();
    open.listen = vec!["0.0.0.0:1".to_owned()];
    open.tls = Some(TlsFiles {
        cert: "c".into(),
        key: "k".into(),
        client_ca: None,
    });
    // TLS alone lets everybody in.
    assert_eq!(open.check().unwrap_err().len(), 1);
    open.data_plane_sans = vec!["proxy.svc".to_owned(), "*".to_owned()];
    let told = open.check().unwrap_err();
    assert_eq!(told.len(), 3, "{told:#?}");
    open.data_plane_sans.pop();
    if let Some(tls) = &mut open.tls {
        tls.client_ca = Some("a".into());
    }
    assert_eq!(open.check().unwrap().lists.data_plane.len(), 1);
}

#[test]
fn checkpoints_are_of_clusters() {
    let mut settings = settings();
    settings.checkpoint = Some("c".into());
    settings.admin_listen = Some("unix:/x".to_owned());
    let told = settings.check().unwrap_err();
    assert!(told.iter().any(|told| told.contains("--kube")), "{told:?}");
    assert!(
        told.iter().any(|told| told.contains("--admin-socket")),
        "{told:?}"
    );
    settings.inputs.manifests.clear();
    settings.inputs.cluster = Some(ClusterSettings::default());
    settings.admin_listen = Some("127.0.0.1:0".to_owned());
    settings.check().unwrap();
}
