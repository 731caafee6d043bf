import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holdsInTime } from '../support/drawn-cases.ts'
import { worldArb } from '../support/world-arbitraries.ts'
import type { Command, WorldCase } from '../support/world-builder.ts'
import { MINUTE } from '../support/world-builder.ts'
import { expectSound } from '../support/world-soundness.ts'

const FILE = 'test/property/server-restart.test.ts'

/** Server processes die and restart at once, at any time. */
function withRestarts(worlds: fc.Arbitrary<WorldCase>): fc.Arbitrary<WorldCase> {
  const when = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 * MINUTE }), fc.nat({ max: 2 })), {
    minLength: 1,
    maxLength: 10,
  })
  return fc.tuple(worlds, when).map(([world, restarts]) => {
    const faults = restarts.map(([at, n]): Command => ({
      at,
      restart: (world.nodes[n % world.nodes.length] as { name: string }).name,
    }))
    return { ...world, commands: [...(world.commands ?? []), ...faults].toSorted((a, b) => a.at - b.at) }
  })
}

describe('a server process that dies and restarts (R4)', () => {
  it('breaks no rule, whatever was in progress, and loses no task', async () => {
    const property = fc.asyncProperty(
      withRestarts(worldArb({ hasGrowth: true, isHot: true, maxTasks: 6 })),
      async (world) => {
        const { collector } = await expectSound(world, { areHeartbeatsEnacted: true })
        expect(collector.ended['lost']).toBe(0)
      },
    )
    await holdsInTime(property, 15, FILE, { endOnFailure: true })
  })
})
