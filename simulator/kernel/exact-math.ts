/**
 * Natural logarithm and exponential with the same bits on every machine and in every version of V8. Math.log
 * and Math.exp may differ in the last bit between CPUs; these use only + - * / and the bits of a double.
 * Algorithms: fdlibm's e_log.c and e_exp.c (Sun Microsystems, 1993), error below 1 ulp.
 */

const LN2_HIGH = 6.9314718036912381649e-1
const LN2_LOW = 1.90821492927058770002e-10
const TWO_54 = 18014398509481984

const double = new Float64Array(1)
const words = new Uint32Array(double.buffer)
/** Which of the two 32-bit words holds sign and exponent: 1 on little-endian machines. */
const HIGH = highWordIndex()

function highWordIndex(): 0 | 1 {
  double[0] = 1
  return words[1] === 0x3ff00000 ? 1 : 0
}

function highWord(x: number): number {
  double[0] = x
  return words[HIGH]! | 0
}

/** `x` with its upper 32 bits replaced. */
function withHighWord(x: number, high: number): number {
  double[0] = x
  words[HIGH] = high
  return double[0]
}

/** Natural logarithm. -Infinity at 0, NaN below 0. */
export function log(x: number): number {
  if (x === 0) return -Infinity
  if (!(x > 0)) return NaN
  if (x === Infinity) return Infinity
  let k = 0
  let high = highWord(x)
  if (high < 0x00100000) {
    k = -54
    x *= TWO_54
    high = highWord(x)
  }
  k += (high >> 20) - 1023
  const mantissa = high & 0x000fffff
  // Normalise: x = 2^k * (1 + f) with sqrt(2)/2 < 1 + f < sqrt(2).
  const carry = (mantissa + 0x95f64) & 0x100000
  const f = withHighWord(x, mantissa | (carry ^ 0x3ff00000)) - 1
  return logOfReduced(f, k + (carry >> 20), mantissa)
}

/** k * ln 2 + ln(1 + f). */
function logOfReduced(f: number, k: number, mantissa: number): number {
  if ((0x000fffff & (2 + mantissa)) < 3) {
    // |f| < 2^-20
    if (f === 0) return k * LN2_HIGH + k * LN2_LOW
    const r = f * f * (0.5 - 0.3333333333333333 * f)
    return k * LN2_HIGH - (r - k * LN2_LOW - f)
  }
  const s = f / (2 + f)
  const z = s * s
  const w = z * z
  const even = w * (3.999999999940941908e-1 + w * (2.222219843214978396e-1 + w * 1.531383769920937332e-1))
  const odd =
    z *
    (6.66666666666673513e-1 +
      w * (2.857142874366239149e-1 + w * (1.818357216161805012e-1 + w * 1.479819860511658591e-1)))
  const r = odd + even
  if (((mantissa - 0x6147a) | (0x6b851 - mantissa)) > 0) {
    const halfSquare = 0.5 * f * f
    return k * LN2_HIGH - (halfSquare - (s * (halfSquare + r) + k * LN2_LOW) - f)
  }
  return k * LN2_HIGH - (s * (f - r) - k * LN2_LOW - f)
}

const EXP_OVERFLOW = 7.09782712893383973096e2
const EXP_UNDERFLOW = -7.4513321910194110842e2
const INVERSE_LN2 = 1.442695040888963387
const HALF_LN2 = 0.34657359027997264
const TWO_MINUS_28 = 3.725290298461914e-9
const TWO_1023 = 8.98846567431158e307
const TWO_MINUS_1000 = 9.332636185032189e-302

/** e to the power `x`. Infinity above 709.78, 0 below -745.13. */
export function exp(x: number): number {
  if (x !== x) return NaN
  if (x > EXP_OVERFLOW) return Infinity
  if (x < EXP_UNDERFLOW) return 0
  const magnitude = x < 0 ? -x : x
  if (magnitude < TWO_MINUS_28) return 1 + x
  if (magnitude <= HALF_LN2) {
    const c = remez(x)
    return 1 - ((x * c) / (c - 2) - x)
  }
  // x = k * ln 2 + (high - low), with the remainder below half of ln 2.
  const k = Math.trunc(INVERSE_LN2 * x + (x < 0 ? -0.5 : 0.5))
  const high = x - k * LN2_HIGH
  const low = k * LN2_LOW
  const rest = high - low
  const c = remez(rest)
  return timesPowerOfTwo(1 - (low - (rest * c) / (2 - c) - high), k)
}

function remez(x: number): number {
  const t = x * x
  const p4 = -1.6533902205465251539e-6 + t * 4.13813679705723846039e-8
  const p2 = -2.77777777770155933842e-3 + t * (6.61375632143793436117e-5 + t * p4)
  return x - t * (1.66666666666666019037e-1 + t * p2)
}

/** y * 2^k for y in [0.5, 2) and -1075 <= k <= 1024, rounded once. */
function timesPowerOfTwo(y: number, k: number): number {
  if (k === 1024) return y * 2 * TWO_1023
  if (k >= -1021) return withHighWord(y, highWord(y) + k * 0x100000)
  return withHighWord(y, highWord(y) + (k + 1000) * 0x100000) * TWO_MINUS_1000
}
