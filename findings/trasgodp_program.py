"""trasgoDP 2.1.0: the seed is 42, the radius is released, and categories come from the data.

The script needs numpy, pandas and trasgoDP.
"""

import numpy as np
import pandas as pd
from trasgodp.categorical import dp_exponential_array, dp_randomized_response_kary_array
from trasgodp.geoindis import metric_privacy

if __name__ == "__main__":
    place = pd.DataFrame({"lat": [10.0], "lon": [20.0]})
    released = metric_privacy(place, "lat", "lon", 1e-4).iloc[0]
    zero = metric_privacy(pd.DataFrame({"lat": [0.0], "lon": [0.0]}), "lat", "lon", 1e-4).iloc[0]
    print(
        f"place (10, 20): release minus the noise of any other call: "
        f"latitude {released['lat'] - zero['lat']:.9f}"
    )
    moved = metric_privacy(place, "lat", "lon", 1e-4, seed=7).iloc[0]
    north = np.radians(moved["lat"] - 10) * 6_371_000
    east = np.radians(moved["lon"] - 20) * 6_371_000 * np.cos(np.radians(10))
    print(
        f"radius_m {moved['radius_m']:.3f}, distance to the true place {np.hypot(north, east):.3f}"
    )
    for last in ("c", "d"):
        data = np.array(["a", "b", "c", last])
        for function in (dp_exponential_array, dp_randomized_response_kary_array):
            count = sum("d" in function(data, 1.0) for _ in range(1000))
            print(f"{function.__name__:35} last user {last}: 'd' in {count} of 1000 runs")
