/** Two controllers in a simulated world: one leads, the other waits and takes over. */
import { describe, expect, it } from 'vitest'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }

interface Change {
  /** Since the start. */
  readonly atS: number
  readonly leader: string
  readonly before: string | null
  readonly reason: string
  readonly epoch: number
}

/** Two nodes and a steady stream of tasks for ten minutes. */
async function play(faults: readonly string[]) {
  const text = `
scenario: two-controllers
version: 1
seed: 3
clock: { until: 12m }
fleet: [{ name: "n{i}", count: 2, gpus: 2, gpu: { vram_mib: 40960 } }]
config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 20, run_lease_seconds: 30 }
workload:
  - { generate: poisson, name: g, rate_per_hour: 120, until: 10m, vram_mib: 14Gi, duration: 3m,
      activity: serving }
faults: [${faults.join(', ')}]`
  const { scenario } = loadScenario({ text, baseDir: '/nowhere' })
  let journal = ''
  const { result } = await runScenario(scenario, IDENTITY, {
    journalSink: { write: (part) => (journal += part) },
  })
  expect(result.metrics.tasks.unfinished).toBe(0)
  const lines = journal
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { at: number; kind?: string; data: Omit<Change, 'atS'> })
  const startedAt = lines[0]?.at ?? 0
  const changes = lines
    .filter(({ kind }) => kind === 'leader_changed')
    .map(({ at, data }): Change => ({ atS: (at - startedAt) / 1000, ...data }))
  return { changes, digest: result.digest }
}

const FIRST = { atS: 0, leader: 'head-1', before: null, reason: 'first', epoch: 1 }
/** Never in this run: the world has two controllers. */
const LATE = '{ at: 11m, lease_lost: cut, for: 1ms }'

describe('a world with two controllers', () => {
  it('replaces a leader that is cut off within its lease, and lets it wait afterwards', async () => {
    const { changes } = await play([
      '{ at: 5m, lease_lost: cut, for: 1m }',
      '{ at: 8m, lease_lost: cut, for: 1m }',
    ])
    expect(changes).toEqual([
      FIRST,
      { atS: expect.any(Number), leader: 'head-2', before: 'head-1', reason: 'silent', epoch: 2 },
      { atS: expect.any(Number), leader: 'head-1', before: 'head-2', reason: 'silent', epoch: 3 },
    ])
    for (const [index, fromS] of [300, 480].entries()) {
      const tookS = (changes[index + 1]?.atS ?? 0) - fromS
      // Its last beat may have been a quarter of a lease before.
      expect(tookS).toBeGreaterThanOrEqual(1.5)
      expect(tookS).toBeLessThanOrEqual(2.25)
    }
  })

  it('replaces a leader without answers once it gives up a commit and its process ends', async () => {
    const { changes } = await play(['{ at: 5m, lease_lost: unanswered, for: 1m }'])
    expect(changes.slice(1)).toEqual([
      { atS: expect.any(Number), leader: 'head-2', before: 'head-1', reason: 'disconnected', epoch: 2 },
    ])
    expect(changes[1]?.atS).toBeLessThanOrEqual(304)
  })

  it('replaces a paused leader, which ends when it continues', async () => {
    const { changes } = await play([
      '{ at: 5m, lease_lost: paused, for: 1m }',
      // The process that was paused has been restarted as a standby.
      '{ at: 7m, crash: controller, for: 1m }',
    ])
    expect(changes.slice(1)).toEqual([
      { atS: expect.any(Number), leader: 'head-2', before: 'head-1', reason: 'silent', epoch: 2 },
      { atS: expect.any(Number), leader: 'head-1', before: 'head-2', reason: 'disconnected', epoch: 3 },
    ])
  })

  it.each(['cut', 'unanswered', 'paused'])(
    'keeps a leader that is %s for less than its lease',
    async (how) => {
      const { changes } = await play([`{ at: 5m, lease_lost: ${how}, for: 1s }`])
      // The answers of a commit that were lost never come: it is given up after the lease.
      expect(changes.length).toBe(how === 'unanswered' ? 2 : 1)
    },
  )

  it('replaces a killed or stopped leader before its supervisor starts it again', async () => {
    const { changes } = await play([
      '{ at: 3m, crash: controller }',
      '{ at: 5m, restart: controller }',
      '{ at: 7m, crash: controller, at_point: after_persist }',
      LATE,
    ])
    expect(changes.map(({ leader, epoch }) => [leader, epoch])).toEqual([
      ['head-1', 1],
      ['head-2', 2],
      ['head-1', 3],
      ['head-2', 4],
    ])
    expect(changes[1]?.atS).toBeLessThan(181)
  })

  it('keeps the leader while the store is frozen for less than its lease', async () => {
    const { changes } = await play(['{ at: 5m, store_frozen: true, for: 1s }'])
    expect(changes).toEqual([FIRST])
  })

  it.each(['store_frozen', 'store_failover'])('has a new term after a longer %s', async (fault) => {
    const { changes } = await play([`{ at: 5m, ${fault}: true, for: 30s }`])
    expect(changes.slice(1)).toEqual([
      { atS: 330, leader: 'head-1', before: 'head-1', reason: 'disconnected', epoch: 2 },
    ])
  })

  it('has the same digest again', async () => {
    const faults = [
      '{ at: 5m, lease_lost: paused, for: 30s }',
      '{ at: 4m, slow_disk: controller, ms: 3s, for: 2m }',
    ]
    expect((await play(faults)).digest).toBe((await play(faults)).digest)
  })
})
