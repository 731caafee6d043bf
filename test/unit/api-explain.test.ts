import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import type { ApiContractWorld } from '../support/api-contract.ts'
import { realEngine } from '../support/real-engine.ts'

const SMALL = '5f0c9a52-1d3e-4b7a-9c11-0000000000aa'
const LARGE = '5f0c9a52-1d3e-4b7a-9c11-0000000000bb'

let world: ApiContractWorld
let api: ApiClient

beforeEach(async () => {
  world = await realEngine({ retainDecisions: 100 })
  await world.addNode({ id: SMALL, gpus: 1, physicalMib: 24_576 })
  await world.addNode({ id: LARGE, gpus: 2, physicalMib: 49_152 })
  api = await apiClient(world)
})
afterEach(() => api.app.close())

const submit = async (body: object) => (await api.send('POST', '/tasks', body)).body.id as string
const explain = async (id: string) => (await api.send('GET', `/tasks/${id}/explain`)).body

describe('the explanation of a waiting task', () => {
  test('lists for each node the available and the required VRAM, closest node first', async () => {
    for (const mib of [40_000, 30_000]) await submit({ vram_mib: mib })
    const id = await submit({ vram_mib: 30_000 })
    const { wait, verdicts } = await explain(id)
    expect(wait.reason).toBe('WAITING_VRAM')
    expect(verdicts).toMatchObject({ node_count: 2, others: [] })
    expect(verdicts.nodes).toMatchObject([
      { node_id: LARGE, fits: false, reason: 'WAITING_VRAM', have_mib: 17_104, need_mib: 30_000 },
      { node_id: SMALL, fits: false, reason: 'NEVER_FITS', have_mib: 22_528, need_mib: 30_000 },
    ])
    expect(verdicts.nodes[0].gpus).toMatchObject([
      { gpu: 0, commit_room_mib: 7_104, free_mib: 7_104 },
      { gpu: 1, commit_room_mib: 17_104, free_mib: 17_104 },
    ])
  })

  test('says that the task needs more GPUs than any node has, and the task is accepted', async () => {
    const { status, body } = await api.send('POST', '/tasks', { vram_mib: 100, gpu_count: 64 })
    expect([status, body.state, body.wait.reason]).toEqual([201, 'pending', 'EXCEEDS_NODE_GPU_COUNT'])
  })

  test('names the smallest changes that would place the task', async () => {
    await submit({ vram_mib: 40_000 })
    const other = await submit({ vram_mib: 30_000 })
    const id = await submit({ vram_mib: 18_000, groups: [] })
    await submit({ vram_mib: 22_000 })
    const blocked = await submit({ vram_mib: 18_000 })
    expect((await explain(id)).state).toBe('assigned')
    const { would_fit_if: would } = await explain(blocked)
    expect(would).toMatchObject({ fits_alone: false, nodes_tried: 2, nodes: 2 })
    const vram = would.changes.find(({ change }: { change: string }) => change === 'vram')
    expect(vram).toMatchObject({ from: 18_000, to: 17_104, node_id: LARGE })
    expect(vram.sentence).toMatch(/^It would fit .* if it requested 17,104 MiB instead of 18,000 MiB\.$/)
    const reserve = would.changes.filter(({ change }: { change: string }) => change === 'reserve')
    expect(reserve).toMatchObject([
      { scope: 'cluster', from: 2_048, to: 1_152, node_id: LARGE },
      { scope: 'node', from: 2_048, to: 1_152, node_id: LARGE },
    ])
    const end = would.changes.find(({ change }: { change: string }) => change === 'task_ends')
    expect([other, id]).toContain(end.task_id)
    expect(end.task_id).toBe(id)
    await api.send('PUT', '/config', { safety_reserve_mib: reserve[0].to })
    expect((await explain(blocked)).state).toBe('assigned')
  })

  test('says if the task fits nowhere, whatever is changed', async () => {
    const { would_fit_if: would } = await explain(await submit({ vram_mib: 16_000_000, gpu_count: 8 }))
    expect(would).toMatchObject({ fits_alone: false, changes: [] })
  })

  test('says that uncordoning a node would place the task', async () => {
    for (const node of [SMALL, LARGE]) await api.send('POST', `/nodes/${node}/cordon`)
    const { would_fit_if: would } = await explain(await submit({ vram_mib: 40_000 }))
    expect(would.changes).toMatchObject([{ change: 'uncordon', node_id: LARGE, proviso: null }])
  })
})

describe('the explanation of a placed task', () => {
  test('names the decision, and why the task cannot be swapped out now', async () => {
    const {
      sentence,
      placed_by: placedBy,
      victim,
      verdicts,
      would_fit_if: would,
    } = await explain(await submit({ vram_mib: 10_000, name: 'train' }))
    expect(sentence).toContain('has not confirmed the start')
    expect(placedBy).toMatchObject({ rule: 'fits_now', number: expect.any(Number) })
    expect(placedBy.sentence).toMatch(/^train starts on GPU 0 of /)
    expect((await api.send('GET', `/decisions/${placedBy.number}`)).body.sentence).toBe(placedBy.sentence)
    expect(victim).toEqual({
      standing: 'NOT_STARTED',
      eligible_at: null,
      sentence: 'It is not swapped out: its node has not confirmed the start.',
    })
    expect([verdicts, would]).toEqual([null, null])
  })
})

test('a final task has no waiting reason, verdict or placement', async () => {
  const id = await submit({ vram_mib: 16_000_000 })
  await api.send('DELETE', `/tasks/${id}`)
  expect(await explain(id)).toMatchObject({
    state: 'cancelled',
    waits: false,
    verdicts: null,
    would_fit_if: null,
    victim: null,
    placed_by: null,
  })
})
