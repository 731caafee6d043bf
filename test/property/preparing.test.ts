/**
 * While a task is being prepared, no GPU counts VRAM for it: drawn worlds of `sim fuzz` on nodes that need
 * time to get images, with all their rules. PREPARING_SEEDS sets the number of worlds.
 */
import { describe, expect, it } from 'vitest'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { addCounts } from '../../simulator/experiment/fuzz/coverage.ts'
import type { Entry, FuzzDocument } from '../../simulator/experiment/fuzz/document.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'

const SEEDS = Number(process.env['PREPARING_SEEDS'] ?? 60)
const PREPARE_SECONDS = [0, 2, 20, 60]
const IMAGES = 4

/** The drawn world, in which some nodes need time for the images of most tasks. */
function withImages(seed: number): FuzzDocument {
  const random = seededStream(String(seed), 'images')
  const below = (count: number): number => Math.floor(random() * count)
  const document = drawDocument(seed)
  return {
    ...document,
    fleet: document.fleet.map((node) => ({
      ...node,
      prepare_seconds: PREPARE_SECONDS[below(PREPARE_SECONDS.length)] ?? 0,
    })),
    workload: document.workload.map(({ task, ...rest }) =>
      task === undefined || below(4) === 0
        ? { ...rest, ...(task === undefined ? {} : { task }) }
        : { ...rest, task: { ...(task as Entry), command: ['train'], image: `team/a:${below(IMAGES)}` } },
    ),
  }
}

describe('a task that is being prepared', () => {
  it('holds no VRAM in any drawn world, and every other rule is kept', { timeout: 120_000 }, async () => {
    const clients = createOperatorClients()
    const counts = new Map<string, number>()
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await judge(scenarioOf(withImages(seed)), clients.openOperatorClient)
      expect(verdict.violations, `seed ${seed}`).toEqual([])
      addCounts(counts, verdict.counts)
    }
    expect(counts.get('waits PREPARING') ?? 0).toBeGreaterThan(SEEDS)
    expect(counts.get('prepare accepted') ?? 0).toBeGreaterThan(0)
  })
})
