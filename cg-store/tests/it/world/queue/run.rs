//! Queued commits that the engine is given in one call.

use std::sync::OnceLock;

use super::*;
use cg_engine::conformance::{Call, Counter, Counting};
use cg_store::Durable;
use cg_store::engine::{CommitSeq, Failure, Guard, Readable, Reopen, RowVisitor, Scan};

/// The signal that the engine sends before it writes a commit, and the answer that it waits for then.
type Step = Arc<Mutex<Option<(Sender<()>, Receiver<Option<Fault>>)>>>;

/// A world of whose engine a commit is being written, until it gets a word: `None` lets it through. When the sender is
/// gone, all go through.
struct BeingWritten {
    /// First, so that closing the world waits for no word.
    words: Sender<Option<Fault>>,
    world: World,
    ids: Ids,
    counter: Counter,
}

impl BeingWritten {
    fn new<E: Engine>(over: impl FnOnce(MemEngine) -> E) -> Self {
        let step = Step::default();
        let engine = MemEngine::new().with_fault({
            let step = Arc::clone(&step);
            move |_| {
                let step = step.lock().expect("no panic");
                let (begun, words) = step.as_ref()?;
                // The test waits for the first commit alone.
                let _ = begun.send(());
                words.recv().ok().flatten()
            }
        });
        let (engine, counter) = Counting::over(over(engine));
        let options = WorldOptions { durability: Durability::Fast, cache_bytes: 0, ..options() };
        let world = World::builder().options(&options).over(engine).expect("a world in memory");
        let ids = Ids::register(&world);
        let ((begun, is_begun), (words, waits)) = (channel(), channel());
        *step.lock().expect("no panic") = Some((begun, waits));
        let held = Self { words, world, ids, counter };
        held.put(0, 1);
        is_begun.recv().expect("it is being written");
        held
    }

    /// Saves a chunk with so many bytes beside its blocks.
    fn put(&self, x: i64, len_bytes: usize) -> Durable {
        let chunk = side(&self.world, &self.ids, x as u8, len_bytes);
        let put = self.world.transaction(|tx| {
            tx.save(self.ids.at(x, 0, 0), chunk);
            Ok::<_, Error>(())
        });
        put.expect("is queued").durable()
    }

    fn runs(&self) -> u64 {
        self.counter.calls().of(Call::CommitRun)
    }

    /// That the first chunks are there, each of a commit of its own.
    #[track_caller]
    fn assert_all(&self, count: i64) {
        let versions = (0..count).map(|x| {
            let (chunk, version) =
                self.world.load_versioned(self.ids.at(x, 0, 0)).expect("loads").expect("is there");
            assert_eq!(chunk.side(self.ids.light).map(|bytes| bytes[0]), Some(x as u8));
            version
        });
        let versions: Vec<_> = versions.collect();
        assert!(versions.windows(2).all(|pair| pair[0].next() == pair[1]), "{versions:?}");
    }
}

#[test]
fn what_is_queued_while_a_commit_is_written_is_one_call() {
    let held = BeingWritten::new(|engine| engine);
    let before = held.runs();
    for x in 1..10 {
        held.put(x, 1);
    }
    assert_eq!(held.runs(), before, "the first is still being written");
    (0..10).for_each(|_| held.words.send(None).expect("it waits"));
    held.world.flush().expect("writes");
    assert_eq!(held.runs(), before + 1);
    assert_eq!(held.world.engine().last_commit(), held.world.last_commit());
    held.assert_all(10);
    assert_sound(&held.world);
}

#[test]
fn a_run_has_a_bound_of_commits_and_one_of_memory() {
    for (count, len_bytes, calls) in [(64, 1, 1), (65, 1, 2), (3, 700 << 10, 2)] {
        let held = BeingWritten::new(|engine| engine);
        let before = held.runs();
        for x in 1..=count {
            held.put(x, len_bytes);
        }
        (0..=count).for_each(|_| held.words.send(None).expect("it waits"));
        held.world.flush().expect("writes");
        assert_eq!(held.runs(), before + calls, "{count} commits of {len_bytes} bytes");
        held.assert_all(count + 1);
    }
}

#[test]
fn a_run_that_fails_in_the_middle_keeps_what_was_written_and_goes_on_with_the_rest() {
    let held = BeingWritten::new(|engine| engine);
    let tickets: Vec<_> = (1..=5).map(|x| held.put(x, 1)).collect();
    let first = held.world.last_commit().get() - 5;
    for word in [None, None, None, Some(Fault::NoSpace)] {
        held.words.send(word).expect("it waits");
    }
    let failed = held.world.flush().expect_err("the disk is full");
    assert!(matches!(failed, Error::Engine(EngineError::ReadOnly { .. })), "{failed}");
    let ended = tickets.iter().map(|ticket| ticket.wait_for(Level::Process));
    let ended: Vec<_> = ended.collect();
    assert!(matches!(ended[..2], [Ok(()), Ok(())]), "{ended:?}");
    for (ticket, ended) in tickets.iter().zip(&ended).skip(2) {
        let Err(Error::Engine(EngineError::ReadOnly { cause })) = ended else { panic!("{ended:?}") };
        assert!(matches!(**cause, EngineError::NoSpace { .. }), "{cause}");
        assert!(!ticket.has_reached(Level::Process));
    }
    assert_eq!(held.world.engine().last_commit().get(), first + 2);
    held.assert_all(6);
    let refused = held.world.transaction(|tx| {
        tx.set_property(Property::Time, Some(vec![1]));
        Ok::<_, Error>(())
    });
    let refused = refused.map(drop).expect_err("the world is read-only");
    assert!(matches!(&refused, Error::Engine(EngineError::ReadOnly { .. })), "{refused}");

    let before = held.runs();
    (0..3).for_each(|_| held.words.send(None).expect("nothing waits yet"));
    held.world.resume().expect("goes on");
    assert_eq!(held.runs(), before + 1, "the other three");
    assert!(tickets.iter().all(|ticket| ticket.has_reached(Level::Process)));
    assert_eq!(held.world.engine().last_commit().get(), first + 5);
    held.assert_all(6);
    assert_sound(&held.world);
}

/// An engine that applies so many batches of the next run, and then loses the answer.
#[derive(Debug)]
struct Unanswered {
    engine: Box<dyn Engine>,
    applies: Arc<Mutex<Option<usize>>>,
    /// The newest commit that was answered.
    answered: AtomicU64,
    failed: OnceLock<Failure>,
}

impl Unanswered {
    fn over(engine: Box<dyn Engine>, applies: &Arc<Mutex<Option<usize>>>) -> Self {
        let answered = AtomicU64::new(engine.last_commit().get());
        Self { engine, applies: Arc::clone(applies), answered, failed: OnceLock::new() }
    }

    fn answer(&self, seq: CommitSeq) -> CommitSeq {
        self.answered.store(seq.get(), Ordering::Release);
        seq
    }
}

impl Readable for Unanswered {
    engine::delegate! { engine => get get_many get_slices }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.engine.scan_rows(scan, visit)
    }
}

impl Engine for Unanswered {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.engine.commit(batch, guards, level).map(|seq| self.answer(seq))
    }

    fn commit_run(
        &self,
        first: CommitSeq,
        mut batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        let applies = if batches.len() > 1 { self.applies.lock().expect("no panic").take() } else { None };
        let Some(applies) = applies else {
            return self.engine.commit_run(first, batches, level).map(|seq| self.answer(seq));
        };
        batches.truncate(applies);
        self.engine.commit_run(first, batches, level)?;
        let cause = Arc::new(EngineError::Unavailable { message: "no answer".into() });
        assert!(self.failed.set(Failure::Write(Arc::clone(&cause))).is_ok(), "it fails once");
        Err(EngineError::WriteFailed { cause })
    }

    engine::delegate! {
        engine => snapshot sync batch_count last_synced checkpoint flush compact close free_bytes caps usage
    }

    fn last_commit(&self) -> CommitSeq {
        CommitSeq::new(self.answered.load(Ordering::Acquire))
    }

    fn failure(&self) -> Option<Failure> {
        self.failed.get().cloned()
    }

    fn reopening(&self) -> Reopen {
        let (reopen, applies) = (self.engine.reopening(), Arc::clone(&self.applies));
        Box::new(move |expects| Ok(reopen(expects)?.map(|engine| Self::over(engine, &applies))))
    }
}

#[test]
fn a_run_whose_answer_is_lost_is_applied_once_however_much_of_it_there_is() {
    for applied in 0..=4 {
        let applies = Arc::new(Mutex::new(Some(applied)));
        let held = BeingWritten::new(|engine| Unanswered::over(Box::new(engine), &applies));
        let tickets: Vec<_> = (1..=4).map(|x| held.put(x, 1)).collect();
        let first = held.world.last_commit().get() - 4;
        // Words for all that is written now and later.
        (0..10).for_each(|_| held.words.send(None).expect("it waits"));
        let lost = held.world.flush().expect_err("no answer came");
        let Error::Engine(EngineError::ReadOnly { cause }) = &lost else { panic!("{lost}") };
        let EngineError::WriteFailed { cause } = &**cause else { panic!("{cause}") };
        assert!(matches!(**cause, EngineError::Unavailable { .. }), "{cause}");
        assert_eq!(held.world.engine().last_commit().get(), first, "as far as was answered");
        held.assert_all(5);

        let before = held.runs();
        held.world.resume().unwrap_or_else(|error| panic!("{applied} batches applied: {error}"));
        assert_eq!(held.runs() - before, u64::from(applied < 4), "the rest is one call");
        assert_eq!(held.world.engine().last_commit().get(), first + 4, "none is applied twice");
        assert!(tickets.iter().all(|ticket| ticket.has_reached(Level::Process)));
        held.put(5, 1);
        held.world.flush().expect("writes");
        held.assert_all(6);
        assert_sound(&held.world);
    }
}
