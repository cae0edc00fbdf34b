//! The kernel does not answer a request.

use std::time::Duration;

use futures::StreamExt;
use rtnetlink::packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use tokio::time::timeout;

use crate::answer::{all, failed};
use crate::netlink::{self, exchange, header};
use crate::netns::on_thread;
use crate::{Net, Result};

/// The kernel reads this message and answers nothing.
const NLMSG_NOOP: u16 = 1;
/// Far above the limit.
const END: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_end_of_a_list_never_comes() {
    let mut handle = Net::here().await.unwrap().handle;
    let mut noop = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::Noop);
    noop.header.flags = NLM_F_REQUEST;
    let replies = handle.request(noop).unwrap();
    let listed = timeout(END, all(replies.map(Ok))).await.expect("an end of the exchange");
    let error = failed("list links".into(), listed.unwrap_err());
    assert_eq!(error.to_string(), LATE);
}

#[tokio::test]
async fn the_answer_to_a_message_of_ours_never_comes() {
    let error = timeout(END, asked()).await.expect("an end of the exchange").unwrap_err();
    assert_eq!(error.to_string(), LATE);
}

/// Each stop ends the call that waits. Those after the limit find nobody who waits.
#[tokio::test]
async fn a_stopped_process_goes_on_waiting() {
    let stops = format!(
        "for i in 1 2 3 4 5 6 7; do sleep 1.6; kill -STOP {0}; sleep 0.1; kill -CONT {0}; done",
        std::process::id()
    );
    let mut shell = std::process::Command::new("sh").args(["-c", &stops]).spawn().unwrap();
    let error = timeout(END, asked()).await.expect("an end of the exchange").unwrap_err();
    assert_eq!(error.to_string(), LATE);
    assert!(shell.wait().unwrap().success());
}

/// Sends a message that gets no answer.
async fn asked() -> Result<Vec<Vec<u8>>> {
    on_thread(|| -> Result<_> {
        let mut socket = Socket::new(NETLINK_ROUTE).unwrap();
        socket.bind_auto().unwrap();
        exchange(&socket, &header(NLMSG_NOOP, netlink::NLM_F_REQUEST, 0), "list links")
    })
    .await
}

const LATE: &str = "cannot list links: the kernel did not answer within 10 s, or its answer was lost; the agent tries \
                    again: if this repeats, see `dmesg`";
