//! What stays while gateways come and go.

use ovnkube_tests::nb::{Release, until};

use crate::joined;
use crate::lab::Lab;

/// While its gateway is away, whatever people edit then, and for the next master. Others' rows say what is offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_is_used_stays_without_its_gateway() {
    let lab = Lab::up(Release::Host).await;
    let (_other, engine) = joined(&lab).await;
    lab.unbind("cr-az1-ts");
    lab.configure(&[("routes", "az2 10.17.0.0/16")]).await;
    until("the edit is in effect", async || lab.routes().contains("10.17.0.0/16")).await;
    lab.is_quiet().await;
    assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());

    let before = lab.everything();
    drop(engine);
    let engine = lab.engine().await;
    lab.is_quiet().await;
    assert_eq!(lab.everything(), before);
    assert_eq!(engine.writes(), (0, 0));

    // a prefix that was not used waits for the gateway
    lab.configure(&[("routes", "az2 10.17.0.0/16\naz2 fd17::/64")]).await;
    lab.is_quiet().await;
    assert!(!lab.routes().contains("fd17::"), "{}", lab.routes());
}
