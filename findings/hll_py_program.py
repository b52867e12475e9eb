"""hll-py 0.1.13: the segments of words are keys of the "locally private" sketch.

The script needs only hll-py.
"""

from hll_py import HyperLogLogLDP, SketchConfig

if __name__ == "__main__":
    for word in ("flu", "rare_disease"):
        sketch = HyperLogLogLDP(SketchConfig(epsilon=1.0))
        sketch.insert_segments([f"{word}_seg0"])
        print(f"word {word}: keys of the sketch {list(sketch.sketch_map)}")
