//! The outside world: a system that performs effects and takes them back.
//!
//! It may know effects by their keys (and then gives back what it gave before, as payment systems do, whatever
//! became of it since), and it may refuse a lower fence than it has seen.

/// An effect that was performed.
#[derive(Debug)]
struct Performed {
    key: usize,
    name: u8,
    effect_key: String,
    undone: bool,
    /// The key began anew since: this is another story.
    old: bool,
}

/// A change that no effect records.
#[derive(Debug)]
struct Mark {
    key: usize,
    run: u64,
    old: bool,
}

/// The fence was too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) struct Refused;

/// The outside world.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) takes_keys: bool,
    pub(super) takes_fences: bool,
    performed: Vec<Performed>,
    marks: Vec<Mark>,
    fences: [u64; 3],
}

impl Sink {
    pub(super) fn new(takes_keys: bool, takes_fences: bool) -> Self {
        Self { takes_keys, takes_fences, performed: Vec::new(), marks: Vec::new(), fences: [0; 3] }
    }

    pub(super) fn anew(&mut self, key: usize) {
        self.performed.iter_mut().filter(|done| done.key == key).for_each(|done| done.old = true);
        self.marks.iter_mut().filter(|mark| mark.key == key).for_each(|mark| mark.old = true);
    }

    /// What was performed under this name is somebody else's business now.
    pub(super) fn disown(&mut self, key: usize, name: u8) {
        let theirs = self.performed.iter_mut().filter(|done| done.key == key && done.name == name);
        theirs.for_each(|done| done.old = true);
    }

    fn check_fence(&mut self, key: usize, fence: u64) -> Result<(), Refused> {
        if !self.takes_fences {
            return Ok(());
        }
        if fence < self.fences[key] {
            return Err(Refused);
        }
        self.fences[key] = fence;
        Ok(())
    }

    /// Performs an effect; its number, and whether it was known by its key.
    pub(super) fn perform(
        &mut self,
        key: usize,
        name: u8,
        effect_key: &str,
        fence: u64,
        old: bool,
    ) -> Result<(u64, bool), Refused> {
        self.check_fence(key, fence)?;
        if self.takes_keys
            && let Some(known) = self.find(effect_key)
        {
            return Ok((known, true));
        }
        let effect_key = effect_key.to_owned();
        self.performed.push(Performed { key, name, effect_key, undone: false, old });
        Ok((self.performed.len() as u64 - 1, false))
    }

    fn find(&self, effect_key: &str) -> Option<u64> {
        let at = self.performed.iter().position(|done| !done.old && done.effect_key == effect_key)?;
        u64::try_from(at).ok()
    }

    /// Takes an effect back; doing it twice is the same as doing it once.
    pub(super) fn undo(&mut self, key: usize, number: u64, fence: u64) -> Result<(), Refused> {
        self.check_fence(key, fence)?;
        if let Some(done) = self.performed.get_mut(usize::try_from(number).unwrap_or(usize::MAX)) {
            done.undone = true;
        }
        Ok(())
    }

    pub(super) fn mark(&mut self, key: usize, run: u64, fence: u64) -> Result<(), Refused> {
        self.check_fence(key, fence)?;
        self.marks.push(Mark { key, run, old: false });
        Ok(())
    }

    /// The run that made the change, for a probe.
    pub(super) fn marked(&self, key: usize) -> Option<u64> {
        self.marks.iter().rev().find(|mark| mark.key == key && !mark.old).map(|mark| mark.run)
    }

    /// The effect behind this key, if it is in force, for a probe.
    pub(super) fn in_force_by_key(&self, effect_key: &str) -> Option<u64> {
        let at = self.performed.iter().position(|d| !d.old && !d.undone && d.effect_key == effect_key)?;
        u64::try_from(at).ok()
    }

    pub(super) fn is_undone(&self, number: u64) -> bool {
        self.performed.get(usize::try_from(number).unwrap_or(usize::MAX)).is_some_and(|done| done.undone)
    }

    /// How many effects of this name are in force.
    pub(super) fn in_force(&self, key: usize, name: u8) -> usize {
        self.performed.iter().filter(|d| d.key == key && d.name == name && !d.old && !d.undone).count()
    }
}
