//! Load balancers as ovn-kubernetes writes them, in both gateway modes and with templates.
//!
//! `services.nb` has its rows for `services.yaml` and `services-more.yaml` on the nodes of
//! `global-base.yaml`; its rows are the same in both gateway modes. `services-templates.nb` is the same
//! with `--enable-svc-template-support`.

use ovnkube_tests::dump::{Columns, Dump};
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};

use crate::more::with_flushing;

/// Rows of load balancers and the references to them.
fn balancers(dump: Dump) -> Dump {
    let mut of_services = Dump::default();
    for (label, rows) in dump.0 {
        let whole = label.starts_with("Load_Balancer(") || label.starts_with("Chassis_Template_Var(");
        let hangs = |(column, _): &(String, _)| whole || column == "load_balancer";
        let rows: Vec<Columns> = rows.into_iter().map(|row| row.into_iter().filter(hangs).collect()).collect();
        if rows.iter().any(|row: &Columns| !row.is_empty()) {
            of_services.0.insert(label, rows);
        }
    }
    of_services
}

async fn written(mode: &str, templates: bool) -> Dump {
    let server = Server::new(Release::Lts);
    let mut objects = Objects::default();
    crate::add(
        &mut objects,
        &include_str!("global-base.yaml").replace("\"mode\":\"shared\"", &format!("\"mode\":{mode:?}")),
    );
    crate::add(&mut objects, crate::SERVICES);
    crate::add(&mut objects, include_str!("services-more.yaml"));
    let network = Settings { svc_template_support: templates, ..crate::settings() }.network();
    let mut controller = Controller::start(network, server.client().await, &objects);
    controller.settle(&mut objects).await;
    balancers(Dump::of(&controller.nb))
}

fn same(have: &Dump, original: &str) {
    let want = with_flushing(Dump::parse(original));
    assert_eq!(have.since(&want), "", "rows of ours");
    assert_eq!(want.since(have), "", "rows of ovn-kubernetes");
}

#[tokio::test(flavor = "multi_thread")]
async fn services_with_shared_gateways() {
    same(&written("shared", false).await, include_str!("services.nb"));
}

#[tokio::test(flavor = "multi_thread")]
async fn services_with_local_gateways() {
    same(&written("local", false).await, include_str!("services.nb"));
}

#[tokio::test(flavor = "multi_thread")]
async fn services_with_templates() {
    same(&written("shared", true).await, include_str!("services-templates.nb"));
}
