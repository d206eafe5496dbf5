//! Crate docs.
use std::io;

/// A point.
#[derive(Debug, Clone)]
pub struct Point<T> {
    x: T,
    y: T,
}

pub enum Shape { Circle, Square }

pub trait Area {
    fn area(&self) -> f64;
    fn twice(&self) -> f64 {
        let a = self.area();
        a * 2.0
    }
}

impl<T: Copy> Area for Point<T> {
    /// The area.
    #[inline]
    fn area(&self) -> f64 {
        let z = 1;
        0.0
    }
}

macro_rules! square {
    ($x:expr) => {
        $x * $x
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works() {
        assert_eq!(1, 1);
        assert!(true);
    }
}
