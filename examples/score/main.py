"""Functions in Python: each public one that is defined in this file can be called by its name, with its
parameters by theirs.
"""

import asyncio
import struct
import zlib

WORDS = {"good": 1, "great": 2, "love": 2, "bad": -1, "awful": -2, "hate": -2}


def run(text: str, threshold: float = 0.6) -> dict:
    """How friendly a text is, from 0 to 1."""
    found = [WORDS[word] for word in text.lower().split() if word in WORDS]
    score = round(0.5 + sum(found) / (4 * max(len(found), 1)), 3)
    print(f"{len(found)} words decide")
    return {"score": score, "friendly": score >= threshold}


async def batch(texts: list[str], threshold: float = 0.6) -> list[dict]:
    """All asynchronous functions share one event loop; what blocks goes to a thread."""
    return await asyncio.gather(*(asyncio.to_thread(run, text, threshold) for text in texts))


def badge(score: float, size: int = 16) -> bytes:
    """A square from red to green, as a PNG: bytes are a result too."""
    pixel = bytes((round(255 * (1 - score)), round(255 * score), 0))
    rows = (b"\0" + pixel * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Private: no call reaches a name that begins with an underscore."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
