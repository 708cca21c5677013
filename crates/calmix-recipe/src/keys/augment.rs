//! The keys of the augmentation: the views of an image.

use calmix_data::augment::{self as data_augment, EvalView, Filter, First, Strong};

use crate::field::limit::{AT_LEAST_ONE, POSITIVE_SHARE, SHARE, above, from};
use crate::field::{choice, section};

/// The largest side of a view, or of an image before it is cropped, in pixels.
const MAX_SIDE: f64 = 16_384.0;

section! {
    /// The weak view, the strong view and the evaluation view of an image.
    Augment {
        /// The published augmentation to start from; every key below can still be set by itself.
        fixed family: Family = Family::Usb;
        /// The side of every view, in pixels.
        fixed size: u32 = 32, AT_LEAST_ONE.to(MAX_SIDE);
        /// The interpolation used to resize images.
        fixed filter: Filter = Filter::Bilinear;
        /// The shorter side of an image, in pixels, before the centre crop for evaluation; 0 for `size`.
        fixed evaluation_resize: u32 = 0, from(0.0).to(MAX_SIDE);
        /// The weak view.
        part weak: Geometry;
        /// The strong view, before the RandAugment operations.
        part strong: Geometry;
        /// The RandAugment operations of the strong view.
        part rand_augment: RandAugment;
        /// The square that is cut out of the strong view (Cutout).
        part cutout: Cutout;
    }
}

choice! {
    /// A published augmentation.
    Family {
        /// USB and TorchSSL on small images: a shift, three operations, a cutout of up to half the side.
        Usb = "usb",
        /// Google's FixMatch on small images: a shift, two operations with probability ½ each, a cutout of 16 pixels.
        Google = "google",
        /// USB on ImageNet: a crop of 224 from 256 pixels, a random resized crop for the strong view.
        Imagenet = "imagenet",
    }
}

section! {
    /// How a view is cropped from its image.
    Geometry {
        /// The kind of crop.
        fixed frame: Frame = Frame::Shift;
        /// The largest shift, as a share of the side: the image is padded by this much (by reflection), then cropped.
        #[when(frame is Frame::Shift)]
        fixed shift: f64 = 0.125, SHARE;
        /// Whether half of the views are flipped horizontally.
        fixed flip: bool = true;
        /// Whether a shifted view is cropped or flipped first.
        #[when(frame is Frame::Shift)]
        #[when(flip is true)]
        fixed first: First = First::Crop;
        /// The side of the image before the crop, in pixels.
        #[when(frame is Frame::Crop)]
        fixed resize: u32 = 256, AT_LEAST_ONE.to(MAX_SIDE);
        /// The smallest and the largest share of the image's area in a resized crop.
        #[when(frame is Frame::ResizedCrop)]
        fixed area: [f64; 2] = [0.08, 1.0], POSITIVE_SHARE;
        /// The smallest and the largest ratio of width to height in a resized crop.
        #[when(frame is Frame::ResizedCrop)]
        fixed ratio: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0], above(0.0);
    }
}

choice! {
    /// How a view is cropped from its image.
    Frame {
        /// The image is padded by reflection, and a random window is cropped.
        Shift = "shift",
        /// The image is resized to a square of `resize` pixels, and a random window is cropped.
        Crop = "crop",
        /// A rectangle of random `area` and `ratio` is resized to the view.
        ResizedCrop = "resized-crop",
    }
}

section! {
    /// The RandAugment operations of the strong view.
    RandAugment {
        /// How operations and magnitudes are drawn.
        fixed rule: RandAugmentRule = RandAugmentRule::Usb;
        /// The number of operations per view.
        fixed operations: u32 = 3, from(0.0).to(64.0);
    }
}

choice! {
    /// How the RandAugment operations are drawn.
    RandAugmentRule {
        /// Every operation is applied, with a magnitude drawn uniformly from its range.
        Usb = "usb",
        /// Every operation is applied with probability ½, at one of nine magnitudes.
        Google = "google",
    }
}

section! {
    /// The square that is cut out of the strong view (Cutout).
    Cutout {
        /// How the side of the square is chosen.
        fixed rule: CutoutRule = CutoutRule::Random;
        /// The largest side of a random square, as a share of the width.
        #[when(rule is CutoutRule::Random)]
        fixed share: f64 = 0.5, SHARE;
        /// The side of a fixed square, in pixels.
        #[when(rule is CutoutRule::Fixed)]
        fixed side: u32 = 16, from(0.0).to(MAX_SIDE);
        /// The colour of the square: red, green and blue.
        #[when(rule is not CutoutRule::None)]
        fixed fill: [u8; 3] = [125, 123, 114];
    }
}

choice! {
    /// How the side of the cutout square is chosen.
    CutoutRule {
        /// No cutout.
        None = "none",
        /// A random side of up to `share` of the width.
        Random = "random",
        /// A side of `side` pixels.
        Fixed = "fixed",
    }
}

impl Augment {
    /// Returns the augmentation as calmix-data applies it.
    pub fn resolve(&self) -> data_augment::Augment {
        let fill = self.cutout.fill;
        let operations = self.rand_augment.operations;
        data_augment::Augment {
            size: self.size,
            weak: self.weak.resolve(self.size),
            strong: Strong {
                geometry: self.strong.resolve(self.size),
                rand_augment: match self.rand_augment.rule {
                    RandAugmentRule::Usb => data_augment::RandAugment::Usb { operations },
                    RandAugmentRule::Google => data_augment::RandAugment::Google { operations },
                },
                cutout: match self.cutout.rule {
                    CutoutRule::None => data_augment::Cutout::None,
                    CutoutRule::Random => data_augment::Cutout::Random { share: self.cutout.share, fill },
                    CutoutRule::Fixed => data_augment::Cutout::Fixed { side: self.cutout.side, fill },
                },
            },
            evaluation: EvalView {
                resize: if self.evaluation_resize == 0 { self.size } else { self.evaluation_resize },
            },
            filter: self.filter,
        }
    }
}

impl Geometry {
    fn resolve(&self, size: u32) -> data_augment::Geometry {
        let flip = self.flip;
        match self.frame {
            Frame::Shift => {
                // USB's `int(size * 0.125)`.
                let pad = (f64::from(size) * self.shift).floor() as u32;
                data_augment::Geometry::Shift { pad, flip, first: self.first }
            }
            Frame::Crop => data_augment::Geometry::Crop { resize: self.resize, flip },
            Frame::ResizedCrop => {
                data_augment::Geometry::ResizedCrop { area: self.area, ratio: self.ratio, flip }
            }
        }
    }
}
