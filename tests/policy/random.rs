//! Pseudo-random numbers from a seed, the same on every machine.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    /// True in `percent` of all cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// `least` to `most` different items, in the order of the list.
    pub fn some<T: Copy>(&mut self, of: &[T], least: usize, most: usize) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        let mut places: Vec<usize> = (0..of.len()).collect();
        while places.len() > count {
            let out = self.below(places.len());
            places.remove(out);
        }
        places.into_iter().map(|place| of[place]).collect()
    }
}
