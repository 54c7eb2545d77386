//! The locks that a thread holds.

#[cfg(debug_assertions)]
pub(super) use checked::Held;
#[cfg(not(debug_assertions))]
pub(super) use unchecked::Held;

/// Runs host code. The locks that it takes are checked against each other, and not against those that its caller holds.
#[inline]
pub fn host<T>(run: impl FnOnce() -> T) -> T {
    let _apart = Held::apart();
    run()
}

#[cfg(debug_assertions)]
mod checked {
    use std::cell::RefCell;

    use super::super::Rank;

    thread_local! {
        /// The locks that this thread holds, in the order in which it took them.
        static HELD: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Entry {
        Lock(Rank),
        /// Host code begins here.
        Host,
    }

    /// Records that this thread holds a lock, until the value is dropped.
    #[derive(Debug)]
    pub(in super::super) struct Held {
        /// `None` if no thread waits for it for ever.
        entry: Option<Entry>,
    }

    impl Held {
        pub(in super::super) fn take(rank: Option<Rank>) -> Self {
            let held = Self { entry: rank.map(Entry::Lock) };
            held.push();
            held
        }

        pub(super) fn apart() -> Self {
            let held = Self { entry: Some(Entry::Host) };
            held.push();
            held
        }

        /// Asserts that a thread with the locks of this one may wait for a lock.
        #[track_caller]
        pub(in super::super) fn check(rank: Rank, is_layered: bool) {
            check(rank, is_layered, None);
        }

        /// Asserts the same for a held lock that is released while waiting.
        #[track_caller]
        pub(in super::super) fn check_again(&self) {
            if let Some(Entry::Lock(rank)) = self.entry {
                check(rank, false, Some(rank));
            }
        }

        fn push(&self) {
            if let Some(entry) = self.entry {
                // The list may be gone in a thread that is ending.
                let _ = HELD.try_with(|held| held.borrow_mut().push(entry));
            }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let Some(entry) = self.entry else { return };
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                if let Some(last) = held.iter().rposition(|one| *one == entry) {
                    held.remove(last);
                }
            });
        }
    }

    #[track_caller]
    fn check(rank: Rank, is_layered: bool, mut but_for: Option<Rank>) {
        let lowest = HELD.try_with(|held| {
            let held = held.borrow();
            let rank = |entry: &Entry| if let Entry::Lock(rank) = entry { Some(*rank) } else { None };
            held.iter().rev().map_while(rank).filter(|one| but_for.take_if(|own| own == one).is_none()).max()
        });
        if let Ok(Some(lowest)) = lowest
            && (lowest > rank || lowest == rank && !is_layered)
            && !std::thread::panicking()
        {
            panic!("lock order: {rank:?} is taken while {lowest:?} is held, which does not come before it");
        }
    }
}

#[cfg(not(debug_assertions))]
#[expect(clippy::unused_self, reason = "the functions are those of `checked`")]
mod unchecked {
    use super::super::Rank;

    /// Records nothing.
    #[derive(Debug)]
    pub(in super::super) struct Held;

    impl Held {
        #[inline]
        pub(in super::super) const fn take(_: Option<Rank>) -> Self {
            Self
        }

        #[inline]
        pub(super) const fn apart() -> Self {
            Self
        }

        #[inline]
        pub(in super::super) const fn check(_: Rank, _: bool) {}

        #[inline]
        pub(in super::super) const fn check_again(&self) {}
    }
}
