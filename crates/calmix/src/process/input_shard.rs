//! The share of the inputs that one of several processes predicts.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use calmix_data::image_list::FileShard;

/// One of `count` shards of the input: whole files of images, or a range of rows of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputShard {
    /// From 1 to `count`.
    index: u64,
    count: u64,
}

impl FromStr for InputShard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; write I/N, such as 2/4 for the second of four");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let shard = Self { index: number(index)?, count: number(count)? };
        if (1..=shard.count).contains(&shard.index) { Ok(shard) } else { Err(wrong()) }
    }
}

impl InputShard {
    /// Returns the shard of a process among several; `None` if there is only one.
    pub fn of_rank(rank: usize, world: usize) -> Option<Self> {
        (world > 1).then_some(Self { index: rank as u64 + 1, count: world as u64 })
    }

    /// Returns its index, from 0, and the number of shards.
    pub fn place(self) -> (usize, usize) {
        ((self.index - 1) as usize, self.count as usize)
    }

    /// Returns the files of this shard.
    pub fn files(self) -> FileShard {
        FileShard { index: self.index - 1, count: self.count }
    }

    /// Returns the rows of this shard if `total` rows are divided into ranges of equal length.
    pub fn rows(self, total: u64) -> Range<u64> {
        let begin = |index: u64| (u128::from(total) * u128::from(index) / u128::from(self.count)) as u64;
        begin(self.index - 1)..begin(self.index)
    }

    /// Returns the output file of this shard: `out-2-of-4.csv` for `out.csv`.
    pub fn file(self, path: &Path) -> PathBuf {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{}-of-{}", self.index, self.count));
        if let Some(ending) = path.extension() {
            name.push(".");
            name.push(ending);
        }
        path.with_file_name(name)
    }

    /// Returns the shard as the user writes it, such as `2/4`.
    pub fn word(self) -> String {
        format!("{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_numbered_from_one() {
        let shard: InputShard = "2/4".parse().unwrap();
        assert_eq!(shard.file(Path::new("a/out.csv")), Path::new("a/out-2-of-4.csv"));
        assert_eq!(shard.word(), "2/4");
        for total in [0, 3, 10, u64::MAX] {
            let all: Vec<Range<u64>> =
                (1..=4).map(|index| InputShard { index, count: 4 }.rows(total)).collect();
            assert!(all[0].start == 0 && all[3].end == total, "{all:?}");
            assert!(all.windows(2).all(|two| two[0].end == two[1].start), "{all:?}");
        }
        for wrong in ["0/4", "5/4", "2", "2/0", "a/b", "-1/4"] {
            assert!(wrong.parse::<InputShard>().is_err(), "{wrong}");
        }
    }
}
