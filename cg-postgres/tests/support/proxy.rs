//! A proxy between an engine and its server, which knows the protocol and disturbs it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use cg_engine::conformance::shared::{Link, Loss};

/// The longest wait of a test for the server.
const ANSWER: Duration = Duration::from_secs(20);

/// A link to one server. It listens until the value and all of its connections are dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    is_paused: bool,
    next: Option<Fault>,
    /// Both ends of each connection, by its number. A cut shuts them down.
    ends: Vec<(usize, TcpStream)>,
    /// Connections whose answers are dropped.
    dropped: BTreeMap<usize, Dropped>,
    /// The requests of each connection that the server has not answered.
    unanswered: BTreeMap<usize, usize>,
    delayed: Option<(usize, TcpStream, Vec<u8>)>,
    /// The number of answers that were dropped.
    answers: usize,
    /// The number of connections that [`Proxy::cut_next`] cut.
    cuts: usize,
    /// The number of connections so far.
    connections: usize,
    /// The SQLSTATE that new connections are refused with, and the number of the first one.
    refusal: Option<(&'static str, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Lost(Loss),
    Delayed,
    Cut(Cut),
}

/// Where the connection of a commit is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// After some messages of the request, and half of the next one if `half`.
    Request { messages: usize, half: bool },
    /// Some time after the request, whatever the server does then.
    Wait(Duration),
    /// After the server's answer; the client gets some messages of it.
    Answer { messages: usize },
    /// Before the request, which arrives when [`Link::deliver_delayed`] is called.
    Late,
}

/// The rest of an answer, which its client does not get.
#[derive(Debug, Clone, Copy)]
struct Dropped {
    /// The number of answers to earlier requests, which it gets.
    earlier: usize,
    /// The number of messages that it still gets.
    passed: usize,
    after: AfterAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterAnswer {
    Stay,
    End,
    Cut,
}

impl Dropped {
    /// Whether the client gets the next message, which may be the last of an answer.
    fn passes(&mut self, is_last: bool) -> bool {
        if self.earlier > 0 {
            self.earlier -= usize::from(is_last);
            return true;
        }
        let passes = self.passed > 0;
        self.passed = self.passed.saturating_sub(1);
        passes
    }
}

impl Proxy {
    /// Listens for connections to a server.
    pub(crate) fn start(server: String) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("is bound").port();
        let proxy = Arc::new(Self { port, state: Mutex::default(), changed: Condvar::new() });
        let weak = Arc::downgrade(&proxy);
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let Some(proxy) = weak.upgrade() else { break };
                let Ok(client) = client else { continue };
                if !proxy.lock().is_cut {
                    proxy.lock().connections += 1;
                    let server = TcpStream::connect(&server).expect("the server listens");
                    proxy.connect(number, client, server);
                }
            }
        });
        proxy
    }

    /// Cuts the connection of the next commit.
    pub(crate) fn cut_next(&self, cut: Cut) {
        self.lock().next = Some(Fault::Cut(cut));
    }

    /// Waits until [`cut_next`](Self::cut_next) has cut a number of connections.
    pub(crate) fn wait_for_cuts(&self, cuts: usize) {
        let waited = self.changed.wait_timeout_while(self.lock(), ANSWER, |state| state.cuts < cuts);
        let (state, timeout) = waited.expect("no thread panicked");
        assert!(!timeout.timed_out(), "{} of {cuts} cuts, and no commit comes", state.cuts);
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.lock().connections
    }

    /// Refuses new connections with an error of the server, or does not any more.
    pub(crate) fn refuse_connections(&self, code: Option<&'static str>) {
        self.lock().refusal = code.map(|code| (code, 0));
    }

    /// Refuses all connections after the first `accepted` ones.
    pub(crate) fn refuse_connections_after(&self, accepted: usize, code: &'static str) {
        self.lock().refusal = Some((code, accepted));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panicked")
    }

    fn connect(self: Arc<Self>, number: usize, client: TcpStream, server: TcpStream) {
        for end in [&client, &server] {
            end.set_nodelay(true).expect("is open");
            self.lock().ends.push((number, end.try_clone().expect("is open")));
        }
        let [from_client, to_client] = [&client, &client].map(|end| end.try_clone().expect("is open"));
        let (other, to_server) = (Arc::clone(&self), server.try_clone().expect("is open"));
        std::thread::spawn(move || {
            let _ = self.requests(number, from_client, to_server);
        });
        std::thread::spawn(move || {
            let _ = other.answers(number, server, to_client);
        });
    }

    /// Waits while messages are held back.
    fn pass(&self) -> MutexGuard<'_, State> {
        let passes = self.changed.wait_while(self.lock(), |state| state.is_paused);
        passes.expect("no thread panicked")
    }

    /// Moves requests. A request ends with the message after which the server answers.
    fn requests(&self, number: usize, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
        let mut commits = BTreeSet::new();
        let startup = message(&mut client, 0)?;
        let refusing = self.pass().refusal;
        if let Some((code, _)) = refusing.filter(|(_, first)| number >= *first) {
            client.write_all(&refusal(code))?;
            self.end(number);
            return Ok(());
        }
        self.lock().unanswered.insert(number, 1);
        server.write_all(&startup)?;
        loop {
            let (mut request, mut ends, mut is_commit) = (Vec::new(), vec![0], false);
            let is_answered = loop {
                let Ok(one) = message(&mut client, 1) else {
                    if !self.is_delayed(number) {
                        self.end(number);
                    }
                    return Ok(());
                };
                let strings = |n: usize| one.get(5..).unwrap_or_default().split(|byte| *byte == 0).nth(n);
                match one.first() {
                    Some(b'P') if contains(&one, b"cg_commit_1") => {
                        commits.extend(strings(0).map(<[u8]>::to_vec));
                    }
                    // A portal without a name, and a statement.
                    Some(b'B') => is_commit |= strings(1).is_some_and(|name| commits.contains(name)),
                    _ => {}
                }
                let kind = one.first().copied();
                request.extend(one);
                ends.push(request.len());
                if matches!(kind, Some(b'S' | b'Q' | b'p' | b'X')) {
                    // A part of a login, and the end, have no answer of their own.
                    break matches!(kind, Some(b'S' | b'Q'));
                }
            };
            let mut state = self.pass();
            // What follows a request that is held back is held back too.
            if let Some((_, _, held)) = state.delayed.as_mut().filter(|(delayed, ..)| *delayed == number) {
                held.extend(request);
                continue;
            }
            let earlier = state.unanswered.get(&number).copied().unwrap_or_default();
            match if is_commit { state.next.take() } else { None } {
                None => {}
                Some(Fault::Lost(Loss::Request)) => {
                    drop(state);
                    self.end(number);
                    return Ok(());
                }
                Some(Fault::Lost(Loss::Answer)) => {
                    state.dropped.insert(number, Dropped { earlier, passed: 0, after: AfterAnswer::End });
                }
                Some(Fault::Lost(Loss::Connection)) => {
                    state.dropped.insert(number, Dropped { earlier, passed: 0, after: AfterAnswer::Cut });
                }
                Some(Fault::Delayed) => {
                    state.dropped.insert(number, Dropped { earlier, passed: 0, after: AfterAnswer::Stay });
                    state.delayed = Some((number, server.try_clone()?, request));
                    continue;
                }
                Some(Fault::Cut(Cut::Late)) => {
                    state.dropped.insert(number, Dropped { earlier, passed: 0, after: AfterAnswer::End });
                    state.delayed = Some((number, server.try_clone()?, request));
                    self.count_cut(state);
                    return client.shutdown(Shutdown::Both);
                }
                Some(Fault::Cut(Cut::Answer { messages })) => {
                    state
                        .dropped
                        .insert(number, Dropped { earlier, passed: messages, after: AfterAnswer::End });
                    self.count_cut(state);
                    server.write_all(&request)?;
                    continue;
                }
                Some(Fault::Cut(Cut::Request { messages, half })) => {
                    drop(state);
                    let whole = ends.get(messages).copied().unwrap_or(request.len());
                    let next = ends.get(messages + 1).copied().unwrap_or(whole);
                    let end = if half { whole.midpoint(next) } else { whole };
                    server.write_all(&request[..end])?;
                    self.end(number);
                    self.count_cut(self.lock());
                    return Ok(());
                }
                Some(Fault::Cut(Cut::Wait(time))) => {
                    drop(state);
                    server.write_all(&request)?;
                    std::thread::sleep(time);
                    self.end(number);
                    self.count_cut(self.lock());
                    return Ok(());
                }
            }
            if is_answered {
                *state.unanswered.entry(number).or_default() += 1;
            }
            drop(state);
            server.write_all(&request)?;
        }
    }

    fn count_cut(&self, mut state: MutexGuard<'_, State>) {
        state.cuts += 1;
        self.changed.notify_all();
    }

    fn is_delayed(&self, number: usize) -> bool {
        self.lock().delayed.as_ref().is_some_and(|(delayed, ..)| *delayed == number)
    }

    /// Moves answers. Drops that of a commit if its fault says so.
    fn answers(&self, number: usize, mut server: TcpStream, mut client: TcpStream) -> std::io::Result<()> {
        while let Ok(one) = message(&mut server, 1) {
            let is_last = one.first() == Some(&b'Z');
            let mut state = self.pass();
            if is_last && let Some(unanswered) = state.unanswered.get_mut(&number) {
                *unanswered = unanswered.saturating_sub(1);
            }
            let dropped = state.dropped.get_mut(&number);
            let Some(after) = dropped.and_then(|dropped| (!dropped.passes(is_last)).then_some(dropped.after))
            else {
                let is_cut_off = state.dropped.contains_key(&number);
                drop(state);
                match client.write_all(&one) {
                    // The rest of the answers is awaited.
                    Err(_) if is_cut_off => {}
                    written => written?,
                }
                continue;
            };
            // Ready for the next request.
            if is_last {
                state.answers += 1;
                state.is_cut |= after == AfterAnswer::Cut;
                self.changed.notify_all();
                drop(state);
                if after != AfterAnswer::Stay {
                    self.end(number);
                }
            }
        }
        self.end(number);
        Ok(())
    }

    /// Ends a connection.
    fn end(&self, number: usize) {
        for (_, end) in self.lock().ends.extract_if(.., |(one, _)| *one == number) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Link for Proxy {
    fn cut(&self, is_cut: bool) {
        let mut state = self.lock();
        state.is_cut = is_cut;
        if is_cut {
            for (_, end) in state.ends.drain(..) {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }

    fn pause(&self, is_paused: bool) {
        self.lock().is_paused = is_paused;
        self.changed.notify_all();
    }

    fn lose_next(&self, loss: Loss) {
        self.lock().next = Some(Fault::Lost(loss));
    }

    fn delay_next(&self) {
        self.lock().next = Some(Fault::Delayed);
    }

    fn deliver_delayed(&self) {
        let mut state = self.lock();
        let (_, mut server, request) = state.delayed.take().expect("a request is held back");
        let before = state.answers;
        server.write_all(&request).expect("the server reads");
        let (state, timeout) = self
            .changed
            .wait_timeout_while(state, ANSWER, |state| state.answers == before)
            .expect("no thread panicked");
        drop(state);
        assert!(!timeout.timed_out(), "the server does not answer");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The listener wakes up and ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// The message of a server that refuses a connection.
fn refusal(code: &str) -> Vec<u8> {
    let fields = format!("SFATAL\0VFATAL\0C{code}\0Mrefused by the test\0\0");
    let len = u8::try_from(fields.len() + 4).expect("is short");
    [&[b'E', 0, 0, 0, len], fields.as_bytes()].concat()
}

/// Reads a message with `kind_bytes` before its length.
fn message(from: &mut TcpStream, kind_bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; kind_bytes + 4];
    from.read_exact(&mut bytes)?;
    let len: [u8; 4] = bytes[kind_bytes..].try_into().expect("four bytes");
    let mut len_bytes = 0;
    for byte in len {
        len_bytes = len_bytes << 8 | usize::from(byte);
    }
    bytes.resize(kind_bytes + len_bytes, 0);
    from.read_exact(&mut bytes[kind_bytes + 4..])?;
    Ok(bytes)
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
