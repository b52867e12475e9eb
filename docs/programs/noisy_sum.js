// A server: the sum of the users' first values, clipped to [0, 1], plus Laplace noise.
// Run: node noisy_sum.js SCALE
const crypto = require("crypto");
const scale = Number(process.argv[2]);

function uniforms(seed, count) {
  // Numbers in (0, 1), from a keystream that the seed determines.
  const key = crypto.createHash("sha256").update(String(seed)).digest().subarray(0, 16);
  const stream = crypto.createCipheriv("aes-128-ctr", key, Buffer.alloc(16));
  const bytes = stream.update(Buffer.alloc(8 * count));
  return Array.from({ length: count }, (_, i) =>
    (Number(bytes.readBigUInt64LE(8 * i) >> 12n) + 0.5) / 2 ** 52);
}

function laplace(u) {
  return -scale * Math.sign(u - 0.5) * Math.log(1 - 2 * Math.abs(u - 0.5));
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try {
    const { data, draws, seed } = JSON.parse(line);
    const sum = data.flat().reduce((total, x) => total + Math.min(Math.max(x, 0), 1), 0);
    answer = { draws: uniforms(seed, draws).map((u) => sum + laplace(u)) };
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` };
  }
  console.log(JSON.stringify(answer));
});
