//! The augmentations of the published recipes.

use super::{Augment, Cutout, EvalView, Filter, First, Geometry, RandAugment, Strong};

/// The mean colour of CIFAR-10, with which USB fills its cutout.
const USB_FILL: [u8; 3] = [125, 123, 114];

/// Google's grey, the zero of pixels in [−1, 1].
const GOOGLE_FILL: [u8; 3] = [127; 3];

impl Augment {
    /// Returns USB's augmentation for small images of this size: a shift by up to an eighth, mirrored or not, three
    /// operations, and a square of up to half the side.
    pub fn usb(size: u32) -> Self {
        let pad = size / 8;
        Self::small(
            size,
            Geometry::Shift { pad, flip: true, first: First::Crop },
            RandAugment::Usb { operations: 3 },
            Cutout::Random { share: 0.5, fill: USB_FILL },
        )
    }

    /// Returns the augmentation of Google's FixMatch for small images of this size. It differs from USB: mirrored before the
    /// crop (`flip` is off for SVHN), two operations at probability ½, and a square of 16 pixels.
    pub fn google(size: u32, flip: bool) -> Self {
        let pad = size / 8;
        Self::small(
            size,
            Geometry::Shift { pad, flip, first: First::Flip },
            RandAugment::Google { operations: 2 },
            Cutout::Fixed { side: 16, fill: GOOGLE_FILL },
        )
    }

    /// Returns USB's augmentation for ImageNet: a crop of 224 from 256 for the weak view, a random resized crop for the
    /// strong one.
    pub fn imagenet() -> Self {
        Self {
            size: 224,
            weak: Geometry::Crop { resize: 256, flip: true },
            strong: Strong {
                geometry: Geometry::ResizedCrop {
                    area: [0.08, 1.0],
                    ratio: [3.0 / 4.0, 4.0 / 3.0],
                    flip: true,
                },
                rand_augment: RandAugment::Usb { operations: 3 },
                cutout: Cutout::Random { share: 0.5, fill: USB_FILL },
            },
            evaluation: EvalView { resize: 256 },
            filter: Filter::Bilinear,
        }
    }

    fn small(size: u32, geometry: Geometry, rand_augment: RandAugment, cutout: Cutout) -> Self {
        Self {
            size,
            weak: geometry.clone(),
            strong: Strong { geometry, rand_augment, cutout },
            evaluation: EvalView { resize: size },
            filter: Filter::Bilinear,
        }
    }
}
