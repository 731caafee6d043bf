/** Who says which GPUs a node has. */
import { expect, it } from 'vitest'
import { NODE_GPUS, NODE_LABELS } from '../../../operator/contract/names.ts'
import type { DeclaredGpu } from '../../../operator/placing/declared-gpus.ts'
import { type AgentGpus, nodeGpus } from '../../../operator/placing/node-gpus.ts'

const NODE = {
  metadata: {
    name: 'a',
    labels: { [NODE_LABELS.enabled]: 'true' },
    annotations: { [NODE_GPUS]: '[{"uuid": "declared", "vram_mib": 1}]' },
  },
}
const gpu = (uuid: string) => ({ uuid, model: 'X', vramMib: 1_024 })
const gpuNode = (reason: string) => ({
  metadata: { name: 'a' },
  status: {
    conditions: [{ type: 'Ready', status: 'True', reason }],
    gpus: [{ uuid: 'last', model: 'X', physicalMib: 1_024, foreignMib: 100 }],
  },
})
/** @param foreignMib of each GPU */
const agent = (gpus: readonly DeclaredGpu[] | null, foreignMib: number | null = 0): AgentGpus => {
  return { gpus, foreignMib: () => foreignMib }
}
const uuids = (...given: Parameters<typeof nodeGpus>) => nodeGpus(...given).gpus.map(({ uuid }) => uuid)

it('The report of an agent wins, then its last one, then the annotation', () => {
  expect(uuids(NODE, agent([gpu('now')]), gpuNode('GPUsReported'))).toEqual(['now'])
  expect(uuids(NODE, agent([]), gpuNode('GPUsReported'))).toEqual([])
  expect(uuids(NODE, agent(null), gpuNode('GPUsReported'))).toEqual(['last'])
  expect(uuids(NODE, agent(null), gpuNode('GPUsDeclared'))).toEqual(['declared'])
  expect(uuids(NODE, agent(null), null)).toEqual(['declared'])
})

it('A node without the label has no GPUs for pods', () => {
  expect(uuids({ metadata: { ...NODE.metadata, labels: {} } }, agent([gpu('now')]), null)).toEqual([])
})

it('A GPU that is reported twice is a fault of the node', () => {
  expect(nodeGpus(NODE, agent([gpu('now'), gpu('now')]), null)).toMatchObject({
    ...{ gpus: [], areReported: true, fault: 'The agent reports GPU now twice.' },
  })
})

it('VRAM that others use counts as last reported until the agent reports again', () => {
  const last = gpuNode('GPUsReported')
  const foreign = (reported: AgentGpus) => nodeGpus(NODE, reported, last).foreignMib('last')
  expect(foreign(agent(null, null))).toBe(100)
  expect(foreign(agent([gpu('last')], 0))).toBe(0)
  expect(nodeGpus(NODE, agent(null, null), null).foreignMib('last')).toBe(0)
})
