import { expect, it } from 'vitest'
import { policyForecast } from '../../../operator/contract/policy-forecast.ts'
import { previewPolicy } from '../../../operator/admission/review.ts'
import type { PercentSource } from '../../../operator/contract/policies.ts'
import { aClusterPolicy, aNodePolicy } from '../../support/kubernetes/objects.ts'

const GIB = 1024

/** One GPU of 24 GiB, with an overcommit of 50%. */
function node(
  name: string,
  committedGib: number,
  source: PercentSource = 'ClusterGPUPolicy',
  hasAgent = true,
) {
  const gpu = { uuid: 'G', physicalMib: 24 * GIB, effectiveMib: 36 * GIB, foreignMib: 0, swappedOutMib: 0 }
  const claim = { podUid: 'u', podNamespace: 'n', podName: 'p', gpuUuids: ['G'], swappable: true }
  const condition = { type: 'AgentReady', reason: 'Test', message: '', lastTransitionTime: '' }
  return {
    name,
    status: {
      ...{ effectiveMib: 36 * GIB, overcommit: { percent: 50, source } },
      gpus: [{ ...gpu, committedMib: committedGib * GIB, residentMib: committedGib * GIB }],
      claims: [{ ...claim, vramMib: committedGib * GIB }],
      conditions: [{ ...condition, status: hasAgent ? ('True' as const) : ('False' as const) }],
    },
  }
}

it('A policy of the cluster reaches nodes without a percentage of their own', () => {
  const nodes = [
    node('a', 8),
    node('b', 8, 'Helm'),
    node('c', 8, 'NodeLabel'),
    node('d', 8, 'VendorNodePolicy'),
  ]
  expect(policyForecast('ClusterGPUPolicy', aClusterPolicy(100), nodes)).toEqual([
    'forecast: 100% on 2 nodes; schedulable VRAM 72 GiB now, 96 GiB then.',
  ])
})

it('Nodes whose pods hold more than the new limit are named, and nodes without an agent', () => {
  const nodes = [node('a', 30), node('b', 20, 'Helm', false)]
  expect(policyForecast('ClusterGPUPolicy', aClusterPolicy(10), nodes).slice(1)).toEqual([
    'forecast: pods there hold more than the new limit on a (4 GiB): they stay, and no pod is added.',
    'forecast: no agent reports on b: overcommit has no effect there.',
  ])
})

it('A policy of a node reaches that node, and one without a percentage says so', () => {
  const nodes = [node('a', 8, 'Helm'), node('b', 8)]
  const ofNode = (percent: number | undefined, name: string) =>
    policyForecast('VendorNodePolicy', aNodePolicy('p', percent, name), nodes)
  expect(ofNode(0, 'a')).toEqual(['forecast: 0% on 1 node; schedulable VRAM 36 GiB now, 24 GiB then.'])
  expect(ofNode(0, 'z')).toEqual(['forecast: it applies to no node that the operator has reported.'])
  expect(ofNode(undefined, 'a')[0]).toMatch(/^forecast: no limits\./)
})

it('Without an answer of the API server the policy is allowed, without a forecast of limits', () => {
  const request = { uid: 'u', operation: 'CREATE', kind: { kind: 'ClusterGPUPolicy' } }
  const { response } = previewPolicy({ ...request, object: aClusterPolicy(10) }, null, ['forecast: x.'])
  expect(response).toMatchObject({
    allowed: true,
    warnings: [expect.stringContaining('did not answer in time'), 'forecast: x.'],
  })
})
