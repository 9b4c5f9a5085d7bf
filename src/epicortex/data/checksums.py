"""The known checksums of the built-in data sets' files, and what follows from them.

A file that is well-formed but unknown is used, with a note; one that is known as another file was put in the
wrong place, and is refused. Hashes are of the content after gzip, so that recompressed files count as equal.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from epicortex.errors import DataError

KNOWN: dict[str, dict[str, str]] = {
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    "cifar10": {
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        # Of the python batches only the MD5 is published.
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
    "svhn": {
        "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    },
}


def hasher(dataset: str, role: str) -> hashlib._Hash:
    """The kind of hash that is known of this file."""
    return hasher_like(KNOWN.get(dataset, {}).get(role, ""))


def hasher_like(known: str) -> hashlib._Hash:
    """The kind of hash that `known` is one of: MD5 has 32 hexadecimal digits, SHA-256 has 64."""
    return hashlib.md5(usedforsecurity=False) if len(known) == 32 else hashlib.sha256()


def judge(dataset: str, role: str, path: Path, digest: str) -> tuple[str, ...]:
    """Notes about a well-formed file with this hash: none if it is the known one.

    >>> judge("svhn", "test_32x32.mat", Path("t.mat"), "eb5a983be6a315427106f1b164d9cef3")
    ()
    """
    if KNOWN.get(dataset, {}).get(role) == digest:
        return ()
    for other, files in KNOWN.items():
        for name, known in files.items():
            if known == digest:
                raise DataError(
                    f"{path} is not {role} of {dataset} but {name} of {other}: the files were swapped; "
                    f"put the right one there or run `epicortex data get {dataset}`"
                )
    return (f"{path} has an unknown checksum; it is well-formed and is used as it is",)
