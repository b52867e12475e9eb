"""DiffPriv 1.0.3: rows with the noise of a mean, and answers that are not randomised.

The script needs numpy and DiffPriv. The import of DiffPriv asks the network for the newest version.
"""

import io
import tempfile
from pathlib import Path

import numpy as np
from DiffPriv.diff import lapmech, randresponse

if __name__ == "__main__":
    ages = [60.0] + [40.0] * 19
    path = Path(tempfile.mkdtemp(), "private.csv")
    released = []
    for _ in range(1000):
        data = io.StringIO("".join(f"{age}\n" for age in ages))
        lapmech(data, str(path), 1.0, np.mean).close()
        released.append(float(path.read_text().split(",")[0]))
    middle = np.percentile(released, [5, 95])
    print(f"epsilon 1, true age 60: 90% of the releases lie in [{middle[0]:.2f}, {middle[1]:.2f}]")
    same = np.zeros(5, dtype=int)
    for _ in range(1000):
        answers = [0, 1, 1, 0, 1]
        randresponse(answers)
        same += np.array(answers) == [0, 1, 1, 0, 1]
    print(f"answers that stay as they are, in 1000 runs: {same.tolist()}")
