"""pure-ldp 1.2.0: RAPPORClient never sets a bit of the filter to 0.

The script needs numpy and pure-ldp (with xxhash 3).
"""

from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer

RUNS = 5000

if __name__ == "__main__":
    server = RAPPORServer(f=0.5, m=64, k=1, d=4, num_of_cohorts=1)
    hashes = server.get_hash_funcs()
    client = RAPPORClient(f=0.5, m=64, hash_funcs=hashes, num_of_cohorts=1)
    print(f"epsilon of the server: {server.epsilon:.3f}")
    bits = [hashes[0][0](str(value - 1)) for value in (1, 2, 3, 4)]
    for value in (1, 2, 3, 4):
        reports = [client.privatise(value)[0] for _ in range(RUNS)]
        zeros = [sum(report[bit] == 0 for report in reports) for bit in bits]
        print(f"value {value}: reports with a 0 at the bit of value 1, 2, 3, 4: {zeros} of {RUNS}")
    print(f"convert_eps_to_f(12) = {client.convert_eps_to_f(12.0)}")
    f = client.convert_eps_to_f(1.0)
    print(f"convert_eps_to_f(1) = {f}, epsilon {client.convert_f_to_eps(f, k=2):.2f} if k = 2")
