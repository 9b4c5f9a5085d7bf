"""The list of built-in data sets: what each holds, how it is scaled, and where it can be had."""

from __future__ import annotations

from epicortex.data.dataset import Scaling
from epicortex.data.readers.builtin import BuiltIn, Remote, Variant
from epicortex.data.readers.cifar import BATCHES, read_archive, read_binary, read_python
from epicortex.data.readers.digits import read_digits
from epicortex.data.readers.idx import read_mnist
from epicortex.data.readers.mat import read_svhn

DIGITS_NAMES = tuple("0123456789")
_SVHN_MIRRORS = (
    "http://ufldl.stanford.edu/housenumbers",
    "https://cseweb.ucsd.edu/~weijian/static/datasets/svhn",
)


def _idx_names(stem: str, kind: str) -> tuple[str, ...]:
    names = (f"{stem}-{kind}-ubyte", f"{stem}.{kind}-ubyte")
    return tuple(f"{name}{ending}" for name in names for ending in (".gz", ""))


_IDX_FILES = (
    _idx_names("train-images", "idx3"),
    _idx_names("train-labels", "idx1"),
    _idx_names("t10k-images", "idx3"),
    _idx_names("t10k-labels", "idx1"),
)


def _idx_remotes(sums: tuple[tuple[int, str], ...], mirrors: tuple[str, ...]) -> tuple[Remote, ...]:
    return tuple(
        Remote(names[0], size, sha256, tuple(f"{mirror}/{names[0]}" for mirror in mirrors))
        for names, (size, sha256) in zip(_IDX_FILES, sums, strict=True)
    )


DIGITS = BuiltIn(
    name="digits",
    summary="handwritten digits, 8 × 8, comes with scikit-learn",
    shape=(1, 8, 8),
    train=1201,
    test=596,
    classes=DIGITS_NAMES,
    scaling=Scaling(16.0, (0.3048,), (0.3759,)),
    variants=(Variant(folders=(".",), files=(), read=read_digits),),
)

MNIST = BuiltIn(
    name="mnist",
    summary="handwritten digits, 28 × 28",
    shape=(1, 28, 28),
    train=60_000,
    test=10_000,
    classes=DIGITS_NAMES,
    scaling=Scaling(255.0, (0.1307,), (0.3081,)),
    variants=(Variant(folders=("mnist", "MNIST/raw", "MNIST"), files=_IDX_FILES, read=read_mnist),),
    folder="mnist",
    remotes=_idx_remotes(
        (
            (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ),
    ),
)

FASHION_MNIST = BuiltIn(
    name="fashion-mnist",
    summary="articles of clothing, 28 × 28",
    shape=(1, 28, 28),
    train=60_000,
    test=10_000,
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    scaling=Scaling(255.0, (0.0,), (1.0,)),
    variants=(
        Variant(
            # The last is where Debian's package dataset-fashion-mnist puts them.
            folders=(
                "fashion-mnist",
                "FashionMNIST/raw",
                "FashionMNIST",
                "/usr/share/datasets/fashion-mnist",
            ),
            files=_IDX_FILES,
            read=read_mnist,
        ),
    ),
    folder="fashion-mnist",
    remotes=_idx_remotes(
        (
            (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        ),
    ),
)

CIFAR10 = BuiltIn(
    name="cifar10",
    summary="photographs of animals and vehicles, 32 × 32 in colour",
    shape=(3, 32, 32),
    train=50_000,
    test=10_000,
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    scaling=Scaling(255.0, (0.5,) * 3, (0.5,) * 3),
    variants=(
        Variant(
            folders=("cifar10/cifar-10-batches-bin", "cifar-10-batches-bin", "cifar10"),
            files=tuple((f"{batch}.bin",) for batch in BATCHES),
            read=read_binary,
        ),
        Variant(
            folders=("cifar10/cifar-10-batches-py", "cifar-10-batches-py"),
            files=tuple((batch,) for batch in BATCHES),
            read=read_python,
        ),
        Variant(
            folders=("cifar10", "."),
            files=(("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"),),
            read=read_archive,
        ),
    ),
    folder="cifar10",
    remotes=(
        Remote(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c32a1d4ab5d03f1284b67883e8d87530",
            (
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz",
                "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/dataset/cifar10/"
                "cifar-10-binary.tar.gz",
            ),
        ),
    ),
)

SVHN = BuiltIn(
    name="svhn",
    summary="digits of house numbers, 32 × 32 in colour",
    shape=(3, 32, 32),
    train=73_257,
    test=26_032,
    classes=DIGITS_NAMES,
    scaling=Scaling(255.0, (0.5,) * 3, (0.5,) * 3),
    variants=(
        Variant(
            folders=("svhn", "SVHN", "."),
            files=(("train_32x32.mat",), ("test_32x32.mat",)),
            read=read_svhn,
        ),
    ),
    folder="svhn",
    remotes=tuple(
        Remote(name, size, md5, tuple(f"{mirror}/{name}" for mirror in _SVHN_MIRRORS))
        for name, size, md5 in (
            ("train_32x32.mat", 182_040_794, "e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("test_32x32.mat", 64_275_384, "eb5a983be6a315427106f1b164d9cef3"),
        )
    ),
)

BUILT_INS: dict[str, BuiltIn] = {spec.name: spec for spec in (DIGITS, MNIST, FASHION_MNIST, SVHN, CIFAR10)}
