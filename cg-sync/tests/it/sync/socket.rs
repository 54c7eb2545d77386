//! Two clients with caches, over a socket, while the server plays: equal to it in each pause.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::values::{SETS, all, is_equal, numbers, server_of, write};
use super::*;

/// Longer than any answer of a server takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a request waits for a change.
const WAIT: Duration = Duration::from_millis(50);

fn send(stream: &mut TcpStream, message: &[u8]) {
    stream.write_all(&(message.len() as u32).to_le_bytes()).expect("sends");
    stream.write_all(message).expect("sends");
}

/// The next message; `None` once the other side has hung up.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).ok()?;
    let mut message = vec![0; u32::from_le_bytes(len) as usize];
    stream.read_exact(&mut message).expect("all of it comes");
    Some(message)
}

/// Answers the requests of one connection: those about values when something changed, or after a while.
fn serve(server: &SyncServer, mut stream: TcpStream) {
    while let Some(message) = receive(&mut stream) {
        let request = SyncRequest::decode(&message, SyncLimits::default()).expect("decodes");
        let reply = if request.chunk_count() == 0 {
            server.answer_when_changed(&request, WAIT)
        } else {
            server.answer(&request)
        };
        send(&mut stream, &reply.expect("answers").encode());
    }
}

/// What the threads know of each other.
#[derive(Default)]
struct Match {
    /// The number of the pause.
    pause: AtomicU64,
    /// The last pause in which each client heard of nothing more.
    heard: [AtomicU64; 2],
    is_over: AtomicBool,
}

/// Ends the match, also when its test fails.
struct Whistle<'m>(&'m Match, &'m str);

impl Drop for Whistle<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        // Ends the wait for the next client.
        drop(TcpStream::connect(self.1));
    }
}

struct Client<'m> {
    cache: &'m SyncClient,
    stream: TcpStream,
}

impl Client<'_> {
    fn ask(&mut self, request: &SyncRequest) -> SyncOutcome {
        send(&mut self.stream, &request.encode());
        let reply = receive(&mut self.stream).expect("the server answers within the time");
        let reply = SyncReply::decode(&reply, SyncLimits::default()).expect("decodes");
        self.cache.apply(request, &reply).expect("applies")
    }

    /// Asks about everything once. Returns whether there was nothing new.
    fn visit(&mut self, max_bytes: u64) -> bool {
        let overworld = self.cache.world().catalog().dimension("game:overworld").expect("is registered");
        let request = self.cache.request_area(overworld, area()).expect("asks");
        let listed = self.ask(&request);
        let mut is_quiet = listed.stale == 0 && listed.gone == 0;
        while let Some(request) = self.cache.request_stale(20).expect("asks") {
            is_quiet = false;
            self.ask(&request.with_max_bytes(max_bytes));
        }
        let request = self.cache.request_values(&all()).expect("asks").with_max_bytes(max_bytes);
        let told = self.ask(&request);
        assert_eq!((told.outdated_values, told.damaged_values.len()), (0, 0));
        is_quiet && !told.has_more_values && (told.values_updated, told.values_gone) == (0, 0)
    }
}

/// Follows the server until the match is over, and hangs up now and then.
fn follow(number: usize, address: &str, cache: &SyncClient, shared: &Match, max_bytes: u64) {
    while !shared.is_over.load(Ordering::Acquire) {
        let stream = TcpStream::connect(address).expect("connects");
        stream.set_read_timeout(Some(TIMEOUT)).expect("is set");
        let mut client = Client { cache, stream };
        for _ in 0..25 {
            let pause = shared.pause.load(Ordering::Acquire);
            if client.visit(max_bytes) {
                shared.heard[number].fetch_max(pause, Ordering::AcqRel);
            }
            if shared.is_over.load(Ordering::Acquire) {
                break;
            }
        }
    }
}

/// Changes chunks and values of all kinds for a while.
fn play(world: &World, ids: &Ids, next: &mut impl FnMut(u64) -> u64, length: Duration) {
    let until = Instant::now() + length;
    while Instant::now() < until {
        let committed = world.transaction(|tx| {
            for _ in 0..=next(4) {
                let (kind, n, value) = (SETS[next(4) as usize], next(40) as u8, next(200) as u8);
                write(tx, ids, kind, n, (next(4) > 0).then_some(value))?;
            }
            let mut place = || next(12) as i64 - 6;
            let at = ids.at(place(), place(), place());
            match next(5) {
                0 => tx.delete(at),
                1 => {}
                _ => tx.save(at, machine(world, ids, next(256) as u8)),
            }
            Ok::<_, Error>(())
        });
        committed.expect("commits");
        if next(400) == 0 {
            world.tiers().purge_tombstones_before(world.last_commit()).expect("purges");
        }
        thread::sleep(Duration::from_micros(500 * next(8)));
    }
}

#[test]
fn two_clients_over_a_socket_are_equal_to_the_server_in_each_pause() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::builder().create(dir.path()).expect("created");
    let (ids, server, mut next) = (Ids::register(&world), server_of(&world), numbers());
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = listener.local_addr().expect("is bound").to_string();
    let (caches, shared) = ([client(), client()], Match::default());
    let until = Instant::now() + Duration::from_secs(crate::long::size(0, 600));
    thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            for stream in listener.incoming() {
                let stream = stream.expect("accepts");
                scope.spawn(|| serve(&server, stream));
                if shared.is_over.load(Ordering::Acquire) {
                    break;
                }
            }
        });
        for (number, max_bytes) in [(0, u64::MAX), (1, 6000)] {
            let (address, cache, shared) = (&address, &caches[number], &shared);
            scope.spawn(move || follow(number, address, cache, shared, max_bytes));
        }
        let whistle = Whistle(&shared, &address);
        let mut pauses = 0;
        while pauses < 4 || Instant::now() < until {
            play(&world, &ids, &mut next, Duration::from_millis(500));
            pauses += 1;
            shared.pause.store(pauses, Ordering::Release);
            let since = Instant::now();
            while shared.heard.iter().any(|heard| heard.load(Ordering::Acquire) < pauses) {
                assert!(since.elapsed() < TIMEOUT, "a client hears of changes for ever");
                thread::sleep(Duration::from_millis(1));
            }
            for cache in &caches {
                is_equal(&world, cache);
                is_same(&world, cache);
            }
        }
        drop(whistle);
        accepting.join().expect("no panic");
    });
}
