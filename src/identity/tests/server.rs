//! A webhook on loopback, and clients that it must not wait for.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::dir::fresh_dir;
use super::{cases, review};
use crate::certificate::{Certificate, End};
use crate::kept::Validity;
use crate::server::healthy;
use crate::{Error, Webhook};

/// Longer than any limit, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory, removed when dropped.
struct Dir(PathBuf);

impl Deref for Dir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One with a new certificate for localhost.
fn certificates() -> Dir {
    let dir = Dir(fresh_dir("ovnkube-identity"));
    renew(&dir);
    dir
}

fn renew(dir: &Path) {
    let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 2 \
                -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout tls.key -out tls.crt";
    openssl(dir, args);
}

fn openssl(dir: &Path, args: &str) {
    let out = Command::new("openssl").current_dir(dir).args(args.split_whitespace()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Serves, and returns the port.
async fn up(dir: &Path) -> u16 {
    let webhook = Webhook::listen(([127, 0, 0, 1], 0).into(), dir).await.unwrap();
    let port = webhook.address().unwrap().port();
    tokio::spawn(webhook.serve());
    port
}

/// A connection that trusts only this certificate.
async fn connect(port: u16, trusted: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// Sends bytes and reads until the server closes the connection.
async fn exchange(port: u16, dir: &Path, request: &[u8]) -> String {
    let mut stream = connect(port, &std::fs::read(dir.join("tls.crt")).unwrap()).await.unwrap();
    // the server may answer and close before all of it is sent
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is closed");
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn reviews_are_answered_over_tls() {
    let dir = certificates();
    let port = up(&dir).await;
    for case in cases::all().iter().take(8) {
        let answer = exchange(port, &dir, &post("/node", &review(case).to_string())).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains(&format!("\"allowed\":{}", case.denied.is_none())), "{answer}");
    }
    for (request, status) in [
        (post("/pod", "{"), "400 Bad Request"),
        (post("/elsewhere", "{}"), "404 Not Found"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), "200 OK"),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), "200 OK"),
        (b"nonsense\r\n\r\n".to_vec(), "400 Bad Request"),
    ] {
        let answer = exchange(port, &dir, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[tokio::test]
async fn limits_hold() {
    let dir = certificates();
    let port = up(&dir).await;
    let large =
        format!("POST /node HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000001\r\n\r\n{}", " ".repeat(3_000_001));
    let answer = exchange(port, &dir, large.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("\"allowed\":false"), "{answer}");

    let began = Instant::now();
    let slow = "POST /node HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{";
    let (body, header) = tokio::join!(exchange(port, &dir, slow.as_bytes()), exchange(port, &dir, b"POST /node"));
    assert!(body.starts_with("HTTP/1.1 408") && !header.contains("200"), "{body} {header}");
    assert!(began.elapsed() >= Duration::from_secs(4));

    // clients that never begin TLS take all places, for five seconds
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let answer = exchange(port, &dir, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_renewed_certificate_is_shown() {
    let dir = certificates();
    let port = up(&dir).await;
    let old = std::fs::read(dir.join("tls.crt")).unwrap();
    connect(port, &old).await.unwrap();
    renew(&dir);
    let new = std::fs::read(dir.join("tls.crt")).unwrap();
    let began = Instant::now();
    while connect(port, &new).await.is_err() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    connect(port, &old).await.unwrap_err();
    // what cannot be used is not shown
    std::fs::write(dir.join("tls.crt"), &old).unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    connect(port, &new).await.unwrap();
    std::fs::remove_file(dir.join("tls.key")).unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    connect(port, &new).await.unwrap();
}

/// No API server trusts it then: people hear of it before, and probes when it is over.
#[test]
fn the_end_of_a_certificate_is_told() {
    let (now, day) = (SystemTime::now(), Duration::from_secs(24 * 60 * 60));
    for (before, after, end) in [(3650, 31, End::Far), (3650, 29, End::Soon), (3650, 0, End::Over), (8, 3, End::Far)] {
        let validity = Validity { not_before: now - day * before, not_after: now + day * after };
        assert_eq!(End::of(Some(validity), now), end, "{before} {after}");
    }
    let days = Validity { not_before: now - day * 9, not_after: now + day };
    assert_eq!((End::of(Some(days), now), End::of(Some(days), now + day * 2)), (End::Soon, End::Over));

    let dir = certificates();
    let certificate = Certificate::read(&dir, Arc::new(rustls::crypto::ring::default_provider())).unwrap();
    assert_eq!((certificate.fault(), healthy(&certificate).status().as_u16()), (None, 200));
    openssl(&dir, "x509 -in tls.crt -signkey tls.key -days -1 -out over.crt");
    std::fs::rename(dir.join("over.crt"), dir.join("tls.crt")).unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    let fault = certificate.fault().unwrap();
    assert!(fault.contains("tls.crt ended at 20") && fault.ends_with("; renew it"), "{fault}");
    assert_eq!(healthy(&certificate).status().as_u16(), 503);
    renew(&dir);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!((certificate.fault(), healthy(&certificate).status().as_u16()), (None, 200));
}

#[tokio::test]
async fn faults_at_the_start_are_clear() {
    let dir = certificates();
    let listen = async |dir: &Path| match Webhook::listen(([127, 0, 0, 1], 0).into(), dir).await {
        Ok(_) => panic!("it listens"),
        Err(error) => error.to_string(),
    };
    let error = listen(&dir.join("nowhere")).await;
    assert!(error.contains("nowhere/tls.crt") && error.contains("; --webhook-cert-dir names the directory"), "{error}");
    let old = std::fs::read(dir.join("tls.crt")).unwrap();
    renew(&dir);
    let new = std::fs::read(dir.join("tls.crt")).unwrap();
    for (content, words) in [(&b""[..], "there is no certificate in it"), (&old, "give the certificate of that key")] {
        std::fs::write(dir.join("tls.crt"), content).unwrap();
        let error = listen(&dir).await;
        assert!(error.contains(words), "{error}");
    }
    std::fs::write(dir.join("tls.crt"), &new).unwrap();
    std::fs::write(dir.join("tls.key"), &new).unwrap();
    assert!(listen(&dir).await.contains("give a private key without a passphrase as PEM"));
    renew(&dir);
    let port = up(&dir).await;
    let taken = Webhook::listen(([127, 0, 0, 1], port).into(), &dir).await;
    assert!(matches!(taken, Err(Error::Listen { .. })));
}
