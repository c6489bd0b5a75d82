//! Servers of a test's own: killed, changed, and with models loaded on request.

use std::collections::BTreeSet;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::program::Folder;
use crate::triton::{Private, sleep_only, thresholds};

#[test]
fn a_server_killed_while_it_is_measured() {
    let folder = Folder::new();
    let server = Private::up("killed", Some(&sleep_only(folder.path())), &[]);
    let long = thresholds(&server.url, "sleep", "sleep").gate("on_missing", "\"new\"");
    folder.write(
        "t.toml",
        &long
            .measure("block", "\"2s\"")
            .gate("budget", "\"60s\"")
            .text(),
    );
    let mut program = folder.start(&["check", "-c", "t.toml", "--json", "-"]);
    program.wait_for("measuring");
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.kill();
    let ended = program.wait().code(3);
    assert_eq!(ended.json()["verdict"], "invalid");
    assert!(ended.stderr.contains("next:"), "{}", ended.stderr);
    // No process of its models is left once it is swept up.
    assert_eq!(server.down(), [""; 0]);
}

#[test]
fn a_changed_configuration_is_judged_and_named() {
    let folder = Folder::new();
    let repository = sleep_only(folder.path());
    let before = Private::up("before", Some(&repository), &[]);
    let of = |url: &str| thresholds(url, "sleep", "sleep").text();
    folder.write("t.toml", &of(&before.url));
    folder.run(&["baseline", "record", "-c", "t.toml"]).code(0);
    drop(before);

    let config = "models/sleep/config.pbtxt";
    let text = folder.read(config);
    let fewer = text.replace("count: 4", "count: 2");
    assert_ne!(text, fewer);
    folder.write(config, &fewer);
    let after = Private::up("after", Some(&repository), &[]);
    folder.write("t.toml", &of(&after.url));
    let ended = folder.run(&["check", "-c", "t.toml", "--json", "r.json"]);
    // Half the instances for the same load: comparable, and no pass.
    assert!(matches!(ended.code, Some(1 | 4)), "{ended:?}");
    ended.says(&["what changed", "instance_group"]);
    let changes = &folder.json("r.json")["subject_changes"];
    let counts: Vec<_> = changes
        .as_array()
        .expect("a list")
        .iter()
        .filter(|change| {
            change["field"]
                .as_str()
                .is_some_and(|field| field.contains("instance"))
        })
        .collect();
    assert!(!counts.is_empty(), "{changes}");
}

#[test]
fn sessions_with_models_loaded_on_request_are_lives_of_their_own() {
    let folder = Folder::new();
    let repository = sleep_only(folder.path());
    let server = Private::up("explicit", Some(&repository), &["--explicit"]);
    let explicit =
        thresholds(&server.url, "sleep", "sleep").server("model_control", "\"explicit\"");
    folder.write("t.toml", &explicit.text());
    let ended = folder
        .run(&[
            "baseline",
            "record",
            "-c",
            "t.toml",
            "--sessions",
            "2",
            "--duration",
            "2s",
        ])
        .code(0);
    assert!(!ended.stderr.contains("count as one"), "{}", ended.stderr);
    let lives: BTreeSet<String> = folder
        .files("baselines", ".csv")
        .iter()
        .map(|file| {
            let mut rows = csv::Reader::from_path(file).expect("a session");
            let header = rows.headers().expect("a header").clone();
            let column = header.iter().position(|name| name == "life").expect("life");
            let row = rows.records().next().expect("a row").expect("CSV");
            row[column].to_owned()
        })
        .collect();
    assert_eq!(lives.len(), 2, "{lives:?}");
    assert!(!lives.contains(""), "{lives:?}");
    // Unloaded again: the next check loads it.
    let ended = folder.run(&["check", "-c", "t.toml"]);
    assert!(matches!(ended.code, Some(0 | 1 | 4)), "{ended:?}");
}

#[test]
fn a_server_behind_tls_that_knows_its_clients() {
    let folder = Folder::new();
    let repository = sleep_only(folder.path());
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Triton's TLS library takes a certificate for self-signed whose issuer has its own name.
    params
        .distinguished_name
        .push(DnType::CommonName, "the authority");
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
    folder.write("ca.pem", &authority.pem());
    for (file, name) in [("server", "localhost"), ("client", "gate.test")] {
        let key = KeyPair::generate().expect("a key");
        let cert = CertificateParams::new(vec![name.to_owned()])
            .and_then(|params| params.signed_by(&key, &authority))
            .expect("a certificate");
        folder.write(&format!("{file}.pem"), &cert.pem());
        folder.write(&format!("{file}.key"), &key.serialize_pem());
    }
    let file =
        |option: &str, name: &str| format!("--{option}={}", folder.path().join(name).display());
    let options = [
        "--".to_owned(),
        "--grpc-use-ssl=1".to_owned(),
        "--grpc-use-ssl-mutual=1".to_owned(),
        file("grpc-server-cert", "server.pem"),
        file("grpc-server-key", "server.key"),
        file("grpc-root-cert", "ca.pem"),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Private::up("tls", Some(&repository), &options);

    let plain = thresholds(&server.url, "sleep", "sleep");
    folder.write("plain.toml", &plain.text());
    folder
        .run(&["measure", "-c", "plain.toml"])
        .code(3)
        .says(&["TLS"]);
    let right = plain.server(
        "tls",
        r#"{ ca = "ca.pem", cert = "client.pem", key = "client.key", domain = "localhost" }"#,
    );
    folder.write("t.toml", &right.text());
    folder.run(&["baseline", "record", "-c", "t.toml"]).code(0);
    let again = folder.run(&["check", "-c", "t.toml"]);
    assert!(matches!(again.code, Some(0 | 4)), "{again:?}");
}
