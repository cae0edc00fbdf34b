//! The client against real servers of two releases. No test waits by the clock for something to
//! be true; every wait has a limit and says what was waited for.

mod basics;
mod lab;
