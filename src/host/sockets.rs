//! Connections of the host's own programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `/proc/net/tcp` and `tcp6` of the namespace of this thread.
const FILES: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
/// State of a connection that both ends have agreed on.
const ESTABLISHED: &str = "01";

/// Local and remote address of each TCP connection that is established. A host without IPv6 has none of it.
pub fn connected() -> Vec<(IpAddr, IpAddr)> {
    let texts = FILES.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.flat_map(|text| text.lines().filter_map(of_line).collect::<Vec<_>>()).collect()
}

/// `0: 0100007F:1F90 0200007F:C350 01 …`
fn of_line(line: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    if state != ESTABLISHED {
        return None;
    }
    Some((address(local)?, address(remote)?))
}

/// Numbers of four bytes, as this machine has them in memory.
fn address(text: &str) -> Option<IpAddr> {
    let (hex, _port) = text.split_once(':').filter(|(hex, _)| hex.len() % 8 == 0)?;
    let numbers = hex.as_bytes().chunks(8).map(|hex| u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
    let bytes: Vec<u8> = numbers.collect::<Option<Vec<u32>>>()?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let ip = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn an_open_connection_is_found_and_one_that_waits_is_not() {
        for (listen, connect) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::ffff:127.0.0.1]:0", "127.0.0.1")]
        {
            let ip: IpAddr = connect.parse().unwrap();
            let listener = TcpListener::bind(listen).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert!(connected().contains(&(ip, ip)), "{listen}: {:?}", connected());
            drop(stream);
        }
        let line = "0: 020012AC:1F90 0B00000A:C350 02 00000000:00000000";
        assert_eq!(of_line(line), None);
        if cfg!(target_endian = "little") {
            let both = (IpAddr::from([172, 18, 0, 2]), IpAddr::from([10, 0, 0, 11]));
            assert_eq!(of_line(&line.replace(" 02 ", " 01 ")), Some(both));
        }
        for bad in ["", "x", "0: a b 01", "0: é:1 é:2 01", "0: 00:1 00:2 01"] {
            assert_eq!(of_line(bad), None, "{bad:?}");
        }
    }
}
