//! A network of a stated delay: bytes arrive half a round trip after they were sent, in order and at any rate.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use cg_bench::order::percentile;

use crate::failure::Failure;

/// Counts the round trips that followed one another over all connections of a network.
///
/// A request that is sent after an answer arrived is one round trip further than that answer. Requests that are under way
/// at the same time are one.
#[derive(Debug, Default)]
pub(crate) struct Trips(AtomicU64);

impl Trips {
    /// The round trips until the last answer so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// A port on loopback that leads to a server. Accepts nothing more once it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    is_over: Arc<AtomicBool>,
}

/// Bytes on their way.
struct Sent {
    due: Instant,
    bytes: Vec<u8>,
}

impl Proxy {
    /// Begins to accept connections. A connection costs a round trip, as over a network.
    ///
    /// # Errors
    /// No port is free.
    pub(crate) fn new(server: &str, delay: Duration, trips: &Arc<Trips>) -> Result<Self, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let (port, is_over) = (listener.local_addr()?.port(), Arc::new(AtomicBool::new(false)));
        let (server, trips, ended) = (server.to_owned(), Arc::clone(trips), Arc::clone(&is_over));
        thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Acquire) {
                    return;
                }
                // A client whose server is not there is refused: its connection ends.
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) {
                    let _ = join(client, server, delay, &trips);
                }
            }
        });
        Ok(Self { port, is_over })
    }

    /// Where it is.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// The time that a round trip through a proxy takes beyond its delay: that of threads that wake.
///
/// # Errors
/// No port is free.
pub(crate) fn own_time(delay: Duration) -> Result<Duration, Failure> {
    let echo = echo()?;
    let proxy = Proxy::new(&echo, delay, &Arc::new(Trips::default()))?;
    let (direct, through) = (round_trip(&echo)?, round_trip(&proxy.host())?);
    Ok(through.saturating_sub(direct).saturating_sub(delay))
}

/// The median time of the answer to a byte.
fn round_trip(host: &str) -> Result<Duration, Failure> {
    let mut client = TcpStream::connect(host)?;
    client.set_nodelay(true)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        client.write_all(b"a")?;
        client.read_exact(&mut [0])?;
        times.push(begun.elapsed());
    }
    Ok(percentile(&mut times, 50.0))
}

/// A server that answers all with itself.
fn echo() -> Result<String, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let host = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                client.set_nodelay(true)?;
                std::io::copy(&mut client.try_clone()?, &mut &client)
            });
        }
    });
    Ok(host)
}

/// Moves the bytes of a connection in both directions.
fn join(client: TcpStream, server: TcpStream, delay: Duration, trips: &Arc<Trips>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let way = delay / 2;
    let asked = Arc::new(AtomicU64::new(0));
    let answered = (Arc::clone(&asked), Arc::clone(trips));
    let (to_server, requests) = channel();
    let (to_client, answers) = channel();
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let (requesting, trips) = (Arc::clone(&asked), Arc::clone(trips));
    // The handshake of TCP is a round trip before the first bytes.
    let ready = Instant::now() + delay;
    let mut greeting = 1;
    thread::spawn(move || {
        read(from_client, &to_server, |now| {
            requesting.store(trips.count() + 1 + greeting, Ordering::Release);
            greeting = 0;
            now.max(ready) + way
        });
    });
    thread::spawn(move || read(from_server, &to_client, |now| now + way));
    thread::spawn(move || write(server, requests, || {}));
    thread::spawn(move || {
        let (asked, trips) = answered;
        write(client, answers, || {
            trips.0.fetch_max(asked.load(Ordering::Acquire), Ordering::AcqRel);
        });
    });
    Ok(())
}

/// Reads until the end, and says when each part is due.
fn read(mut from: TcpStream, to: &Sender<Sent>, mut due: impl FnMut(Instant) -> Instant) {
    let mut buffer = vec![0; 256 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => {
                let sent = Sent { due: due(Instant::now()), bytes: buffer[..len].to_vec() };
                if to.send(sent).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Writes each part when it is due, until there is none.
fn write(mut to: TcpStream, parts: Receiver<Sent>, mut arrives: impl FnMut()) {
    wake_in_time();
    for Sent { due, bytes } in parts {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        arrives();
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // Ends the reader of the other direction too.
    let _ = to.shutdown(Shutdown::Both);
}

/// Lets this thread sleep to the microsecond: the system's 50 µs more are a fifth of the shortest delay.
fn wake_in_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_the_delay_and_a_flood_no_longer() {
        let (delay, trips) = (Duration::from_millis(40), Arc::new(Trips::default()));
        let proxy = Proxy::new(&echo().expect("a port"), delay, &trips).expect("a port");
        let mut client = TcpStream::connect(proxy.host()).expect("accepts");
        let mut answer = vec![0; 4 << 20];
        let mut ask = |len: usize| {
            let begun = Instant::now();
            let mut sender = client.try_clone().expect("open");
            let sending = thread::spawn(move || sender.write_all(&vec![7; len]));
            client.read_exact(&mut answer[..len]).expect("is answered");
            sending.join().expect("no panic").expect("is open");
            assert!(answer[..len].iter().all(|byte| *byte == 7));
            begun.elapsed()
        };
        assert!(ask(1) >= delay * 2, "the handshake and the answer");
        assert!(ask(1) >= delay);
        // 4 MiB are many parts, which travel together.
        let flood = ask(4 << 20);
        assert!(flood >= delay && flood < delay * 10, "{flood:?}");
    }

    #[test]
    fn round_trips_are_counted_where_one_follows_another() {
        let trips = Arc::new(Trips::default());
        let proxy = Proxy::new(&echo().expect("a port"), Duration::from_millis(20), &trips).expect("a port");
        let mut clients = [(); 2].map(|()| TcpStream::connect(proxy.host()).expect("accepts"));
        let mut ask = |which: &[usize]| {
            let before = trips.count();
            for n in which {
                clients[*n].write_all(b"a").expect("is open");
            }
            for n in which {
                clients[*n].read_exact(&mut [0]).expect("is answered");
            }
            trips.count() - before
        };
        assert_eq!(ask(&[0, 1]), 2, "two handshakes at once, then two requests at once");
        assert_eq!(ask(&[0]), 1);
        assert_eq!(ask(&[0, 1]), 1, "at the same time");
        assert_eq!(ask(&[1]) + ask(&[0]) + ask(&[0]), 3, "one after the other");
    }

    #[test]
    fn a_connection_ends_when_its_server_is_gone() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let host = listener.local_addr().expect("bound").to_string();
        let proxy = Proxy::new(&host, Duration::ZERO, &Arc::new(Trips::default())).expect("a port");
        let mut client = TcpStream::connect(proxy.host()).expect("accepts");
        drop(listener.accept().expect("the proxy connects"));
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        drop(listener);
        let mut refused = TcpStream::connect(proxy.host()).expect("accepts");
        assert_eq!(refused.read(&mut [0]).unwrap_or(0), 0);
    }
}
