"""syndp 0.5.2: every call draws the same noise, unless the caller passes a seed.

The script needs only syndp (with its dependencies).
"""

from syndp.laplace_mechanism import laplace_mechanism

if __name__ == "__main__":
    noise = laplace_mechanism(0.0, 1.0, 1.0)
    for value in (0.0, 1.0):
        released = {laplace_mechanism(value, 1.0, 1.0) for _ in range(1000)}
        print(
            f"value {value}: {len(released)} different releases in 1000 calls, "
            f"release minus known noise: {released.pop() - noise}"
        )
