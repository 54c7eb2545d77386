//! Two processes over a local socket: a server with a world, and a client that caches a part of it.
//!
//! `cargo run -p cg-sync --example sync` is the server and starts itself as the client. The client fetches a box and the
//! objects below `bricks/`, goes offline while the server plays on, comes back and fetches what changed; both compare the
//! content hash of the box, and the objects. At the end of a visit the client waits for a change that the server makes.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::process::{Child, Command};
use std::time::Duration;

use cg_store::prelude::*;
use cg_sync::{
    SyncClient, SyncLimits, SyncOutcome, SyncReply, SyncRequest, SyncServer, SyncServerLimits, ValueKind,
    ValueSet,
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    match std::env::args().nth(1) {
        None => server(|address| Ok(Command::new(std::env::current_exe()?).arg(address).spawn()?)),
        Some(address) => client(&address),
    }
}

fn area() -> Result<ChunkBox> {
    Ok(ChunkBox::new(ChunkPos::new(-8, -4, -8)?, ChunkPos::new(7, 3, 7)?))
}

/// The objects of a world that the client keeps: keys, versions and bytes.
fn bricks(world: &World) -> Result<String> {
    let mut all = String::from("bricks");
    let failed = world.objects().for_each("bricks/", |brick| match brick {
        Ok((key, version, bytes)) => {
            all.extend([" ", &key.escape_ascii().to_string(), "@", &version.to_string(), ":"]);
            all.extend(bytes.escape_ascii().map(char::from));
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    })?;
    failed.map_or(Ok(all), |error| Err(error.into()))
}

/// A message is its length and its bytes.
fn send(stream: &mut TcpStream, message: &[u8]) -> Result<()> {
    stream.write_all(&u32::try_from(message.len())?.to_le_bytes())?;
    Ok(stream.write_all(message)?)
}

/// The next message; `None` once the other side has hung up.
fn receive(stream: &mut TcpStream, limit_bytes: usize) -> Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    if stream.read(&mut len[..1])? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut len[1..])?;
    let len_bytes = u32::from_le_bytes(len) as usize;
    if len_bytes > limit_bytes {
        return Err("the message is too long".into());
    }
    let mut message = vec![0; len_bytes];
    stream.read_exact(&mut message)?;
    Ok(Some(message))
}

/// The server, which starts its client with the address.
pub(crate) fn server(start: impl FnOnce(&str) -> Result<Child>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let world = World::builder().create(dir.path().join("world"))?;
    let overworld = world.registry().register_dimension("game:overworld")?;
    let [air, stone, _] = world.registry().register_blocks([":air", "game:stone", "game:unused"])?;
    world.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        for pos in area()?.iter() {
            tx.save(
                ChunkAt::new(overworld, pos),
                Chunk::filled(if pos.y() < 0 { stone } else { air }, &schema)?,
            );
        }
        for n in 0..100 {
            tx.put_object(format!("bricks/{n}"), *b"red")?;
        }
        tx.put_object("secrets/1", *b"of the server")?;
        Ok::<_, Box<dyn Error>>(())
    })?;
    let server = SyncServer::new(world.clone(), SyncServerLimits::default());
    server.keep_log()?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let mut client = start(&address)?;
    for visit in 0..2 {
        let (mut stream, _) = listener.accept()?;
        // The client says first what its box holds.
        while let Some(message) = receive(&mut stream, SyncLimits::default().request_bytes)? {
            if let Ok(text) = std::str::from_utf8(&message)
                && let Some(hash) = text.strip_prefix("hash ")
            {
                let own = world.content_hash(cg_store::view::Area::Box(overworld, area()?))?.to_string();
                println!(
                    "server: visit {visit}: {}",
                    if own == hash { "the same content" } else { "differs" }
                );
                assert_eq!(own, hash, "the client has another content");
                continue;
            }
            if message.starts_with(b"bricks") {
                assert_eq!(message, bricks(&world)?.as_bytes(), "the client has other objects");
                continue;
            }
            if message == b"wait" {
                let request = receive(&mut stream, SyncLimits::default().request_bytes)?.ok_or("hung up")?;
                let request = SyncRequest::decode(&request, SyncLimits::default())?;
                let playing = world.clone();
                let play = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(100));
                    playing.objects().put("bricks/1", format!("painted in visit {visit}").into_bytes())
                });
                let reply = server.answer_when_changed(&request, Duration::from_secs(20))?;
                send(&mut stream, &reply.encode())?;
                play.join().map_err(|_| "a panic")??;
                continue;
            }
            let request = SyncRequest::decode(&message, SyncLimits::default())?;
            send(&mut stream, &server.answer(&request)?.encode())?;
        }
        // The client is offline: the server registers, builds and digs.
        let [glass] = world.registry().register_blocks(["game:glass"])?;
        world.transaction(|tx| {
            tx.set_block(overworld, BlockPos::new(5, 5, 5), glass)?;
            tx.delete(ChunkAt::new(overworld, ChunkPos::new(-8, 3, -8)?));
            tx.put_object("bricks/7", *b"blue")?;
            tx.delete_object("bricks/8")?;
            Ok::<_, Box<dyn Error>>(())
        })?;
    }
    let status = client.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the client ended with {status}").into()) }
}

/// Sends a request, and applies its reply.
fn ask(stream: &mut TcpStream, cache: &SyncClient, request: &SyncRequest) -> Result<(SyncOutcome, usize)> {
    send(stream, &request.encode())?;
    let message = receive(stream, SyncLimits::default().reply_bytes)?.ok_or("the server hung up")?;
    let reply = SyncReply::decode(&message, SyncLimits::default())?;
    Ok((cache.apply(request, &reply)?, message.len()))
}

/// The client: it fetches the box, goes offline, and comes back for what changed.
pub(crate) fn client(address: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    for visit in 0..2 {
        // Opened anew each time: what is known of the server is in the world.
        let path = dir.path().join("cache");
        let world = if visit == 0 { World::builder().create(path)? } else { World::builder().open(path)? };
        // Its own names and ids come first.
        world.registry().register_blocks(["client:marker", "game:glass"])?;
        let overworld = world.registry().register_dimension("game:overworld")?;
        let cache = SyncClient::open(world)?;
        let mut stream = TcpStream::connect(address)?;
        let request = cache.request_area(overworld, area()?)?;
        let (listed, listed_bytes) = ask(&mut stream, &cache, &request)?;
        println!(
            "client: visit {visit}: {} changed, {} gone, in {listed_bytes} bytes",
            listed.stale, listed.gone
        );
        while let Some(request) = cache.request_stale(500)? {
            let (applied, len_bytes) = ask(&mut stream, &cache, &request)?;
            println!("client: visit {visit}: {} chunks came in {len_bytes} bytes", applied.updated);
        }
        let bricks_alone = [ValueSet::of(ValueKind::Objects).with_prefix("bricks/")];
        loop {
            let request = cache.request_values(&bricks_alone)?.with_max_bytes(500);
            let (applied, len_bytes) = ask(&mut stream, &cache, &request)?;
            let (came, gone) = (applied.values_updated, applied.values_gone);
            println!("client: visit {visit}: {came} objects came and {gone} went in {len_bytes} bytes");
            if !applied.has_more_values {
                break;
            }
        }
        send(&mut stream, bricks(cache.world())?.as_bytes())?;
        let hash = cache.world().content_hash(cg_store::view::Area::Box(overworld, area()?))?;
        send(&mut stream, format!("hash {hash}").as_bytes())?;
        send(&mut stream, b"wait")?;
        let (applied, _) = ask(&mut stream, &cache, &cache.request_values(&bricks_alone)?)?;
        println!("client: visit {visit}: {} object came when it changed", applied.values_updated);
        send(&mut stream, bricks(cache.world())?.as_bytes())?;
        assert!(cache.world().objects().get("secrets/1")?.is_none(), "it was not asked for");
        cache.world().close()?;
    }
    Ok(())
}
