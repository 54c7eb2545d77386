//! Queues, and several threads at once.

use std::ptr::{null, null_mut};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use cherrygrove::*;

use crate::support::*;

fn new_queue(game: &Game, capacity: u32) -> cg_handle {
    let mut queue = 0;
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_queue_new(game.world, capacity, &raw mut queue, e) });
    queue
}

fn wait(queue: cg_handle, cap: usize, timeout_ms: u32) -> Vec<cg_done> {
    // SAFETY: zeros are an answer.
    let (mut done, mut n) = (vec![unsafe { std::mem::zeroed::<cg_done>() }; cap], 9);
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_queue_wait(queue, done.as_mut_ptr(), cap, &raw mut n, timeout_ms, e) });
    done.truncate(n);
    done
}

#[test]
fn answers_are_fetched_with_what_they_bring() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    game.save(0, 0, 1);
    let queue = new_queue(&game, 3);
    assert!(
        wait(queue, 4, 0).is_empty() && wait(queue, 4, 20).is_empty() && wait(queue, 0, u32::MAX).is_empty()
    );
    let (here, nowhere) = (game.column_at(0, 0), game.column_at(1, 0));
    let (tx, other) = (new_tx(w), new_tx(w));
    // SAFETY: all memory is of this function, and a view is lent until its handle is released.
    unsafe {
        ok(|e| cg_tx_property(tx, text("game:a"), bytes(b"1"), e));
        ok(|e| cg_tx_delete_chunk(tx, game.dimension, cg_pos { x: 5, y: 0, z: 0 }, e));
        ok(|e| cg_tx_expect_chunk(tx, game.dimension, cg_pos { x: 5, y: 0, z: 0 }, 77, e));
        ok(|e| cg_queue_load(queue, b, &raw const here, 10, e));
        ok(|e| cg_queue_load(queue, b, &raw const nowhere, 11, e));
        ok(|e| cg_queue_commit(queue, tx, 0, 12, e));
        fails(result::BUSY, "3 answers", |e| cg_queue_load(queue, b, &raw const here, 13, e));
        ok(|e| cg_tx_property(other, text("game:b"), bytes(b"2"), e));
        fails(result::BUSY, "3 answers", |e| cg_queue_commit(queue, other, 0, 13, e));
        let mut done = Vec::new();
        while done.len() < 3 {
            done.extend(wait(queue, 2, u32::MAX));
        }
        done.sort_by_key(|done| done.tag);
        assert_eq!(
            done.iter().map(|done| (done.tag, done.result)).collect::<Vec<_>>(),
            [(10, CG_OK), (11, CG_ABSENT), (12, result::CONFLICT)]
        );
        assert_eq!(((*done[0].view).section_count, done[1].view, done[1].column), (1, null(), 0));
        assert_eq!(cg_release(done[0].column), CG_OK);
        assert_eq!((done[2].flags & 2, done[2].dimension, done[2].chunk.x), (2, game.dimension, 5));
        let mut said = cg_bytes::NONE;
        ok(|e| cg_bytes_of(done[2].message, &raw mut said, e));
        assert!(String::from_utf8(copied(said)).expect("UTF-8").contains("expected was 77"));
        assert_eq!((done[0].message, done[1].message, cg_release(done[2].message)), (0, 0, CG_OK));
        // A refused one kept its writes, an accepted one is empty.
        gives(CG_UNCHANGED, |e| cg_tx_commit(tx, 0, null_mut(), e));
        ok(|e| cg_queue_commit(queue, other, 1, 14, e));
        let done = wait(queue, 9, 10_000);
        assert_eq!((done.len(), done[0].tag, done[0].result, done[0].commit > 0), (1, 14, CG_OK, true));
        assert_eq!(cg_queue_cancel(queue, 14), CG_ABSENT);
        let other_world = Game::in_memory();
        fails(result::INVALID, "of another world", |e| {
            cg_queue_load(queue, other_world.binding, &raw const here, 1, e)
        });
        let tx = new_tx(other_world.world);
        fails(result::INVALID, "of another world", |e| cg_queue_commit(queue, tx, 0, 1, e));
        other_world.close();
    }
    game.close();
}

#[test]
fn a_waiter_is_woken_when_the_queue_is_released_or_its_world_is_closed() {
    for closes in [false, true] {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("world").to_string_lossy().into_owned();
        let game = Game::at(&path);
        let (queue, world) = (new_queue(&game, 4), game.world);
        thread::scope(|scope| {
            let waiter = scope.spawn(move || {
                // SAFETY: zeros are an answer.
                let (mut done, mut n) = (unsafe { std::mem::zeroed::<cg_done>() }, 9);
                // SAFETY: all memory is of this function.
                failed(|e| unsafe { cg_queue_wait(queue, &raw mut done, 1, &raw mut n, u32::MAX, e) })
            });
            thread::sleep(Duration::from_millis(50));
            // SAFETY: it takes no memory.
            unsafe {
                if closes {
                    ok(|e| cg_world_close(world, e));
                } else {
                    assert_eq!(cg_release(queue), CG_OK);
                }
            }
            assert_eq!(waiter.join().expect("no panic").0, result::CLOSED);
        });
        if closes {
            // The queue that is not released keeps no directory.
            Game::at(&path).close();
        }
    }
}

#[test]
fn a_transaction_belongs_to_one_thread_at_a_time() {
    let game = Game::in_memory();
    let w = game.world;
    let (tx, mut chunk) = (new_tx(w), 0);
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_chunk_new(w, 0, &raw mut chunk, e) });
    let start = Barrier::new(4);
    let busy: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u8)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let mut busy = 0;
                    let large = vec![thread; 1 << 20];
                    for _ in 0..200 {
                        // SAFETY: all memory is of this function.
                        let (found, message) =
                            failed(|e| unsafe { cg_tx_object_put(tx, bytes(&[thread]), bytes(&large), e) });
                        assert!([CG_OK, result::BUSY].contains(&found), "{message}");
                        busy += usize::from(found == result::BUSY);
                        // SAFETY: all memory is of this function.
                        let (found, message) = failed(|e| unsafe {
                            cg_chunk_cells(chunk, 0, vec![0; 4096].as_mut_ptr(), 4096, e)
                        });
                        assert!([CG_OK, result::BUSY].contains(&found), "{message}");
                        if busy > 0 && found == result::BUSY {
                            assert!(message.contains("the chunk is used by another thread"), "{message}");
                        }
                    }
                    busy
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert!(busy > 0);
    game.close();
}

#[test]
fn a_world_is_used_by_many_threads_and_closed_meanwhile() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let game = Game::at(&path);
    let accepted: Vec<Vec<i64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4_i64)
            .map(|z| {
                let game = &game;
                scope.spawn(move || {
                    let stone = [1_u32];
                    let layer = uniform(&stone);
                    let section = section(&layer);
                    let mut accepted = Vec::new();
                    for x in 0..100_000 {
                        let column =
                            cg_column { sections: &raw const section, section_count: 1, ..game.column(x, z) };
                        // SAFETY: all memory is of this function.
                        let (found, message) = failed(|e| unsafe {
                            cg_column_submit(game.world, game.binding, &raw const column, 0, e)
                        });
                        if found == CG_OK {
                            accepted.push(x);
                        } else {
                            assert_eq!(found, result::CLOSED, "{message}");
                            break;
                        }
                    }
                    accepted
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        // SAFETY: it takes no memory.
        ok(|e| unsafe { cg_world_close(game.world, e) });
        assert!(start.elapsed() < Duration::from_secs(9), "the close waited in vain");
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let again = Game::at(&path);
    for (z, accepted) in (0..).zip(accepted) {
        assert!(!accepted.is_empty());
        for x in accepted {
            assert_eq!(again.load(x, z), Some(vec![1]), "({x}, {z}) was accepted and is lost");
        }
    }
    again.close();
}

#[test]
fn a_handle_that_is_released_while_it_is_used_lives_until_the_call_ends() {
    let game = Game::in_memory();
    game.save(0, 0, 1);
    let (w, b) = (game.world, game.binding);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let (mut tx, mut chunk) = (0, 0);
                    // SAFETY: all memory is of this function.
                    unsafe {
                        ok(|e| cg_tx_new(w, &raw mut tx, e));
                        ok(|e| cg_chunk_new(w, 0, &raw mut chunk, e));
                        thread::scope(|inner| {
                            inner.spawn(|| {
                                let at = game.column_at(0, 0);
                                let column = cg_column_at { ..at };
                                let (mut handle, mut view) = (0, null());
                                let _any = cg_column_load(
                                    w,
                                    b,
                                    &raw const column,
                                    &raw mut handle,
                                    &raw mut view,
                                    null_mut(),
                                );
                                let put = cg_tx_object_put(tx, bytes(b"key"), bytes(&[1; 4096]), null_mut());
                                let copied =
                                    cg_tx_chunk(tx, game.dimension, cg_pos::default(), chunk, null_mut());
                                for found in [put, copied] {
                                    assert!([CG_OK, result::CLOSED].contains(&found), "{found}");
                                }
                                assert_eq!(cg_release(handle), CG_OK);
                            });
                            assert_eq!((cg_release(tx), cg_release(chunk)), (CG_OK, CG_OK));
                        });
                    }
                }
            });
        }
    });
    game.close();
}
