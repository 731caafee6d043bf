/**
 * A world that starts from a snapshot tolerates faults like one that started empty: drawn worlds run for a
 * while without faults, are saved, and continue from the file with their faults. HEADROOM_SNAPSHOT_SEEDS=2000
 * draws 2,000 worlds, HEADROOM_SNAPSHOT_SEED=7 only that one.
 */
import { describe, expect, it } from 'vitest'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { drawDocument, featuresOf } from '../../simulator/experiment/fuzz/draw.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'
import type { TaskOutcome } from '../../simulator/results/collector.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Scenario, SimTask } from '../../simulator/scenario/scenario.ts'
import { createSeededRandom, seededStream } from '../../simulator/kernel/seeded-random.ts'
import { snapshotText } from '../../simulator/snapshot/snapshot-text.ts'
import { World } from '../../simulator/world/world.ts'
import { snapshotOfWorld } from '../../simulator/snapshot/world-snapshot.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const SEEDS = Number(process.env['HEADROOM_SNAPSHOT_SEEDS'] ?? 60)
const ONE = process.env['HEADROOM_SNAPSHOT_SEED']
const MINUTE_MS = 60_000
const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }
const operatorClients = createOperatorClients()

describe('a world that starts with tasks', () => {
  it('tolerates any schedule of faults', { timeout: 60_000 + 1_000 * SEEDS }, async () => {
    const seeds = ONE === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONE)]
    const total = { worlds: 0, placed: 0, swappedOut: 0 }
    for (const seed of seeds.filter((each) => featuresOf(each).faults.length > 0)) {
      const { scenario, placed, swappedOut } = await begunInTheMiddle(seed)
      const { violations } = await judge(scenario, operatorClients.openOperatorClient)
      expect(
        violations,
        `HEADROOM_SNAPSHOT_SEED=${seed} vitest run test/property/snapshot-faults.test.ts`,
      ).toEqual([])
      total.worlds += 1
      total.placed += placed
      total.swappedOut += swappedOut
    }
    console.log(
      `${total.worlds} worlds began with ${total.placed} tasks in place, ${total.swappedOut} of them ` +
        'swapped out',
    )
    if (ONE === undefined) expect([total.placed > SEEDS, total.swappedOut > 0]).toEqual([true, true])
  })
})

it('ends its tasks by their policy when every node crashes, and none when servers restart', async () => {
  const { scenario } = loadScenario('scenarios/faults/from-a-snapshot.scenario.yaml')
  const inPlace = ['works', 'rests', 'is-out', 'wants-back', 'moves', 'waits', 'stays', 'stays-out']
  const endsWith = async (faults: Scenario['faults']): Promise<Record<string, string>> => {
    const ends: Record<string, string> = {}
    const onOutcome = ({ id, state }: TaskOutcome): void => void (ends[id] = state)
    await runScenario(
      { ...scenario, workload: scenario.workload.filter(({ kind }) => kind === 'task'), faults },
      IDENTITY,
      { onOutcome },
    )
    return Object.fromEntries(inPlace.map((id) => [id, ends[id] ?? 'open']))
  }
  const nodes = scenario.nodes.map(({ name }) => name)
  const all = (end: string): Record<string, string> => Object.fromEntries(inPlace.map((id) => [id, end]))
  const restarted = nodes.map((node, i) => ({ kind: 'bounce', atMs: 10_000 + i, forMs: 0, node }) as const)
  expect(await endsWith(restarted)).toEqual(all('completed'))
  expect(await endsWith([{ kind: 'crash_controller', atMs: 5_000, forMs: 20_000, atPoint: null }])).toEqual(
    all('completed'),
  )
  const crashed = nodes.map((node) => ({ kind: 'crash', atMs: 10_000, forMs: 10_000, node }) as const)
  const requeued = { works: 'completed', 'is-out': 'completed', moves: 'completed' }
  expect(await endsWith(crashed)).toEqual({ ...all('lost'), ...requeued })
  const anew = nodes.map((node) => ({ kind: 'node_disk_lost', atMs: 10_000, forMs: 10_000, node }) as const)
  expect(await endsWith(anew)).toEqual({ ...all('lost'), ...requeued })
})

it('decides equally whether or not faults are possible, as long as none happens', async () => {
  const { scenario } = loadScenario('scenarios/faults/from-a-snapshot.scenario.yaml')
  const digests: (string | null)[] = []
  for (const options of [{}, { record: () => new RecordingInMemory().recorder() }]) {
    digests.push((await runScenario({ ...scenario, faults: [] }, IDENTITY, options)).result.digest)
  }
  expect(digests[1]).toBe(digests[0])
})

interface Begun {
  readonly scenario: Scenario
  readonly placed: number
  readonly swappedOut: number
}

/** The world of that seed, some time after its start; later faults and tasks follow from there. */
async function begunInTheMiddle(seed: number): Promise<Begun> {
  const drawn = drawDocument(seed)
  const { faults, operator: _, ...calm } = drawn
  const before = scenarioOf({ ...calm, faults: [], operator: [] })
  const world = new World(before, { seed })
  await world.start()
  world.feed(workloadOf(before, world.random))
  await world.runUntil(MINUTE_MS + Math.floor(seededStream(seed, 'middle')() * MINUTE_MS))
  const snapshot = snapshotOfWorld(world)
  const later = laterThan(world, before)
  const text = [
    ...snapshotText(snapshot, {
      name: drawn.scenario,
      description: 'here',
      untilMs: before.clock.untilMs,
      later,
      faults,
    }),
  ].join('')
  const { assertions } = before
  const placed = snapshot.tasks.flatMap(({ state }) => state?.placed ?? [])
  return {
    scenario: { ...loadScenario({ text, baseDir: '.' }).scenario, assertions },
    placed: placed.length,
    swappedOut: placed.filter(({ residency }) => residency === 'swapped_out').length,
  }
}

function laterThan({ nowMs }: World, scenario: Scenario): SimTask[] {
  const all: SimTask[] = []
  const source = workloadOf(scenario, createSeededRandom(scenario.seed))
  for (let task = source.next(); task !== null; task = source.next()) all.push(task)
  return all
    .filter(({ at }) => at > nowMs)
    .map((task) => ({
      ...task,
      at: task.at - nowMs,
      cancelAt: task.cancelAt === null ? null : task.cancelAt - nowMs,
    }))
}
