//! Which requests are approved: a table.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
};
use ovnkube_watch::Verdict;
use x509_cert::attr::{Attribute, Attributes};
use x509_cert::der::asn1::{ObjectIdentifier, OctetString};
use x509_cert::ext::Extension;
use x509_cert::request::ExtensionReq;

use crate::approval::{LONGEST, judge};
use crate::key::Key;
use crate::names::is_node_name;

const AGENT: &str = "CN=system:ovn-node:own,O=system:ovn-nodes";

fn signed(subject: &str, attributes: Attributes) -> ByteString {
    ByteString(Key::new(subject, attributes).unwrap().request.into_bytes())
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&text| text.to_owned()).collect()
}

/// As the kubelet of the node `own` makes it.
fn request() -> CertificateSigningRequest {
    let spec = CertificateSigningRequestSpec {
        request: signed(AGENT, Attributes::default()),
        signer_name: "kubernetes.io/kube-apiserver-client".into(),
        username: Some("system:node:own".into()),
        groups: Some(texts(&["system:nodes", "system:authenticated"])),
        usages: Some(texts(&["digital signature", "client auth"])),
        expiration_seconds: Some(600),
        ..CertificateSigningRequestSpec::default()
    };
    CertificateSigningRequest { spec, ..CertificateSigningRequest::default() }
}

fn subject(request: &mut CertificateSigningRequest, text: &str) {
    request.spec.request = signed(text, Attributes::default());
}

fn user(request: &mut CertificateSigningRequest, name: &str) {
    request.spec.username = Some(name.to_owned());
}

fn groups(request: &mut CertificateSigningRequest, all: &[&str]) {
    request.spec.groups = Some(texts(all));
}

fn usages(request: &mut CertificateSigningRequest, all: &[&str]) {
    request.spec.usages = Some(texts(all));
}

/// Changes the text of the request.
fn text(request: &mut CertificateSigningRequest, change: impl Fn(&str) -> String) {
    let text = String::from_utf8(request.spec.request.0.clone()).unwrap();
    request.spec.request = ByteString(change(&text).into_bytes());
}

/// How a text is changed.
type Written = fn(&str) -> String;

/// A request that no approver should let a node make.
fn of_controller_manager() -> String {
    String::from_utf8(signed("CN=system:kube-controller-manager", Attributes::default()).0).unwrap()
}

fn alternative_name() -> Attributes {
    let name = [b"\x30\x07\x82\x05".as_slice(), b"other"].concat();
    let extension = Extension {
        extn_id: ObjectIdentifier::new_unwrap("2.5.29.17"),
        critical: false,
        extn_value: OctetString::new(name).unwrap(),
    };
    let attribute = Attribute::try_from(ExtensionReq(vec![extension])).unwrap();
    Attributes::try_from(vec![attribute]).unwrap()
}

fn condition(kind: &str) -> CertificateSigningRequestStatus {
    let condition = CertificateSigningRequestCondition {
        type_: kind.into(),
        status: "True".into(),
        ..CertificateSigningRequestCondition::default()
    };
    CertificateSigningRequestStatus { conditions: Some(vec![condition]), ..CertificateSigningRequestStatus::default() }
}

fn issued() -> CertificateSigningRequestStatus {
    CertificateSigningRequestStatus {
        certificate: Some(ByteString(vec![1])),
        ..CertificateSigningRequestStatus::default()
    }
}

/// The signer reads the text itself: where it may find another request, nothing is approved.
#[test]
fn a_text_with_two_readings_is_denied() {
    let one: &[(&str, Written)] =
        &[("as it is", str::to_owned), ("no newline at the end", |text| text.trim_end().to_owned())];
    for (what, change) in one {
        let mut request = request();
        text(&mut request, change);
        assert!(judge(&request).is_some_and(|verdict| verdict.is_approved), "{what}");
    }
    let many: &[(&str, Written)] = &[
        ("two blocks", |text| text.to_owned() + &of_controller_manager()),
        ("another block first", |text| of_controller_manager() + text),
        // Rust takes the first block, Go the second one
        ("a block with an odd end first", |text| format!("{}x\n{}", text.trim_end(), of_controller_manager())),
        ("a block with an odd end last", |text| format!("{}x\n{text}", of_controller_manager().trim_end())),
        ("an odd end", |text| format!("{}x\n", text.trim_end())),
        ("text before", |text| format!("Certificate Request:\n{text}")),
        ("a line before", |text| format!("\n{text}")),
        ("text after", |text| format!("{text}x")),
        ("a line after", |text| format!("{text}\n")),
        ("headers", |text| text.replacen("-----\n", "-----\nProc-Type: 4\n\n", 1)),
        ("CR", |text| text.replace('\n', "\r")),
        ("CR LF", |text| text.replace('\n', "\r\n")),
        ("other lines", |text| text.replacen("-----\nM", "-----\n M", 1)),
        ("one line of base64", |text| {
            let der = pem::parse(text).unwrap();
            pem::encode_config(&der, crate::key::LINES.set_line_wrap(100_000))
        }),
        ("another kind", |text| text.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")),
        ("no PEM", |_| "x".to_owned()),
        ("nothing", |_| String::new()),
    ];
    for (what, change) in many {
        for asker in ["system:node:own", "system:ovn-node:own"] {
            let mut request = request();
            user(&mut request, asker);
            text(&mut request, change);
            let verdict = judge(&request).expect(what);
            assert!(!verdict.is_approved && verdict.message.contains("is not one block"), "{what}: {verdict:?}");
        }
    }
}

/// Longer texts are not read, and not repeated in the verdict.
#[test]
fn a_long_text_is_denied_in_few_words() {
    let subject = format!("CN=system:ovn-node:{},O=system:ovn-nodes", "x".repeat(30_000));
    let mut long = request();
    long.spec.request = signed(&subject, Attributes::default());
    let verdict = judge(&long).unwrap();
    assert!(!verdict.is_approved && verdict.message.contains("; 16384 are the most"), "{verdict:?}");
    assert!(verdict.message.len() < 100, "{verdict:?}");
}

/// What is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    Approved,
    Ignored,
    /// With a message that contains this.
    Denied(&'static str),
}

type Change = fn(&mut CertificateSigningRequest);

#[test]
fn a_node_gets_the_certificate_of_its_own_agent_and_no_other() {
    let cases: &[(&str, Change, Is)] = &[
        ("a kubelet", |_| {}, Is::Approved),
        ("usages in another order", |r| usages(r, &["client auth", "digital signature"]), Is::Approved),
        ("the longest time", |r| r.spec.expiration_seconds = Some(LONGEST), Is::Approved),
        ("a subject in another order", |r| subject(r, "O=system:ovn-nodes,CN=system:ovn-node:own"), Is::Approved),
        (
            "an agent renews",
            |r| {
                user(r, "system:ovn-node:own");
                groups(r, &["system:ovn-nodes", "system:authenticated"]);
            },
            Is::Approved,
        ),
        ("another signer", |r| r.spec.signer_name = "example.com/signer".into(), Is::Ignored),
        ("somebody's certificate", |r| subject(r, "CN=somebody"), Is::Ignored),
        ("a kubelet's certificate", |r| subject(r, "CN=system:node:own,O=system:nodes"), Is::Ignored),
        (
            "no PEM, of somebody",
            |r| {
                user(r, "somebody");
                text(r, |_| "x".to_owned());
            },
            Is::Ignored,
        ),
        ("approved already", |r| r.status = Some(condition("Approved")), Is::Ignored),
        ("denied already", |r| r.status = Some(condition("Denied")), Is::Ignored),
        ("failed already", |r| r.status = Some(condition("Failed")), Is::Ignored),
        ("issued already", |r| r.status = Some(issued()), Is::Ignored),
        ("a status without conditions", |r| r.status = Some(CertificateSigningRequestStatus::default()), Is::Approved),
        ("somebody asks", |r| user(r, "somebody"), Is::Denied("somebody is neither a kubelet nor a node agent")),
        ("nobody asks", |r| r.spec.username = None, Is::Denied("neither a kubelet nor a node agent")),
        (
            "an account asks",
            |r| user(r, "system:serviceaccount:ovn-kubernetes:ovn-node"),
            Is::Denied("neither a kubelet"),
        ),
        (
            "another kubelet",
            |r| user(r, "system:node:other"),
            Is::Denied("that of the agent of system:node:other is CN=system:ovn-node:other"),
        ),
        (
            "another agent",
            |r| {
                user(r, "system:ovn-node:other");
                groups(r, &["system:ovn-nodes"]);
            },
            Is::Denied("the subject is CN=system:ovn-node:own"),
        ),
        ("no name", |r| user(r, "system:node:"), Is::Denied("is no name of a Node")),
        ("a name of two parts", |r| user(r, "system:node:a:own"), Is::Denied("is no name of a Node")),
        ("no groups", |r| r.spec.groups = None, Is::Denied("it should have system:nodes")),
        ("not a kubelet's group", |r| groups(r, &["system:ovn-nodes"]), Is::Denied("it should have system:nodes")),
        ("not an agent's group", |r| user(r, "system:ovn-node:own"), Is::Denied("it should have system:ovn-nodes")),
        ("a foreign group too", |r| groups(r, &["system:nodes", "system:masters"]), Is::Denied("no foreign one")),
        ("no usages", |r| r.spec.usages = None, Is::Denied("the usages are ")),
        (
            "one usage only",
            |r| usages(r, &["client auth"]),
            Is::Denied("they should be client auth, digital signature"),
        ),
        (
            "a usage more",
            |r| usages(r, &["digital signature", "client auth", "server auth"]),
            Is::Denied("server auth"),
        ),
        (
            "no organization",
            |r| subject(r, "CN=system:ovn-node:own"),
            Is::Denied("the subject is CN=system:ovn-node:own;"),
        ),
        (
            "another organization",
            |r| subject(r, "CN=system:ovn-node:own,O=system:masters"),
            Is::Denied("O=system:masters"),
        ),
        (
            "an organization more",
            |r| subject(r, "CN=system:ovn-node:own,O=system:ovn-nodes,O=system:masters"),
            Is::Denied("O=system:masters"),
        ),
        (
            "two in one part",
            |r| subject(r, "CN=system:ovn-node:own,O=system:ovn-nodes+O=system:masters"),
            Is::Denied("O=system:masters"),
        ),
        (
            "another name too",
            |r| subject(r, "CN=system:ovn-node:own,CN=admin,O=system:ovn-nodes"),
            Is::Denied("CN=admin"),
        ),
        ("a unit", |r| subject(r, "CN=system:ovn-node:own,O=system:ovn-nodes,OU=x"), Is::Denied("OU=x")),
        (
            "an agent of no node",
            |r| subject(r, "CN=system:ovn-node:,O=system:ovn-nodes"),
            Is::Denied("the subject is CN=system:ovn-node:,"),
        ),
        (
            "a name like an agent's",
            |r| subject(r, "CN=system:ovn-nodes-own,O=system:ovn-nodes"),
            Is::Denied("the subject is"),
        ),
        (
            "an alternative name",
            |r| r.spec.request = signed(AGENT, alternative_name()),
            Is::Denied("it asks for extensions"),
        ),
        ("no time", |r| r.spec.expiration_seconds = None, Is::Denied("for how long")),
        ("too long a time", |r| r.spec.expiration_seconds = Some(LONGEST + 1), Is::Denied("31536000 s are the most")),
    ];
    for (what, change, expected) in cases {
        let mut request = request();
        change(&mut request);
        let got = judge(&request);
        match (expected, &got) {
            (Is::Approved, Some(Verdict { is_approved: true, .. })) | (Is::Ignored, None) => {}
            (Is::Denied(part), Some(Verdict { is_approved: false, message })) if message.contains(part) => {}
            _ => panic!("{what}: {got:?}, not {expected:?}"),
        }
    }
}

#[test]
fn names_of_nodes() {
    for name in ["a", "own", "n1.example.com", "0", "a-b", &"a".repeat(253)] {
        assert!(is_node_name(name), "{name}");
    }
    for name in ["", ".", "a.", ".a", "-a", "a-", "A", "a b", "a:b", "a_b", "a..b", &"a".repeat(254)] {
        assert!(!is_node_name(name), "{name}");
    }
}

#[test]
fn no_request_makes_it_panic() {
    let der = {
        let pem = request().spec.request.0;
        pem::parse(pem).unwrap().into_contents()
    };
    bolero::check!().with_type::<Vec<(u16, u8)>>().for_each(|changes| {
        let mut der = der.clone();
        for (at, byte) in changes {
            let at = usize::from(*at) % der.len();
            der[at] = *byte;
        }
        let mut changed = request();
        changed.spec.request = ByteString(pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der)).into_bytes());
        judge(&changed);
    });
}
