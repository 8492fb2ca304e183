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
fn the_defaults_are_valid() {
    let listeners = settings().check().unwrap();
    assert_eq!(listeners.all, [DEFAULT_LISTEN.parse().unwrap()]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let mut invalid = settings();
    invalid.inputs.manifests.clear();
    invalid.listen = ["nowhere", "0.0.0.0:1", "unix:/x", "unix:/x"]
        .map(str::to_owned)
        .into();
    invalid.health_listen = Some("x".to_owned());
    invalid.port_file = Some("p".into());
    invalid.drain_timeout = Duration::MAX;
    invalid.limits.streams = 0;
    invalid.log.filter = Some("=".to_owned());
    let errors = invalid.check().unwrap_err();
    let expected = [
        "no source",
        "`nowhere`",
        "--insecure-listen",
        "given twice",
        "--health-listen",
        "--port-file",
        "--drain-timeout",
        "streams",
        "--log",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_webhook_listens_for_everybody_only_if_that_is_asked_for() {
    let webhook = |listen: &str, client_ca: Option<&str>, any_client: bool| ServeSettings {
        admission: Some(AdmissionSettings {
            listen: listen.to_owned(),
            tls: TlsFiles {
                cert: "tls.crt".into(),
                key: "tls.key".into(),
                client_ca: client_ca.map(Into::into),
            },
            any_client,
            full_names: false,
        }),
        ..settings()
    };
    for valid in [
        webhook("127.0.0.1:1", None, false),
        webhook("0.0.0.0:1", Some("ca.crt"), false),
        webhook("0.0.0.0:1", None, true),
    ] {
        assert!(valid.check().unwrap().admission.is_some());
    }
    for (invalid, expected) in [
        (
            webhook("0.0.0.0:1", None, false),
            "--admission-tls-client-ca",
        ),
        (webhook("unix:/x", None, false), "is a Unix socket"),
        (
            webhook("nowhere", None, true),
            "--admission-listen: `nowhere`",
        ),
    ] {
        let errors = invalid.check().unwrap_err();
        assert!(
            errors.len() == 1 && errors[0].contains(expected),
            "{errors:?}"
        );
    }
}

#[test]
fn the_console_is_on_loopback_and_shows_no_more_than_certificates_permit() {
    let console = |listen: &str| ServeSettings {
        console_listen: Some(listen.to_owned()),
        ..settings()
    };
    let checked = console("[::1]:1").check().unwrap();
    assert!(checked.console.is_some());
    let mut restricted = console("127.0.0.1:1");
    restricted.tls = Some(TlsFiles {
        cert: "tls.crt".into(),
        key: "tls.key".into(),
        client_ca: Some("ca.crt".into()),
    });
    restricted.check().unwrap();
    let mut of_proxies = restricted.clone();
    of_proxies.data_plane_sans = vec!["proxy.svc".to_owned()];
    restricted.insight_sans = vec!["ana.svc".to_owned()];
    for (invalid, expected) in [
        (console("0.0.0.0:1"), "kubectl port-forward"),
        (console("unix:/x"), "is a Unix socket"),
        (console("nowhere"), "--console-listen: `nowhere`"),
        (restricted, "--insight-auth kubernetes"),
        (of_proxies, "--insight-auth kubernetes"),
    ] {
        let errors = invalid.check().unwrap_err();
        assert!(
            errors.len() == 1 && errors[0].contains(expected),
            "{errors:?}"
        );
    }
}

#[test]
fn a_non_loopback_address_needs_the_insecure_flag() {
    let mut open = settings();
    open.listen = vec!["0.0.0.0:1".to_owned()];
    open.health_listen = Some("0.0.0.0:2".to_owned());
    assert_eq!(open.check().unwrap_err().len(), 1);
    open.insecure_listen = true;
    open.check().unwrap();
}

#[test]
fn port_zero_may_be_given_twice() {
    let mut settings = settings();
    settings.listen = vec!["127.0.0.1:0".to_owned(); 2];
    assert_eq!(settings.check().unwrap().all.len(), 2);
}

#[test]
fn a_non_loopback_address_is_allowed_with_client_certificates() {
    let mut open = settings();
    open.listen = vec!["0.0.0.0:1".to_owned()];
    open.tls = Some(TlsFiles {
        cert: "c".into(),
        key: "k".into(),
        client_ca: None,
    });
    // TLS without a client CA does not authenticate clients.
    assert_eq!(open.check().unwrap_err().len(), 1);
    open.data_plane_sans = vec!["proxy.svc".to_owned(), "*".to_owned()];
    let errors = open.check().unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:#?}");
    open.data_plane_sans.pop();
    if let Some(tls) = &mut open.tls {
        tls.client_ca = Some("a".into());
    }
    assert_eq!(open.check().unwrap().lists.data_plane.len(), 1);
}

#[test]
fn checkpoints_need_a_cluster() {
    let mut settings = settings();
    settings.checkpoint = Some("c".into());
    settings.admin_listen = Some("unix:/x".to_owned());
    let errors = settings.check().unwrap_err().join("\n");
    assert!(errors.contains("--kube"), "{errors}");
    assert!(errors.contains("--admin-socket"), "{errors}");
    settings.inputs.manifests.clear();
    settings.inputs.cluster = Some(ClusterSettings::default());
    settings.admin_listen = Some("127.0.0.1:0".to_owned());
    settings.check().unwrap();
}
