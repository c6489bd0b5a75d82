//! A server behind TLS that knows its clients: the whole job over it, and each way to get it wrong.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use triton_gate::simulate::{Running, Server, SimulateSpec, TlsSpec};

use crate::program::{Ended, Folder, Thresholds};
use crate::server::{at, model};

/// A server whose certificate is for `triton.test`, and a folder with `ca.pem`, the client's
/// `client.pem` and `client.key`, and `other-ca.pem`, an authority that nobody knows.
fn serve() -> (Running, Folder) {
    let folder = Folder::new();
    let authority = || {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params, key).expect("an authority")
    };
    let known = authority();
    folder.write("ca.pem", &known.pem());
    folder.write("other-ca.pem", &authority().pem());
    for (file, name) in [("server", "triton.test"), ("client", "gate.test")] {
        let key = KeyPair::generate().expect("a key");
        let cert = CertificateParams::new(vec![name.to_owned()])
            .and_then(|params| params.signed_by(&key, &known))
            .expect("a certificate");
        folder.write(&format!("{file}.pem"), &cert.pem());
        folder.write(&format!("{file}.key"), &key.serialize_pem());
    }
    let mut spec = SimulateSpec::on_free_port().model(model("m"));
    spec.tls = Some(TlsSpec {
        cert: folder.path().join("server.pem"),
        key: folder.path().join("server.key"),
        client_ca: Some(folder.path().join("ca.pem")),
    });
    (Server::start(spec).expect("a server"), folder)
}

const RIGHT: &str =
    r#"{ ca = "ca.pem", cert = "client.pem", key = "client.key", domain = "triton.test" }"#;

fn run(folder: &Folder, thresholds: &Thresholds, command: &[&str]) -> Ended {
    folder.write("t.toml", &thresholds.text());
    folder.run(&[command, &["-c", "t.toml"]].concat())
}

#[test]
fn a_model_is_gated_over_tls() {
    let (server, folder) = serve();
    let right = at(&server.url()).server("tls", RIGHT);
    run(&folder, &right, &["baseline", "record"])
        .code(0)
        .says(&["recorded a"]);
    run(&folder, &right, &["check"]).code(0).says(&["PASS"]);
    let slow = right.scenario("version", "\"2\"");
    run(&folder, &slow, &["check"])
        .code(1)
        .says(&["REGRESSION: a"]);
}

#[test]
fn each_way_to_get_it_wrong_is_named() {
    let (server, folder) = serve();
    let url = server.url();
    let without_client = r#"{ ca = "ca.pem", domain = "triton.test" }"#;
    for (tls, code, said) in [
        (RIGHT.replace("triton.test", "other.test"), 3, "tls.domain"),
        (RIGHT.replace("\"ca.pem\"", "\"other-ca.pem\""), 3, "tls.ca"),
        (without_client.to_owned(), 3, "certificate"),
        (RIGHT.replace("client.pem", "nothing.pem"), 3, "nothing.pem"),
        (RIGHT.replace("client.key", "ca.pem"), 3, "tls.key"),
        (
            r#"{ cert = "client.pem" }"#.to_owned(),
            2,
            "cert and key belong together",
        ),
        (r#"{ certs = "client.pem" }"#.to_owned(), 2, "certs"),
    ] {
        let ended = run(&folder, &at(&url).server("tls", &tls), &["measure"]);
        ended.code(code).says(&[said]);
    }
    run(&folder, &at(&url), &["measure"]).code(3).says(&["TLS"]);
}

#[test]
fn a_server_without_its_files_does_not_start() {
    let folder = Folder::new();
    folder.write(
        "s.toml",
        "listen = \"127.0.0.1:0\"\ntls = { cert = \"a.pem\", key = \"a.key\" }\n[[model]]\nname = \"m\"\n",
    );
    folder
        .run(&["simulate", "-c", "s.toml"])
        .code(2)
        .says(&["failed to use the TLS file a.pem"]);
    folder.write(
        "a.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    folder.write(
        "a.key",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    folder
        .run(&["simulate", "-c", "s.toml"])
        .code(2)
        .says(&["failed to use the TLS file a.pem: with its key"]);
}
