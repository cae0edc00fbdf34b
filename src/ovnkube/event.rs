//! `ovnkube event`: why a container ends whose entrypoint cannot start its program, or that the disk of its database is full, as an Event.
//! The entrypoint has written the same to its log, and goes on whatever becomes of the Event: so this waits neither for a right nor for
//! an API server.

use std::time::Duration;

use anyhow::{Context as _, Result};
use ovnkube_config::{EventAbout, EventCommand, Settings};
use ovnkube_model::{Notice, Object, PodKey, Severity};
use ovnkube_watch::{Client, Events};
use tokio::time::timeout;

use crate::translate;

const WITHIN: Duration = Duration::from_secs(3);

pub(crate) async fn run(settings: &Settings, command: &EventCommand) -> Result<()> {
    let EventCommand { about, node, message, reason } = command;
    let object = match about {
        EventAbout::Pod { namespace, name, uid } => {
            Object::Pod { key: PodKey::new(namespace.as_str(), name.as_str()), uid: uid.as_str().into() }
        }
        // kubectl describe also looks for Events whose uid is the node's name, as kubelets write them
        EventAbout::Node => Object::Node { name: node.as_str().into(), uid: node.as_str().into() },
    };
    let notice = Notice { object, severity: Severity::Warning, reason: reason.name(), message: message.clone() };
    let told = async {
        let api = Client::connect(&translate::access(settings, "event")).await?;
        // the admission policy asks agents to name their own node
        Events::publish_one(&api, "ovnkube.sh", node, &notice).await
    };
    timeout(WITHIN, told).await.with_context(|| format!("cannot report an Event: no answer within {WITHIN:?}"))??;
    Ok(())
}
