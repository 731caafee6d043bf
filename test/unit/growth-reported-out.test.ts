/** The growth of a task that its server reports as swapped out: a store that was set back has it resident. */
import { expect, it } from 'vitest'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

it('ends: the task returns first, although it asks for as much as the growth', () => {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100 })
  b.addNode({ id: 'n1', gpus: [110], hostSwapMib: 80 })
  const [grower, other] = [b.submit({ vramMib: 40 }), b.submit({ vramMib: 40 })]
  b.cycle()
  b.started(grower, true)
  b.started(other, true)
  b.wantsToGrow(grower, 80)
  b.cycle()
  const placement = placementOf(grower)
  expect(placement).toMatchObject({ demandMib: 40, entry: { kind: 'growth', needMib: 40 } })
  const reported = (task: typeof grower, residency: 'resident' | 'swapped_out') => ({
    task_id: task.spec.id,
    attempt: placementOf(task).attempt,
    residency,
    generation: placementOf(task).generation + 2,
    gpus: [0],
    vram_mib: 40,
    wants_gpu: true,
    idle_ms: 0,
  })
  b.hello(b.node('n1'), { tasks: [reported(grower, 'swapped_out'), reported(other, 'resident')] })
  expect(placement).toMatchObject({
    residency: 'swapped_out',
    demandMib: 40,
    entry: { kind: 'swap_in', needMib: 40 },
  })
  b.finished(other)
  b.settle()
  expect(placement).toMatchObject({ residency: 'resident', demandMib: 80, entry: null })
})
