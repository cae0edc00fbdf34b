//! The rules on the cases that the policies are tested with, the limits of the server, and certificates of agents.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod approval;
#[path = "../../tests/identity/cases.rs"]
#[allow(unreachable_pub, dead_code, reason = "shared with the tests of the binary")]
mod cases;
#[path = "../../tests/dir.rs"]
#[allow(unreachable_pub, reason = "of the crate of tests")]
mod dir;
mod kept;
mod server;

use serde_json::{Value, json};

use crate::{Answer, answer};
use cases::Case;

fn user(name: &str) -> Value {
    let account = |node: Value| {
        let name = "system:serviceaccount:ovn-kubernetes:ovn-node";
        json!({"username": name, "groups": ["system:serviceaccounts"], "extra": node})
    };
    match name {
        "agent" => account(json!({"authentication.kubernetes.io/node-name": ["own"]})),
        "agent-of-nobody" => account(json!({})),
        "certificate" => json!({"username": "system:ovn-node:own", "groups": ["system:ovn-nodes"]}),
        "certificate-of-nobody" => json!({"username": "somebody", "groups": ["system:ovn-nodes"]}),
        "kubelet" => json!({"username": "system:node:own", "groups": ["system:nodes", "system:authenticated"]}),
        "kubelet-new" => json!({"username": "system:node:new", "groups": ["system:nodes"]}),
        "master" => json!({"username": "system:serviceaccount:ovn-kubernetes:ovn", "groups": []}),
        _ => panic!("{name} is no user"),
    }
}

/// What the API server sends for the case.
fn review(case: &Case) -> Value {
    let old = if case.verb == "create" { Value::Null } else { case.before() };
    let object = if case.verb == "delete" { Value::Null } else { case.after() };
    let (list, sub_resource, _) = case.place();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "resource": {"group": "", "version": "v1", "resource": list}, "subResource": sub_resource,
        "operation": case.verb.to_uppercase(), "userInfo": user(&case.user), "object": object, "oldObject": old,
    }})
}

fn said(answer: &Answer) -> &str {
    answer.body.pointer("/response/status/message").and_then(Value::as_str).unwrap_or_default()
}

fn ask(review: &Value) -> Answer {
    answer(review.to_string().as_bytes())
}

#[test]
fn every_case_is_judged_as_by_the_policies() {
    let cases = cases::all();
    assert!(cases.len() > 50);
    for case in cases {
        let got = ask(&review(&case));
        assert_eq!((got.status, &got.body["response"]["uid"]), (200, &json!("u")), "{case:?}");
        assert_eq!(got.body["response"]["allowed"], json!(case.denied.is_none()), "{case:?}: {}", said(&got));
        assert!(said(&got).contains(case.denied.as_deref().unwrap_or_default()), "{case:?}: {}", said(&got));
    }
}

#[test]
fn what_no_rule_is_about_is_allowed() {
    let case = cases::all().into_iter().find(|case| case.denied.is_some()).unwrap();
    for (at, value) in [
        ("/request/resource/resource", json!("secrets")),
        ("/request/resource/group", json!("example.com")),
        ("/request/subResource", json!("proxy")),
        ("/request/operation", json!("CONNECT")),
        ("/request/userInfo", json!({"username": "somebody"})),
    ] {
        let mut review = review(&case);
        assert_eq!(ask(&review).body["response"]["allowed"], json!(false));
        *review.pointer_mut(at).unwrap() = value;
        assert_eq!(ask(&review).body["response"]["allowed"], json!(true), "{at}");
    }
}

#[test]
fn what_is_no_review_is_denied() {
    let fine = review(&cases::all()[0]);
    let mut texts: Vec<String> = ["", "{}", "null", "[]", "\u{0}", "{\"request\": {}}"].map(str::to_owned).into();
    texts.push("[".repeat(100_000));
    texts.push(fine.to_string().chars().take(100).collect());
    for (at, value) in [
        ("/apiVersion", json!("admission.k8s.io/v1beta1")),
        ("/kind", json!("Node")),
        ("/request/operation", json!("PATCH")),
        ("/request/uid", json!(7)),
        ("/request/userInfo", json!([])),
        ("/request/userInfo", json!({})),
    ] {
        let mut odd = fine.clone();
        *odd.pointer_mut(at).unwrap() = value;
        texts.push(odd.to_string());
    }
    for text in texts {
        let got = answer(text.as_bytes());
        assert_eq!((got.status, &got.body["response"]["allowed"]), (400, &json!(false)), "{text}");
        assert!(said(&got).starts_with("cannot "), "{}", said(&got));
    }
}

/// Objects that the API server would never send.
#[test]
fn odd_objects_are_judged_too() {
    for odd in [json!(null), json!([]), json!({"metadata": []}), json!({"metadata": {"annotations": "x", "labels": 1}})]
    {
        for case in cases::all() {
            let mut review = review(&case);
            review["request"]["object"] = odd.clone();
            assert_eq!(ask(&review).status, 200);
            review["request"]["oldObject"] = odd.clone();
            assert_eq!(ask(&review).status, 200);
        }
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let texts: Vec<Vec<u8>> = cases::all().iter().map(|case| review(case).to_string().into_bytes()).collect();
    bolero::check!().with_type::<(u8, Vec<(u16, u8)>)>().for_each(|(which, changes)| {
        let mut text = texts[usize::from(*which) % texts.len()].clone();
        for (at, byte) in changes {
            let at = usize::from(*at) % text.len();
            text[at] = *byte;
        }
        let got = answer(&text);
        assert!(matches!(got.status, 200 | 400) && got.body["response"]["allowed"].is_boolean());
    });
}
