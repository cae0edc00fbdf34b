//! Walks over sorted slices.

/// The items of sorted `a` that sorted `b` lacks, in one walk over both.
pub(crate) fn only_in<'a, T: Ord>(a: &'a [T], b: &'a [T]) -> impl Iterator<Item = &'a T> {
    let mut rest = b.iter().peekable();
    a.iter().filter(move |item| {
        while rest.next_if(|r| r < item).is_some() {}
        rest.peek() != Some(item)
    })
}
