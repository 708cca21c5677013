//! Makes checksums right again, so that damage reaches what stands behind them.

/// The sums of all chunks of a PNG, as far as its chunks can be followed.
pub(crate) fn png(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) =
        bytes.get(at..at + 4).map(|length| length.iter().fold(0, |n, &b| n << 8 | usize::from(b)))
    {
        let Some(chunk) = bytes.get_mut(at + 4..).and_then(|rest| rest.get_mut(..length + 8)) else { return };
        let (data, sum) = chunk.split_at_mut(length + 4);
        let mut crc = flate2::Crc::new();
        crc.update(data);
        sum.copy_from_slice(&crc.sum().to_be_bytes());
        at += length + 12;
    }
}

/// The sums of all headers of a tar archive, as far as its members can be followed.
pub(crate) fn tar(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(block) = bytes.get_mut(at..at + 512).filter(|block| block.iter().any(|&byte| byte != 0)) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = str::from_utf8(&block[124..135]).ok().and_then(|size| usize::from_str_radix(size, 8).ok());
        let Some(size) = size else { return };
        at += 512 + size.next_multiple_of(512);
    }
}
