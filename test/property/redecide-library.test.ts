/**
 * The inputs of controllers in library and drawn scenarios, with and without kills, one after the other or
 * two at once, lead to equal decisions: from each start, and from a cut of the recording, elsewhere in each
 * run of the tests (HEADROOM_SEED repeats a run).
 * HEADROOM_REDECIDE_SEEDS=4000 draws 4,000 scenarios, HEADROOM_REDECIDE_SEED=7 only that one.
 */
import { globSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import type { Checkpoint, RecordedEntry } from '../../controller/ports/recording-log.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { drawDocument, featuresOf } from '../../simulator/experiment/fuzz/draw.ts'
import { redecide, Redecision } from '../../simulator/experiment/recording/redecide.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { RUN_SEED } from '../support/drawn-cases.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const SEEDS = Number(process.env['HEADROOM_REDECIDE_SEEDS'] ?? 40)
const ONE = process.env['HEADROOM_REDECIDE_SEED']
const TIMEOUT_MS = 120_000 + 500 * SEEDS
const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }
const operatorClients = createOperatorClients()

/** The inputs of each controller start as a separate recording, because each start has its own files. */
async function recordingsOf(scenario: Scenario): Promise<readonly RecordedEntry[][]> {
  const recordings: RecordingInMemory[] = []
  const record = () => {
    const recording = new RecordingInMemory()
    recordings.push(recording)
    return recording.recorder()
  }
  await runScenario(scenario, IDENTITY, { record, openOperatorClient: operatorClients.openOperatorClient })
  expect(recordings.map(({ nested }) => nested).filter((nested) => nested > 0)).toEqual([])
  return recordings.map((recording) => recording.entries())
}

/** Returns the number of equal decisions. */
async function redecided(scenario: Scenario): Promise<number> {
  let decisions = 0
  for (const [start, entries] of (await recordingsOf(scenario)).entries()) {
    const random = seededStream(RUN_SEED, `cut/${start}`)
    const cut = 1 + Math.floor(random() * (entries.length - 1))
    const whole = new Redecision()
    for (const [i, entry] of entries.entries()) {
      if (i === cut) {
        const checkpoint = JSON.parse(JSON.stringify(whole.checkpoint())) as Checkpoint
        const { difference } = await redecide([checkpoint, ...entries.slice(i)])
        const where = `${scenario.name}, start ${start}, cut at ${i}, HEADROOM_SEED=${RUN_SEED}`
        expect(difference, where).toBeNull()
      }
      await whole.next(entry)
    }
    expect(whole.difference, `${scenario.name}, start ${start}`).toBeNull()
    decisions += whole.result().decisions
  }
  return decisions
}

const withFaults = globSync('scenarios/**/*.scenario.yaml')
  .toSorted((a, b) => (a < b ? -1 : 1))
  .map((file) => loadScenario(file).scenario)
  .filter(({ faults }) => faults.length > 0)

describe('controllers with kills', () => {
  it.each(withFaults.map((scenario) => [scenario.name, scenario] as const))(
    'decide equally again: %s',
    async (_name, scenario) => {
      expect(await redecided(scenario)).toBeGreaterThan(0)
    },
    TIMEOUT_MS,
  )

  it('decide equally again in drawn scenarios', { timeout: TIMEOUT_MS }, async () => {
    const seeds = ONE === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONE)]
    let decisions = 0
    for (const seed of seeds.filter((each) => featuresOf(each).faults.length > 0))
      decisions += await redecided(scenarioOf(drawDocument(seed)))
    if (ONE === undefined) expect(decisions).toBeGreaterThan(3 * SEEDS)
  })
})

it('need one recording each: two controllers in one recording are reported', async () => {
  const scenario = withFaults.find(({ name }) => name === 'fault-second-controller') as Scenario
  const both = new RecordingInMemory()
  await runScenario(scenario, IDENTITY, {
    record: both.recorder,
    openOperatorClient: operatorClients.openOperatorClient,
  })
  expect((await redecide(both.entries())).difference).toMatchObject({ what: 'course' })
})
