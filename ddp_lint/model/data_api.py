"""Data only: what the libraries around data loading do, by qualified name."""

from __future__ import annotations

#: Calls that decode a compressed image or recording, whole.
_DECODES = """
PIL.Image.open cv2.imread cv2.imdecode imageio.imread imageio.v2.imread imageio.v3.imread
skimage.io.imread matplotlib.image.imread matplotlib.pyplot.imread
torchvision.io.read_image torchvision.io.decode_image torchvision.io.decode_jpeg
torchvision.io.decode_png torchvision.io.image.read_image torchvision.io.image.decode_image
torchvision.datasets.folder.default_loader torchvision.datasets.folder.pil_loader
torchvision.datasets.folder.accimage_loader torchvision.datasets.folder.cv2_loader
librosa.load librosa.core.load torchaudio.load audioread.audio_open
"""
DECODES = frozenset(_DECODES.split())
#: Those of them that are about sound.
SOUND = ("librosa.", "torchaudio.", "audioread.")
#: Base classes whose ``self.loader(path)`` decodes.
FOLDER_DATASETS = frozenset(
    f"torchvision.datasets.{name}"
    for name in ("ImageFolder", "DatasetFolder", "folder.ImageFolder", "folder.DatasetFolder")
)
#: Flags of ``cv2.imread`` that decode at a fraction of the size.
SCALED_FLAGS = "IMREAD_REDUCED"
#: Flags for pixels of 16 bits, which are measurements: a depth, a flow.
MEASURING_FLAGS = "IMREAD_ANYDEPTH"
#: Types of whole numbers that no plain picture needs.
WIDE_INTEGERS = frozenset({"uint16", "uint32", "uint64", "int16", "int32", "int64", "long"})
#: Files of images that no decoder gives at a fraction of their size.
WHOLE_IMAGES = frozenset({".png", ".bmp", ".tif", ".tiff", ".gif"})
#: Files of recordings that have to be decoded; a ``.wav`` is only read.
COMPRESSED_SOUND = frozenset({".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".wma"})
#: Below this, a transform that happens by chance leaves nearly all samples alone.
SELDOM = 0.2

#: Calls that encode an image: what is decoded from there was no file.
ENCODERS = frozenset(
    ["cv2.imencode", "PIL.Image.Image.save", "simplejpeg.encode_jpeg"]
    + [f"torchvision.io.{part}{name}" for part in ("", "image.")
       for name in ("encode_jpeg", "encode_png")]
)  # fmt: skip
#: Calls that open a store of samples, one that somebody made for the purpose.
STORES = frozenset({"lmdb.open", "lmdb.Environment", "h5py.File"})
#: Calls that give the bytes of their first argument in another shape.
WRAPPED_BYTES = frozenset(
    ["io.BytesIO", "six.BytesIO", "builtins.bytes", "builtins.bytearray", "builtins.memoryview",
     "numpy.frombuffer", "numpy.fromstring", "numpy.asarray", "numpy.array", "torch.frombuffer",
     "torch.from_numpy", "torch.tensor"]
)  # fmt: skip

#: Functions that filter or resample every pixel of an image.
_HEAVY_FUNCTIONS = """
cv2.GaussianBlur cv2.medianBlur cv2.bilateralFilter cv2.remap cv2.fastNlMeansDenoising
cv2.fastNlMeansDenoisingColored cv2.inpaint
scipy.ndimage.gaussian_filter scipy.ndimage.map_coordinates
scipy.ndimage.rotate scipy.ndimage.affine_transform scipy.ndimage.median_filter
scipy.ndimage.convolve scipy.ndimage.filters.convolve
scipy.ndimage.filters.gaussian_filter scipy.ndimage.interpolation.map_coordinates
scipy.ndimage.interpolation.rotate
skimage.transform.warp skimage.transform.swirl skimage.filters.gaussian
skimage.transform.PiecewiseAffineTransform skimage.restoration.denoise_tv_chambolle
torchvision.transforms.functional.gaussian_blur
torchvision.transforms.v2.functional.gaussian_blur
torchvision.transforms.functional.elastic_transform
torchvision.transforms.v2.functional.elastic
"""
HEAVY_FUNCTIONS = frozenset(_HEAVY_FUNCTIONS.split())
#: Transforms that do so wherever they are called.
HEAVY_TRANSFORMS = frozenset(
    [
        f"torchvision.transforms.{version}{name}"
        for version in ("", "v2.", "transforms.")
        for name in ("GaussianBlur", "ElasticTransform", "RandomPerspective")
    ]
    + [
        f"albumentations.{name}"
        for name in ("ElasticTransform", "GridDistortion", "OpticalDistortion", "GlassBlur",
                     "MotionBlur", "MedianBlur", "GaussianBlur", "AdvancedBlur", "Defocus",
                     "ZoomBlur")
    ]
    + [
        "imgaug.augmenters.ElasticTransformation",
        "imgaug.augmenters.PiecewiseAffine",
        "imgaug.augmenters.GaussianBlur",
    ]
)  # fmt: skip
#: Arguments of ``image.filter`` of PIL that are costly.
PIL_FILTERS = frozenset(
    f"PIL.ImageFilter.{name}"
    for name in ("GaussianBlur", "BoxBlur", "MedianFilter", "MinFilter", "MaxFilter",
                 "UnsharpMask", "ModeFilter", "RankFilter")
)  # fmt: skip

#: Packages whose objects transform samples; containers of such objects are looked into.
TRANSFORM_PACKAGES = (
    "torchvision.transforms.",
    "albumentations.",
    "imgaug.",
    "monai.transforms.",
    "torch.nn.Sequential",
)

#: Calls that give a handle with a position, a lock or a cache of its own.
HANDLES = STORES | frozenset(
    {"zipfile.ZipFile", "tarfile.open", "tarfile.TarFile", "sqlite3.connect"}
)

#: Calls that read a file, or make up a sample.
SAMPLE_WORK = DECODES | frozenset(
    ["builtins.open", "numpy.load", "torch.load", "h5py.File", "zipfile.ZipFile", "pickle.load",
     "json.load", "pandas.read_csv", "pandas.read_parquet", "scipy.io.wavfile.read",
     "soundfile.read", "nibabel.load", "pydicom.dcmread", "scipy.io.loadmat", "torch.randn",
     "torch.rand", "torch.randint"]
)  # fmt: skip
#: Datasets of torchvision that hold all their samples in memory.
IN_MEMORY_DATASETS = frozenset(
    ["MNIST", "FashionMNIST", "KMNIST", "EMNIST", "QMNIST", "CIFAR10", "CIFAR100", "SVHN",
     "STL10", "USPS", "SEMEION", "FakeData", "Omniglot"]
)  # fmt: skip
