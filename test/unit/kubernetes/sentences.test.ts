/**
 * Each sentence of specification 2.5 and 2.6 about the operator stack, as pure code decides it. The suites in
 * test/kubernetes show what needs an API server.
 */
import { describe, expect, it } from 'vitest'
import { admit, commitLimitMib, effectiveSchedulableMib } from '../../../controller/model/vram.ts'
import { DOMAIN, HELM_PERCENT, NODE_LABELS, POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import {
  clusterPolicyFaults,
  helmPercentOf,
  nodeOvercommit,
  nodePolicyFaults,
} from '../../../operator/contract/overcommit.ts'
import { forbiddenChanges, podRequestOf, runtimeOf } from '../../../operator/contract/pod-request.ts'
import { percentOfVariable, swapSetting } from '../../../operator/contract/variables.ts'
import { aClusterPolicy, aNodePolicy, aPod, sourcesOf } from '../../support/kubernetes/objects.ts'

const VRAM = `metadata.annotations[${DOMAIN}/pod-vram]`
const SWAP = `metadata.annotations[${DOMAIN}/swap-from-vram]`
const LABEL = 'headroom.dev/vram-overcommit-percent'

describe(`The Helm value ${HELM_PERCENT} is the default of the cluster`, () => {
  it('A change applies at once while no ClusterGPUPolicy exists, and not while one does', () => {
    expect(nodeOvercommit(sourcesOf({ helmPercent: 20 }))).toMatchObject({ percent: 20, source: 'Helm' })
    expect(nodeOvercommit(sourcesOf({ helmPercent: 50 })).percent).toBe(50)
    const clusterPolicy = aClusterPolicy(70)
    expect(nodeOvercommit(sourcesOf({ helmPercent: 20, clusterPolicy }))).toMatchObject({
      percent: 70,
      source: 'ClusterGPUPolicy',
    })
    expect(nodeOvercommit(sourcesOf({ helmPercent: 50, clusterPolicy })).percent).toBe(70)
  })

  it.each(['0', '20', '1000'])('The Helm value %s is accepted', (text) => {
    expect(helmPercentOf(text)).toEqual({ ok: true, value: Number(text) })
  })

  it.each(['1001', '-1', '1.5', '', ' 5', '007', 'abc', '1e2'])('The Helm value "%s" is refused', (text) => {
    expect(helmPercentOf(text)).toMatchObject({
      ok: false,
      faults: [{ path: 'controller.clusterOvercommitPercent' }],
    })
  })
})

describe('ClusterGPUPolicy.spec.defaultVramOvercommitPercent is the default of the cluster', () => {
  it('Its deletion falls back to the Helm value', () => {
    const helmPercent = 20
    expect(nodeOvercommit(sourcesOf({ helmPercent, clusterPolicy: aClusterPolicy(0) })).percent).toBe(0)
    expect(nodeOvercommit(sourcesOf({ helmPercent, clusterPolicy: null }))).toMatchObject({
      percent: 20,
      source: 'Helm',
    })
    expect(nodeOvercommit(sourcesOf({ helmPercent, clusterPolicy: aClusterPolicy(undefined) }))).toEqual({
      percent: 20,
      source: 'Helm',
      findings: [],
    })
  })

  it.each([1001, -1, 1.5, -0, NaN, '20'])('%s is refused with the path of the field', (percent) => {
    expect(clusterPolicyFaults(aClusterPolicy(percent as number))).toMatchObject([
      { path: 'spec.defaultVramOvercommitPercent' },
    ])
  })

  it('Only the policy with the name default is accepted', () => {
    expect(clusterPolicyFaults(aClusterPolicy(20, 'other'))).toMatchObject([{ path: 'metadata.name' }])
    expect(clusterPolicyFaults(aClusterPolicy(20))).toEqual([])
  })
})

describe('VendorNodePolicy.spec.vramOvercommitPercent overrides the percentage of one node', () => {
  it('0 disables overcommit on the node, and deletion inherits', () => {
    const clusterPolicy = aClusterPolicy(50)
    const off = sourcesOf({ clusterPolicy, nodePolicies: [aNodePolicy('gpu-1', 0)] })
    expect(nodeOvercommit(off)).toMatchObject({ percent: 0, source: 'VendorNodePolicy' })
    expect(nodeOvercommit(sourcesOf({ clusterPolicy, nodePolicies: [] })).percent).toBe(50)
    const without = sourcesOf({ clusterPolicy, nodePolicies: [aNodePolicy('gpu-1', undefined)] })
    expect(nodeOvercommit(without)).toMatchObject({ percent: 50, source: 'ClusterGPUPolicy' })
  })

  it('It applies to its own node only', () => {
    const nodePolicies = [aNodePolicy('gpu-2', 80), aNodePolicy('of-rack-3', 90, 'gpu-3')]
    expect(nodeOvercommit(sourcesOf({ nodePolicies })).source).toBe('Helm')
    expect(nodeOvercommit(sourcesOf({ nodePolicies, nodeName: 'gpu-3' })).percent).toBe(90)
  })

  it('A second policy for the node is refused, and the first may be changed', () => {
    const first = aNodePolicy('gpu-1', 20)
    expect(nodePolicyFaults(aNodePolicy('again', 30, 'gpu-1'), [first])).toEqual([
      {
        path: 'spec.nodeName',
        message: 'node "gpu-1" already has the VendorNodePolicy gpu-1; change that one',
      },
    ])
    expect(nodePolicyFaults(aNodePolicy('gpu-1', 30), [first])).toEqual([])
  })

  it('Of two policies that were created at the same moment the older applies, then the first by name', () => {
    const policy = (name: string, percent: number, creationTimestamp: string) => {
      const { metadata, spec } = aNodePolicy(name, percent, 'gpu-1')
      return { metadata: { ...metadata, creationTimestamp }, spec }
    }
    const [early, late] = ['2026-11-26T10:00:00Z', '2026-11-26T10:00:01Z']
    const percentWith = (...nodePolicies: ReturnType<typeof policy>[]) =>
      nodeOvercommit(sourcesOf({ nodePolicies })).percent
    expect(percentWith(policy('a', 10, late), policy('b', 20, early))).toBe(20)
    expect(percentWith(policy('b', 20, early), policy('a', 10, early))).toBe(10)
  })

  it.each([1001, -1])('%s is refused with the path of the field', (percent) => {
    expect(nodePolicyFaults(aNodePolicy('gpu-1', percent), [])).toMatchObject([
      { path: 'spec.vramOvercommitPercent' },
    ])
  })
})

describe(`The node label ${LABEL} overrides the percentage of one node`, () => {
  it('VendorNodePolicy wins over the label, the label over ClusterGPUPolicy, and that over Helm', () => {
    const clusterPolicy = aClusterPolicy(50)
    const labels = { [NODE_LABELS.overcommitPercent]: '70' }
    expect(nodeOvercommit(sourcesOf({ clusterPolicy, labels }))).toEqual({
      percent: 70,
      source: 'NodeLabel',
      findings: [],
    })
    const nodePolicies = [aNodePolicy('gpu-1', 20)]
    const both = nodeOvercommit(sourcesOf({ clusterPolicy, labels, nodePolicies }))
    expect(both).toMatchObject({ percent: 20, source: 'VendorNodePolicy' })
    expect(both.findings).toEqual([
      {
        type: 'OverrideConflict',
        message: `VendorNodePolicy gpu-1 sets 20, but label ${LABEL} sets 70. The policy applies.`,
      },
    ])
  })

  it('A label and a policy that agree do not conflict', () => {
    const labels = { [NODE_LABELS.overcommitPercent]: '20' }
    const sources = sourcesOf({ labels, nodePolicies: [aNodePolicy('gpu-1', 20)] })
    expect(nodeOvercommit(sources).findings).toEqual([])
  })

  it.each(['1001', '-1', 'abc', '', '+5', '20%', '1e2'])('"%s" is ignored with a condition', (value) => {
    const labels = { [NODE_LABELS.overcommitPercent]: value }
    const found = nodeOvercommit(sourcesOf({ labels, clusterPolicy: aClusterPolicy(50) }))
    expect(found).toMatchObject({ percent: 50, source: 'ClusterGPUPolicy' })
    expect(found.findings).toEqual([
      {
        type: 'InvalidOverride',
        message:
          `metadata.labels[${LABEL}]: must be a whole number from 0 to 1000, not ` +
          `${JSON.stringify(value)}. It is ignored.`,
      },
    ])
  })
})

describe('The annotation headroom.dev/swap-from-vram sets the swap mode of a pod', () => {
  it('Absent means true', () => {
    expect(podRequestOf(aPod())).toMatchObject({ ok: true, value: { isSwappable: true } })
  })

  it('"false" is never swapped', () => {
    const pod = aPod({ [POD_ANNOTATIONS.swapFromVram]: 'false' })
    expect(podRequestOf(pod)).toMatchObject({ ok: true, value: { isSwappable: false } })
  })

  it.each(['TRUE', '1', '', 'False', 'yes', 'true '])('"%s" is refused with the path', (value) => {
    expect(podRequestOf(aPod({ [POD_ANNOTATIONS.swapFromVram]: value }))).toEqual({
      ok: false,
      faults: [{ path: SWAP, message: `must be "true" or "false", not ${JSON.stringify(value)}` }],
    })
  })

  it('A later change is refused, because the containers have its value already', () => {
    const before = aPod({ [POD_ANNOTATIONS.swapFromVram]: 'true' }).metadata
    const after = aPod({ [POD_ANNOTATIONS.swapFromVram]: 'false' }).metadata
    expect(forbiddenChanges(before, after)).toEqual([
      { path: SWAP, message: expect.stringContaining('must not change') },
    ])
  })
})

describe('The annotation headroom.dev/pod-vram is the VRAM of a pod, and must stay set', () => {
  it.each([
    ['8Gi', 8192],
    ['8G', 7630],
    ['1500M', 1431],
    ['1.5Gi', 1536],
    ['1e9', 954],
    ['1', 1],
    ['16Ti', 16_777_216],
  ])('%s are %i MiB', (text, mib) => {
    expect(podRequestOf(aPod({ [POD_ANNOTATIONS.podVram]: text }))).toMatchObject({
      ok: true,
      value: { vramMib: mib },
    })
  })

  it.each(['0', '-1', 'x', '', '8 Gi', '8gi', '17Ti', '0.0Gi', '1e99', '1e31'])(
    '"%s" is refused with the path',
    (text) => {
      expect(podRequestOf(aPod({ [POD_ANNOTATIONS.podVram]: text }))).toMatchObject({
        ok: false,
        faults: [{ path: VRAM }],
      })
    },
  )

  it('A pod without it is refused', () => {
    expect(podRequestOf(aPod({ [POD_ANNOTATIONS.podVram]: undefined }))).toMatchObject({
      ok: false,
      faults: [{ path: VRAM, message: expect.stringMatching(/^is required/) }],
    })
  })

  it('Its removal and its change are refused', () => {
    const { metadata } = aPod()
    const changed = aPod({ [POD_ANNOTATIONS.podVram]: '9Gi' }).metadata
    const removed = aPod({ [POD_ANNOTATIONS.podVram]: undefined }).metadata
    expect(forbiddenChanges(metadata, changed)).toMatchObject([{ path: VRAM }])
    expect(forbiddenChanges(metadata, removed)).toMatchObject([
      { path: VRAM, message: expect.stringContaining('must stay set') },
    ])
    expect(forbiddenChanges(metadata, aPod({ 'example.com/note': 'x' }).metadata)).toEqual([])
  })

  it('One answer names every fault of a pod', () => {
    const pod = aPod({
      [POD_ANNOTATIONS.podVram]: '0',
      [POD_ANNOTATIONS.swapFromVram]: 'no',
      [POD_ANNOTATIONS.gpuCount]: '17',
      [POD_ANNOTATIONS.containers]: 'main,sidecar',
    })
    const parsed = podRequestOf(pod)
    expect(parsed.ok ? [] : parsed.faults.map(({ path }) => path)).toEqual([
      VRAM,
      `metadata.annotations[${DOMAIN}/gpu-count]`,
      SWAP,
      `metadata.annotations[${DOMAIN}/containers]`,
    ])
  })
})

describe('The pod label gpu-runtime marks a pod as using the GPU runtime', () => {
  it.each([undefined, 'nvidia', 'kata', 'hami'])('The value %s is not ours', (value) => {
    expect(runtimeOf({ labels: value === undefined ? {} : { 'gpu-runtime': value } })).toEqual({
      isOurs: false,
      warning: null,
    })
  })

  it.each(['Headroom', 'headrom', 'head-room', 'headrooms'])(
    'The misspelling %s is warned about',
    (value) => {
      expect(runtimeOf({ labels: { 'gpu-runtime': value } })).toEqual({
        isOurs: false,
        warning: expect.stringContaining('did you mean "headroom"?'),
      })
    },
  )

  it('The value headroom is ours', () => {
    expect(runtimeOf({ labels: { 'gpu-runtime': 'headroom' } })).toEqual({ isOurs: true, warning: null })
  })
})

describe('The percentage means extra schedulable VRAM per GPU for swappable pods', () => {
  it.each([
    [0, 24_576],
    [20, 29_491],
    [50, 36_864],
    [1000, 270_336],
  ])('Overcommit %i on a GPU of 24,576 MiB makes %i MiB schedulable', (percent, mib) => {
    const { percent: inEffect } = nodeOvercommit(sourcesOf({ helmPercent: percent }))
    expect(effectiveSchedulableMib(24_576, inEffect)).toBe(mib)
  })

  it.each([0, 20, 50, 1000])(
    'At overcommit %i a pod with swap-from-vram false gets physical VRAM only',
    (percent) => {
      const capacityMib = 22_528
      const gpu = {
        physicalMib: 24_576,
        reserveMib: 2_048,
        capacityMib,
        limitMib: commitLimitMib(24_576, percent, capacityMib),
        noswapMib: 0,
        swappableMib: 16_384,
        freeMib: capacityMib - 16_384,
        largestSwappableMib: 4_096,
      }
      const noswap = podRequestOf(aPod({ [POD_ANNOTATIONS.swapFromVram]: 'false' }))
      expect(noswap.ok && admit(gpu, noswap.value.vramMib, 1)).toBe('NO_PHYSICAL_FREE')
      const swappable = podRequestOf(aPod())
      const expected = percent <= 0 ? 'COMMIT_LIMIT' : 'FITS_AFTER_SWAP'
      expect(swappable.ok && admit(gpu, swappable.value.vramMib, 0)).toBe(expected)
    },
  )
})

describe('The server DaemonSet may receive VENDOR_VRAM_OVERCOMMIT_PERCENT', () => {
  it('The agent reads it, or its alias, and refuses what is not a percentage', () => {
    expect(percentOfVariable({ VENDOR_VRAM_OVERCOMMIT_PERCENT: '20' })).toEqual({ ok: true, value: 20 })
    expect(percentOfVariable({ HEADROOM_VRAM_OVERCOMMIT_PERCENT: '30' })).toEqual({ ok: true, value: 30 })
    expect(
      percentOfVariable({ HEADROOM_VRAM_OVERCOMMIT_PERCENT: '30', VENDOR_VRAM_OVERCOMMIT_PERCENT: '0' }),
    ).toEqual({ ok: true, value: 0 })
    expect(percentOfVariable({})).toEqual({ ok: true, value: null })
    expect(percentOfVariable({ VENDOR_VRAM_OVERCOMMIT_PERCENT: '1001' })).toMatchObject({
      ok: false,
      faults: [{ path: 'VENDOR_VRAM_OVERCOMMIT_PERCENT' }],
    })
  })
})

describe('Operator and controller settings never mix', () => {
  it('CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT has no effect on a node of the operator', () => {
    expect(percentOfVariable({ CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT: '70' })).toEqual({
      ok: true,
      value: null,
    })
  })
})

describe('VENDOR_SWAP_FROM_VRAM governs workloads without the task API', () => {
  it.each([
    [{}, true],
    [{ VENDOR_SWAP_FROM_VRAM: '1' }, true],
    [{ VENDOR_SWAP_FROM_VRAM: '0' }, false],
    [{ HEADROOM_SWAP_FROM_VRAM: '0' }, false],
    [{ VENDOR_SWAP_FROM_VRAM: '1', HEADROOM_SWAP_FROM_VRAM: '0' }, true],
  ])('1 is the default, and 0 disables swap: %j', (variables, isSwappable) => {
    expect(swapSetting(variables)).toEqual({ isSwappable, fault: null })
  })

  it('A value that means nothing disables swap, and is reported', () => {
    expect(swapSetting({ VENDOR_SWAP_FROM_VRAM: 'false' })).toEqual({
      isSwappable: false,
      fault: 'VENDOR_SWAP_FROM_VRAM must be 1 or 0, not "false"',
    })
  })
})
