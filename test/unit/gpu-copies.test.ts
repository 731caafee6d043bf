/** Duration of copies, compared with the events of residency. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Event } from '../../controller/model/event.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { World } from '../../simulator/world/world.ts'

const FOLDER = join(import.meta.dirname, '../../scenarios')
const SECONDS = 1_800

test('GPUs count the duration of every copy out and in', async () => {
  const text = readFileSync(join(FOLDER, 'swap-fairness-basic.scenario.yaml'), 'utf8')
  const { scenario } = loadScenario({ text, baseDir: FOLDER })
  const world = new World(scenario, { seed: 1 })
  const events: Event[] = []
  world.listen((list) => void events.push(...list))
  await world.start()
  world.feed(workloadOf(scenario, createSeededRandom(1)))
  await world.runUntil(SECONDS * 1000)
  const moving = new Map<string, number>()
  let copyMs = 0
  for (const { kind, taskId, at, data } of events) {
    if (kind !== 'task_residency' || taskId === null) continue
    copyMs += moving.has(taskId) ? at - (moving.get(taskId) as number) : 0
    moving.delete(taskId)
    if (String(data['residency']).startsWith('swapping')) moving.set(taskId, at)
  }
  const { views } = world.controller
  const counted = [...views.nodes()].flatMap(({ gpus }) => gpus.map((gpu) => views.gpuCopyMs(gpu)))
  expect(copyMs).toBeGreaterThan(0)
  expect(counted.reduce((sum, ms) => sum + ms, 0)).toBe(copyMs)
})
