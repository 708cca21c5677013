//! What is seen of a image.

use calmix_data::augment::{self as data_augment, EvalView, Filter, First, Strong};

use crate::field::limit::{SHARE, SOME, SOME_SHARE, above, from};
use crate::field::{choice, section};

/// The largest side of a view or of a image before it is cut.
const LARGEST: f64 = 16_384.0;

section! {
    /// The weak view, the strong view, and the one for evaluation.
    Augment {
        /// Whose rules; what follows can then be changed one by one.
        fixed family: Family = Family::Usb;
        /// Pixels a side of every view.
        fixed size: u32 = 32, SOME.to(LARGEST);
        /// How images are resized.
        fixed filter: Filter = Filter::Bilinear;
        /// Pixels of the shorter side before the middle is cut out for evaluation; 0 for `size`.
        fixed evaluation_resize: u32 = 0, from(0.0).to(LARGEST);
        /// The weak view.
        part weak: Geometry;
        /// The strong view, before the operations.
        part strong: Geometry;
        /// The operations of the strong view.
        part rand_augment: RandAugment;
        /// The square that is cut out of the strong view.
        part cutout: Cutout;
    }
}

choice! {
    /// Whose rules of augmentation.
    Family {
        /// USB and TorchSSL on small images: a shift, three operations, a square of up to half the side.
        Usb = "usb",
        /// Google's FixMatch on small images: a shift, two operations at probability ½, a square of 16 pixels.
        Google = "google",
        /// USB on ImageNet: a crop of 224 from 256, a random-resized crop for the strong view.
        Imagenet = "imagenet",
    }
}

section! {
    /// How the frame of a view is drawn.
    Geometry {
        /// How.
        fixed frame: Frame = Frame::Shift;
        /// The widest shift, as a share of the side: reflected padding of so much is cut away again.
        #[when(frame is Frame::Shift)]
        fixed shift: f64 = 0.125, SHARE;
        /// Whether half of the views are mirrored.
        fixed flip: bool = true;
        /// Whether a shifted view is cut or mirrored first.
        #[when(frame is Frame::Shift)]
        #[when(flip is true)]
        fixed first: First = First::Crop;
        /// Pixels a side before a crop.
        #[when(frame is Frame::Crop)]
        fixed resize: u32 = 256, SOME.to(LARGEST);
        /// Least and greatest share of the image's area in a resized crop.
        #[when(frame is Frame::ResizedCrop)]
        fixed area: [f64; 2] = [0.08, 1.0], SOME_SHARE;
        /// Least and greatest ratio of width to height in a resized crop.
        #[when(frame is Frame::ResizedCrop)]
        fixed ratio: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0], above(0.0);
    }
}

choice! {
    /// How the frame of a view is drawn.
    Frame {
        /// The image is padded by its reflection and a window is cut out anywhere.
        Shift = "shift",
        /// The image is squeezed to a square of `resize` pixels and a window is cut out anywhere.
        Crop = "crop",
        /// A rectangle of random `area` and `ratio` is resized to the view.
        ResizedCrop = "resized-crop",
    }
}

section! {
    /// The operations of the strong view.
    RandAugment {
        /// Whose rule draws them.
        fixed rule: RandAugmentRule = RandAugmentRule::Usb;
        /// How many.
        fixed operations: u32 = 3, from(0.0).to(64.0);
    }
}

choice! {
    /// Whose rule draws the operations.
    RandAugmentRule {
        /// Each is applied, with a magnitude uniform in its range.
        Usb = "usb",
        /// Each is applied with probability ½, at one of nine levels.
        Google = "google",
    }
}

section! {
    /// The square that is cut out of the strong view.
    Cutout {
        /// How it is drawn.
        fixed rule: CutoutRule = CutoutRule::Random;
        /// The greatest side of a random square, as a share of the width.
        #[when(rule is CutoutRule::Random)]
        fixed share: f64 = 0.5, SHARE;
        /// The side of a fixed square, in pixels.
        #[when(rule is CutoutRule::Fixed)]
        fixed side: u32 = 16, from(0.0).to(LARGEST);
        /// Its colour.
        #[when(rule is not CutoutRule::None)]
        fixed fill: [u8; 3] = [125, 123, 114];
    }
}

choice! {
    /// How the square is drawn.
    CutoutRule {
        /// There is none.
        None = "none",
        /// A side between nothing and `share` of the width.
        Random = "random",
        /// A side of `side` pixels.
        Fixed = "fixed",
    }
}

impl Augment {
    /// What this comes to.
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
