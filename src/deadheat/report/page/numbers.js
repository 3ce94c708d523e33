/* The data of the page, and how its numbers are written. */

const DATA = JSON.parse($("data").textContent);
const VIEWS = ["expected", "worst", "best", "oblivious"];
const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };
const unpacked = new WeakMap();

function unpack(packed) {
  if (!unpacked.has(packed)) {
    const text = atob(packed[1]),
      bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    unpacked.set(packed, new ARRAYS[packed[0]](bytes.buffer));
  }
  return unpacked.get(packed);
}

const unpackAll = (packed) =>
  Object.fromEntries(Object.entries(packed).map(([name, each]) => [name, unpack(each)]));

const unit = () => (percent ? 100 : 1);

function number(value, signed = false) {
  if (value == null || Number.isNaN(value)) return "–";
  const text = percent ? (100 * value).toFixed(DATA.digits - 2) : value.toFixed(DATA.digits);
  if (Number(text) === 0) return text.replace("-", "");
  return signed && value > 0 ? "+" + text : text.replace("-", "−");
}

/* The ends of an axis that follows the data: a little room, but not beyond what measures can be. */
function axisOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.06 * (high - low), 0.01);
  return [Math.max(low >= 0 ? 0 : -Infinity, low - room), Math.min(high <= 1 ? 1 : Infinity, high + room)];
}

/* About `count` round values on an axis, and how they are written. */
function ticksOf([low, high], count) {
  const least = (high - low) / count,
    power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.7);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) - (percent ? 2 : 0));
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-9);
  const values = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
  return values.map((value) => [value, (unit() * value).toFixed(digits)]);
}
