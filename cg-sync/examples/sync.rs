//! Two processes over a local socket: a server with a world, and a client that caches a part of it.
//!
//! `cargo run -p cg-sync --example sync` is the server and starts itself as the client. The client fetches a box, goes
//! offline while the server plays on, comes back and fetches what changed; both compare the content hash of the box.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};

use cg_store::prelude::*;
use cg_sync::{SyncClient, SyncLimits, SyncReply, SyncRequest, SyncServer, SyncServerLimits};

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
        Ok::<_, Box<dyn Error>>(())
    })?;

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
            let request = SyncRequest::decode(&message, SyncLimits::default())?;
            send(
                &mut stream,
                &SyncServer::new(world.clone(), SyncServerLimits::default()).answer(&request)?.encode(),
            )?;
        }
        // The client is offline: the server registers, builds and digs.
        let [glass] = world.registry().register_blocks(["game:glass"])?;
        world.transaction(|tx| {
            tx.set_block(overworld, BlockPos::new(5, 5, 5), glass)?;
            tx.delete(ChunkAt::new(overworld, ChunkPos::new(-8, 3, -8)?));
            Ok::<_, Box<dyn Error>>(())
        })?;
    }
    let status = client.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the client ended with {status}").into()) }
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
        let mut ask = |request: SyncRequest| -> Result<_> {
            send(&mut stream, &request.encode())?;
            let message =
                receive(&mut stream, SyncLimits::default().reply_bytes)?.ok_or("the server hung up")?;
            let reply = SyncReply::decode(&message, SyncLimits::default())?;
            Ok((cache.apply(&request, &reply)?, message.len()))
        };
        let (listed, listed_bytes) = ask(cache.request_area(overworld, area()?)?)?;
        println!(
            "client: visit {visit}: {} changed, {} gone, in {listed_bytes} bytes",
            listed.stale, listed.gone
        );
        while let Some(request) = cache.request_stale(500)? {
            let (applied, len_bytes) = ask(request)?;
            println!("client: visit {visit}: {} chunks came in {len_bytes} bytes", applied.updated);
        }
        let hash = cache.world().content_hash(cg_store::view::Area::Box(overworld, area()?))?;
        send(&mut stream, format!("hash {hash}").as_bytes())?;
        cache.world().close()?;
    }
    Ok(())
}
