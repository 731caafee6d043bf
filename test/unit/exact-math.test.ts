import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { exp, log } from '../../simulator/kernel/exact-math.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'

const LOG_REFERENCES: ReadonlyArray<readonly [x: number, log: number]> = [
  [5e-324, -744.4400719213812],
  [2.5e-320, -735.9109501590998],
  [2.2250738585072014e-308, -708.3964185322641],
  [1e-300, -690.7755278982137],
  [1e-10, -23.025850929940457],
  [0.001, -6.907755278982137],
  [0.25, -1.3862943611198906],
  [0.5, -0.6931471805599453],
  [0.6931471805599453, -0.36651292058166435],
  [0.7071067811865475, -0.34657359027997275],
  [0.7071067811865476, -0.3465735902799726],
  [0.9, -0.10536051565782628],
  [0.99999999, -1.0000000100247594e-8],
  [0.9999999999999999, -1.1102230246251565e-16],
  [1.0000000000000002, 2.2204460492503128e-16],
  [1.0000001, 9.999999505838704e-8],
  [1.25, 0.22314355131420976],
  [1.4142135623730951, 0.3465735902799727],
  [1.4142135623730954, 0.34657359027997287],
  [2, 0.6931471805599453],
  [2.718281828459045, 1.0],
  [3, 1.0986122886681098],
  [10, 2.302585092994046],
  [100, 4.605170185988092],
  [1234.5678, 7.118476228297786],
  [65536, 11.090354888959125],
  [1000000000.0, 20.72326583694641],
  [1e100, 230.25850929940458],
  [1.7976931348623157e308, 709.782712893384],
  [0.40309273233720366, -0.9085886384504658],
  [2.542301210811698, 0.9330696593791137],
  [2.291323856929842, 0.829129753991528],
  [0.7652070772182651, -0.267608792611103],
  [1.486305261275823, 0.3962933500142724],
  [1.3484731943662145, 0.2989729852882581],
  [1.9547789181682889, 0.6702771017067868],
  [2.3661700534065395, 0.8612726367715966],
  [2.0689598579217e-244, -561.1037166936532],
  [1.0197316834435322e-283, -651.6120417800714],
  [2.8778115542256177e201, 463.87663382009316],
  [4.573416381536608e-41, -92.885728320063],
  [2.3337239046314507e157, 362.3533248341438],
  [1.834982854372245e-299, -687.8659076674231],
  [1.7073259168637885e-33, -75.45037971359451],
  [8.394974948008668e132, 306.0688655815829],
]
const EXP_REFERENCES: ReadonlyArray<readonly [x: number, exp: number]> = [
  [-745.1332191019411, 5e-324],
  [-745, 5e-324],
  [-720.5, 1.2326102893e-313],
  [-708.4, 2.217119081664265e-308],
  [-708.3964185322641, 2.2250738585072626e-308],
  [-100, 3.720075976020836e-44],
  [-10.5, 2.7536449349747158e-5],
  [-1.5, 0.22313016014842982],
  [-1.0397207708399179, 0.3535533905932738],
  [-1, 0.36787944117144233],
  [-0.5, 0.6065306597126334],
  [-0.34657359027997264, 0.7071067811865476],
  [-0.3, 0.7408182206817179],
  [-0.001, 0.999000499833375],
  [-1e-10, 0.9999999999],
  [1e-300, 1.0],
  [1e-9, 1.000000001],
  [0.001, 1.0010005001667084],
  [0.1, 1.1051709180756477],
  [0.34657359027997264, 1.414213562373095],
  [0.3465735902799727, 1.4142135623730951],
  [0.5, 1.6487212707001282],
  [0.6931471805599453, 2.0],
  [1, 2.718281828459045],
  [1.0397207708399179, 2.82842712474619],
  [2, 7.38905609893065],
  [10, 22026.465794806718],
  [50.5, 8.548134287298057e21],
  [100, 2.6881171418161356e43],
  [500.25, 1.8022480823881607e217],
  [709, 8.218407461554972e307],
  [709.782712893384, 1.7976931348622732e308],
  [-1.0849511149181894, 0.3379183046549176],
  [1.7810827822156892, 5.936280639050963],
  [1.6057098304459343, 4.981394293408408],
  [-1.8776400678657859, 0.15295063329375924],
  [-1.8982165560261568, 0.14983560448112285],
  [0.16564989117398632, 1.1801598450072415],
  [1.7565966511140423, 5.792689266018539],
  [-0.47518304924715027, 0.6217712312917442],
  [-396.76084401714127, 4.8860151368176745e-173],
  [-109.03679418419574, 4.4250885055692197e-48],
  [-659.3428973951849, 4.477318392492916e-287],
  [-389.63166721775093, 6.097010635074399e-170],
  [-86.95736888919907, 1.7174912398453967e-38],
  [-5.862862065409104, 0.0028430949034945305],
  [-373.68176963939834, 5.1531105293510895e-163],
  [-376.786841842622, 2.3096902125088514e-164],
]

const RECORDED = '650231ae3221cae392dff91a8dd0e9ee8c469a58602c272b41bfca7d4a0b7313'

describe('log and exp against references computed with 2,000 bits (mpmath) and rounded once', () => {
  it.each(LOG_REFERENCES)('log(%d) is within one unit in the last place', (x, reference) => {
    expect(ulpsApart(log(x), reference)).toBeLessThanOrEqual(1)
  })
  it.each(EXP_REFERENCES)('exp(%d) is within one unit in the last place', (x, reference) => {
    expect(ulpsApart(exp(x), reference)).toBeLessThanOrEqual(1)
  })
})

describe('log and exp against this machine', () => {
  it('log is within one unit in the last place of Math.log over the whole range', () => {
    const random = seededStream('exact-math', 'log')
    for (let i = 0; i < 100_000; i++) {
      const x = i % 2 === 0 ? 2 * random() : doubleFrom(random)
      if (x > 0) expectClose(log(x), Math.log(x), `log(${x})`)
    }
  })
  it('exp is within one unit in the last place of Math.exp over the whole range', () => {
    const random = seededStream('exact-math', 'exp')
    for (let i = 0; i < 100_000; i++) {
      const x = i % 2 === 0 ? 4 * random() - 2 : 1456 * random() - 746
      expectClose(exp(x), Math.exp(x), `exp(${x})`)
    }
  })
})

describe('log and exp for extreme values', () => {
  it('log of 0 is -Infinity, of a negative number or NaN is NaN, of Infinity is Infinity', () => {
    expect([log(0), log(-0), log(-1), log(-Infinity), log(NaN), log(Infinity), log(1)]).toEqual([
      -Infinity,
      -Infinity,
      NaN,
      NaN,
      NaN,
      Infinity,
      0,
    ])
  })
  it('exp overflows to Infinity and underflows to 0', () => {
    expect([exp(0), exp(-0), exp(710), exp(Infinity), exp(-746), exp(-Infinity), exp(NaN)]).toEqual([
      1,
      1,
      Infinity,
      Infinity,
      0,
      0,
      NaN,
    ])
  })
})

describe('the bits of log and exp', () => {
  it('are the same on every machine: 20,000 values have the recorded digest', () => {
    const random = seededStream('exact-math', 'bits')
    const values = new DataView(new ArrayBuffer(16 * 10_000))
    for (let i = 0; i < 10_000; i++) {
      values.setFloat64(16 * i, log(1000 * random()), true)
      values.setFloat64(16 * i + 8, exp(40 * random() - 20), true)
    }
    expect(createHash('sha256').update(values).digest('hex')).toBe(RECORDED)
  })
})

const double = new Float64Array(1)
const bits = new BigInt64Array(double.buffer)

function ulpsApart(a: number, b: number): number {
  return Math.abs(Number(ordinal(a) - ordinal(b)))
}

/** Consecutive doubles have consecutive ordinals, through zero. */
function ordinal(x: number): bigint {
  double[0] = x
  return bits[0]! < 0n ? -(bits[0]! & 0x7fffffffffffffffn) : bits[0]!
}

function expectClose(actual: number, reference: number, what: string): void {
  if (Object.is(actual, reference) || ulpsApart(actual, reference) <= 1) return
  expect.fail(`${what} is ${actual}, the machine says ${reference}`)
}

/** Returns any positive finite double, with evenly distributed exponents. */
function doubleFrom(random: () => number): number {
  bits[0] =
    (BigInt(Math.floor(random() * 2047)) << 52n) |
    (BigInt(Math.floor(random() * 1048576)) << 32n) |
    BigInt(Math.floor(random() * 4294967296))
  return double[0]!
}
