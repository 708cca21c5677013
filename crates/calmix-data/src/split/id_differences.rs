//! Ascending ids in a file, each as its difference to the one before.

use std::fmt;
use std::sync::Arc;

use serde::Serializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

#[expect(clippy::ref_option, reason = "serde passes the field like this")]
pub(super) fn serialize<S: Serializer>(ids: &Option<Arc<[u64]>>, to: S) -> Result<S::Ok, S::Error> {
    let mut before = 0;
    let ids = ids.iter().flat_map(|ids| ids.iter());
    to.collect_seq(ids.map(|&id| id - std::mem::replace(&mut before, id)))
}

/// Stops at the first id that does not ascend, so that the length of the file bounds the memory.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<[u64]>>, D::Error> {
    from.deserialize_seq(Differences).map(|ids| Some(ids.into()))
}

struct Differences;

impl<'de> Visitor<'de> for Differences {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the differences between ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        let mut ids: Vec<u64> = Vec::new();
        while let Some(difference) = list.next_element::<u64>()? {
            let id = match ids.last() {
                None => Some(difference),
                Some(before) => before.checked_add(difference).filter(|id| id > before),
            };
            let Some(id) = id else {
                let place = ids.len();
                let problem = format!("difference {place} of the unlabelled samples is {difference}");
                return Err(A::Error::custom(problem));
            };
            ids.push(id);
        }
        Ok(ids)
    }
}
