/** Claims on the VRAM of a node, and the GPUs that it declares. */
import { describe, expect, it } from 'vitest'
import { NODE_GPUS } from '../../../operator/contract/names.ts'
import type { Claim, GPUNodeStatus } from '../../../operator/contract/policies.ts'
import { withClaim, withoutClaim } from '../../../operator/placing/claims.ts'
import { declaredGpus } from '../../../operator/placing/declared-gpus.ts'

const GPU = {
  ...{ uuid: 'G', physicalMib: 24_576, effectiveMib: 0, committedMib: 0 },
  ...{ residentMib: 0, foreignMib: 0, swappedOutMib: 0 },
}
const claim = (podUid: string, vramMib: number, swappable = true): Claim => ({
  ...{ podUid, podNamespace: 'default', podName: podUid, gpuUuids: ['G'], vramMib, swappable },
})
/** With what the claims sum up to. */
function of(...claims: readonly Claim[]): GPUNodeStatus {
  const committedMib = claims.reduce((sum, { vramMib }) => sum + vramMib, 0)
  return { committedMib, gpus: [{ ...GPU, committedMib, residentMib: committedMib }], claims: [...claims] }
}
const LIMITS = { percent: 50, reserveMib: 2_048 }

describe('A claim', () => {
  it('counts towards the overcommitted limit', () => {
    expect(withClaim(of(claim('a', 30_000)), claim('b', 6_864), LIMITS)).toMatchObject({
      claims: [{ podUid: 'a' }, { podUid: 'b' }],
    })
    expect(withClaim(of(claim('a', 30_000)), claim('b', 6_865), LIMITS)).toBe(
      'GPU G would have claims of 36865 MiB, but the limit is 36864 MiB',
    )
  })

  it('of a pod that cannot be swapped counts towards what the GPU holds without its reserve', () => {
    const before = of(claim('a', 20_000, false))
    expect(withClaim(before, claim('b', 2_528, false), LIMITS)).toHaveProperty('claims')
    expect(withClaim(before, claim('b', 2_529, false), LIMITS)).toBe(
      'GPU G would have 22529 MiB that cannot be swapped, but has only 22528 MiB',
    )
  })

  it('leaves enough for the largest pod that can be swapped, in either order', () => {
    const [large, small] = [claim('s', 8_000), claim('a', 14_528, false)]
    expect(withClaim(of(large), small, LIMITS)).toHaveProperty('claims')
    expect(withClaim(of(small), large, LIMITS)).toHaveProperty('claims')
    const why =
      'GPU G would have 14529 MiB that cannot be swapped and a swappable pod of 8000 MiB, ' +
      'but has only 22528 MiB'
    expect(withClaim(of(large), claim('a', 14_529, false), LIMITS)).toBe(why)
    expect(withClaim(of(claim('a', 14_529, false)), large, LIMITS)).toBe(why)
  })

  it('of a pod that cannot be swapped does not count towards the overcommitted limit', () => {
    const before = of(claim('a', 18_432), claim('b', 18_432))
    expect(withClaim(before, claim('c', 1), LIMITS)).toMatch(/but the limit is 36864 MiB/)
    expect(withClaim(before, claim('c', 1, false), LIMITS)).toHaveProperty('claims')
  })

  it('of a pod replaces its earlier one', () => {
    expect(withClaim(of(claim('a', 20_000)), claim('a', 22_000), LIMITS)).toEqual(of(claim('a', 22_000)))
  })

  it('on a GPU that the node does not have is refused', () => {
    expect(withClaim({ gpus: [], claims: [] }, claim('a', 1), LIMITS)).toBe('GPU G is not on the node')
  })

  it('is given up without a trace of others, and one that is not there changes nothing', () => {
    const status = of(claim('a', 1), claim('b', 2))
    expect(withoutClaim(status, 'a')).toEqual(of(claim('b', 2)))
    expect(withoutClaim(status, 'c')).toBe(status)
  })
})

describe('GPUs that a node declares', () => {
  const declared = (text: string) => declaredGpus({ annotations: { [NODE_GPUS]: text } })

  it('are read in their order', () => {
    const gpus = [
      { uuid: 'GPU-1', vram_mib: 24_576, model: 'A' },
      { uuid: 'GPU-0', vram_mib: 8_192 },
    ]
    expect(declared(JSON.stringify(gpus))).toEqual({
      ok: true,
      value: [
        { uuid: 'GPU-1', vramMib: 24_576, model: 'A' },
        { uuid: 'GPU-0', vramMib: 8_192, model: '' },
      ],
    })
    expect(declaredGpus({})).toEqual({ ok: true, value: [] })
  })

  it.each([
    ['{', ''],
    ['{}', ''],
    ['[null]', '[0].uuid'],
    ['[{"uuid": "a,b", "vram_mib": 1}]', '[0].uuid'],
    ['[{"uuid": "a", "vram_mib": 1}, {"uuid": "a", "vram_mib": 1}]', '[1].uuid'],
    ['[{"uuid": "a", "vram_mib": 0}]', '[0].vram_mib'],
    ['[{"uuid": "a", "vram_mib": "8Gi"}]', '[0].vram_mib'],
    ['[{"uuid": "a", "vram_mib": 1, "model": 5}]', '[0].model'],
    [`[${'{"uuid": "a", "vram_mib": 1},'.repeat(65)}1]`, ''],
    ['x'.repeat(20_000), ''],
  ])('%s is refused with the path %s', (text, path) => {
    expect(declared(text)).toMatchObject({
      ok: false,
      faults: [{ path: `metadata.annotations[${NODE_GPUS}]${path}` }],
    })
  })
})
