//! The field of 256 elements with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (11Dh), of which 2 is a generator.

/// The polynomial, without x^8.
const POLYNOMIAL: u8 = 0x1d;

/// Twice an element. It has no branch, so that loops over it are vectorized.
#[inline(always)]
pub const fn double(element: u8) -> u8 {
    (element << 1) ^ (((element as i8) >> 7) as u8 & POLYNOMIAL)
}

/// The product of two elements.
pub const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = double(a);
        b >>= 1;
    }
    product
}

/// 2 to a power.
pub const fn power(exponent: usize) -> u8 {
    let (mut element, mut left) = (1, exponent % 255);
    while left > 0 {
        element = double(element);
        left -= 1;
    }
    element
}

/// The inverse of an element other than zero: its 254th power.
pub const fn inverse(element: u8) -> u8 {
    let (mut product, mut left) = (1, 254);
    while left > 0 {
        product = multiply(product, element);
        left -= 1;
    }
    product
}

/// Adds `factor` times `source` to `sum`.
pub fn add_multiple(sum: &mut [u8], source: &[u8], factor: u8) {
    // A mask for each bit of the factor: no branch depends on data.
    let masks: [u8; 8] = std::array::from_fn(|bit| 0u8.wrapping_sub(factor >> bit & 1));
    for (sum, byte) in sum.iter_mut().zip(source) {
        let mut element = *byte;
        for mask in masks {
            *sum ^= element & mask;
            element = double(element);
        }
    }
}

/// Multiplies each of `bytes` with `factor`.
pub fn scale(bytes: &mut [u8], factor: u8) {
    let source = bytes.to_vec();
    bytes.fill(0);
    add_multiple(bytes, &source, factor);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_generates_all_elements_and_each_has_an_inverse() {
        let mut seen = [false; 256];
        for exponent in 0..255 {
            let element = power(exponent);
            assert!(!std::mem::replace(&mut seen[usize::from(element)], true), "2^{exponent}");
            assert_eq!(multiply(element, inverse(element)), 1);
        }
        assert_eq!((power(8), power(255), multiply(0x80, 2)), (0x1d, 1, 0x1d));
    }

    #[test]
    fn many_are_multiplied_like_one() {
        let bytes: Vec<u8> = (0..=255).collect();
        for factor in [0, 1, 2, 0x1d, 0xff] {
            let mut sum = vec![7; 256];
            add_multiple(&mut sum, &bytes, factor);
            assert!((0..256).all(|at| sum[at] == 7 ^ multiply(at as u8, factor)), "{factor}");
        }
    }
}
