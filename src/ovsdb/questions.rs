//! A connection for some questions, one after the other: to a database server, or to the control socket of a program of
//! Open vSwitch or OVN, which speaks the same protocol.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::conn::{self, ReadHalf, WriteHalf};
use crate::fault::Fault;
use crate::frame::Framer;
use crate::remote::Remote;
use crate::rpc::{self, Message, RpcError};
use crate::system::unix_socket;
use crate::tls::TlsFiles;

/// Longest answer in bytes.
const LONGEST: usize = 64 << 20;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The other side says why.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

impl From<Fault> for NoAnswer {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused { error, .. } => NoAnswer::Refused(error.to_string().trim().to_owned()),
            other => NoAnswer::Failed(other.to_string()),
        }
    }
}

/// Whether a process listens at a unix socket. One that stands still takes nobody in: all who have asked it wait in the socket's queue, also
/// when they have given up, until that is full and whoever asks is turned away. A socket that a dead process left refuses instead.
pub async fn is_listening(socket: &Path) -> bool {
    match unix_socket(socket).await {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// It has no deadlines: its user sets them.
pub struct Questions {
    read: ReadHalf,
    write: WriteHalf,
    framer: Framer,
    asked: u64,
}

impl Questions {
    pub async fn connect(remote: &Remote, tls: Option<&TlsFiles>) -> Result<Self, NoAnswer> {
        let (read, write, _) = conn::open(remote, tls).await?;
        Ok(Self { read, write, framer: Framer::new(LONGEST), asked: 0 })
    }

    /// Asks, and returns the result.
    pub async fn ask(&mut self, method: &'static str, params: &impl Serialize) -> Result<Value, NoAnswer> {
        Ok(self.result(method, params).await?)
    }

    /// The same, and undoes it with another method at once: both are one message, or a process that is stopped between them would leave
    /// it done.
    pub(crate) async fn ask_and_undo(
        &mut self,
        method: &'static str,
        undo: &'static str,
        params: &impl Serialize,
    ) -> Result<Value, NoAnswer> {
        let mut requests = self.request(method, params)?;
        let asked = self.asked;
        requests.extend(self.request(undo, params)?);
        self.send(&requests).await.map_err(Fault::from)?;
        let result = self.answer(asked, method).await?;
        self.answer(self.asked, undo).await?;
        Ok(result)
    }

    pub(crate) async fn result(&mut self, method: &'static str, params: &impl Serialize) -> Result<Value, Fault> {
        let request = self.request(method, params)?;
        self.send(&request).await?;
        self.answer(self.asked, method).await
    }

    fn request(&mut self, method: &'static str, params: &impl Serialize) -> Result<Vec<u8>, Fault> {
        self.asked += 1;
        rpc::request(self.asked, method, params).map_err(Fault::Encode)
    }

    async fn answer(&mut self, asked: u64, method: &'static str) -> Result<Value, Fault> {
        loop {
            while let Some(range) = self.framer.next_message()? {
                match read(self.framer.message(range), asked, method)? {
                    Said::Result(result) => return Ok(result),
                    Said::Echo(reply) => self.send(&reply).await?,
                    Said::Nothing => {}
                }
            }
            if self.read.read_buf(self.framer.buffer()).await? == 0 {
                return Err(Fault::Eof);
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes).await?;
        self.write.flush().await
    }
}

/// A message from the other side.
enum Said {
    Result(Value),
    /// Bytes of the reply to an echo request.
    Echo(Vec<u8>),
    Nothing,
}

/// Reads a message while question number `asked` waits for its answer.
fn read(bytes: &[u8], asked: u64, method: &'static str) -> Result<Said, Fault> {
    let message: Message<'_> = serde_json::from_slice(bytes)?;
    match (&message.method, message.id) {
        (Some(name), Some(id)) if name == "echo" => Ok(Said::Echo(rpc::reply(id, message.params, None))),
        (Some(_), _) => Ok(Said::Nothing),
        (None, id) => {
            let id = id.map_or("null", |id| id.get());
            if id.parse::<u64>() != Ok(asked) {
                return Err(Fault::UnknownReply(id.chars().take(40).collect()));
            }
            match message.error {
                Some(error) => Err(Fault::Refused { step: method, error: RpcError::read(error) }),
                None => Ok(Said::Result(serde_json::from_str(message.result.map_or("null", |result| result.get()))?)),
            }
        }
    }
}
