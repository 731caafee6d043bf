/** Who says which GPUs a node has. */
import { expect, it } from 'vitest'
import { NODE_GPUS, NODE_LABELS } from '../../../operator/contract/names.ts'
import { nodeGpus } from '../../../operator/placing/node-gpus.ts'

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
    gpus: [{ uuid: 'last', model: 'X', physicalMib: 1_024 }],
  },
})
const uuids = (...given: Parameters<typeof nodeGpus>) => nodeGpus(...given).gpus.map(({ uuid }) => uuid)

it('The report of an agent wins, then its last one, then the annotation', () => {
  expect(uuids(NODE, [gpu('now')], gpuNode('GPUsReported'))).toEqual(['now'])
  expect(uuids(NODE, [], gpuNode('GPUsReported'))).toEqual([])
  expect(uuids(NODE, null, gpuNode('GPUsReported'))).toEqual(['last'])
  expect(uuids(NODE, null, gpuNode('GPUsDeclared'))).toEqual(['declared'])
  expect(uuids(NODE, null, null)).toEqual(['declared'])
})

it('A node without the label has no GPUs for pods', () => {
  expect(uuids({ metadata: { ...NODE.metadata, labels: {} } }, [gpu('now')], null)).toEqual([])
})

it('A GPU that is reported twice is a fault of the node', () => {
  expect(nodeGpus(NODE, [gpu('now'), gpu('now')], null)).toEqual({
    ...{ gpus: [], areReported: true, fault: 'The agent reports GPU now twice.' },
  })
})
