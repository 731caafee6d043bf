/** Faults in a simulation: each kind has its effect, in the run's journal and on the servers. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FaultKind } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { runScenario } from '../../simulator/run/run.ts'
import type { Run, RunOptions } from '../../simulator/run/run.ts'

const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }

/** Two nodes of two GPUs, leases of 30 s, and a steady stream of tasks for 20 minutes. */
function scenarioText(faults: string): string {
  return `
scenario: faults
version: 1
seed: 3
clock: { until: 30m }
fleet: [{ name: "n{i}", count: 2, gpus: 2, gpu: { vram_mib: 40960 } }]
config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 20, run_lease_seconds: 30 }
workload:
  - { generate: poisson, name: g, rate_per_hour: 120, until: 20m, vram_mib: 14Gi, duration: 6m,
      activity: serving }
${faults}`
}

async function play(faults: string, options: RunOptions = {}): Promise<Run & { readonly journal: string }> {
  const { scenario } = loadScenario({ text: scenarioText(faults), baseDir: '/nowhere' })
  let journal = ''
  const run = await runScenario(scenario, IDENTITY, {
    ...options,
    journalSink: { write: (text) => (journal += text) },
  })
  return { ...run, journal }
}

async function fired(kind: FaultKind, entry: string): Promise<Run & { readonly journal: string }> {
  const run = await play(`faults: [${entry}]`)
  expect(run.result.faults?.[kind]?.fired, kind).toBeGreaterThan(0)
  return run
}

describe('a run with faults', () => {
  it('equals the run without faults, with all heartbeats sent, up to the first fault', async () => {
    const sound = await play('', { areHeartbeatsEnacted: true })
    const faulty = await play('faults: [{ at: 15m, crash: n0, for: 2m }]')
    const at = faulty.journal.indexOf('{"at":')
    expect(at).toBeGreaterThan(10_000)
    expect(sound.journal.startsWith(faulty.journal.slice(0, at))).toBe(true)
    expect(sound.journal).not.toBe(faulty.journal)
  })

  it('is reproducible, also when messages pass through the codec', async () => {
    const swarm = 'faults: [{ swarm: { until: 20m, rate_per_hour: 120 } }]'
    const once = await play(swarm)
    expect((await play(swarm)).result).toEqual(once.result)
    expect((await play(swarm, { busMode: 'wire' })).result.digest).toBe(once.result.digest)
    expect((await play(swarm, { seed: 4 })).result.digest).not.toBe(once.result.digest)
  })

  it('ends although the store stays behind a node', async () => {
    const file = join(import.meta.dirname, '../../scenarios/faults/store-one-node-ahead.scenario.yaml')
    const text = readFileSync(file, 'utf8').replace(/.*loss: accepted.*\n/, '')
    const { scenario } = loadScenario({ text, baseDir: '/nowhere' })
    const { result } = await runScenario(scenario, IDENTITY, { quietMs: 3_600_000 })
    expect(result.metrics.tasks).toMatchObject({ submitted: 3, unfinished: 2 })
  })
})

describe('every kind of fault', () => {
  it.each([
    ['crash', '{ at: 5m, crash: n0, for: 2m }'],
    ['bounce', '{ at: 5m, bounce: n0 }'],
    ['node_disk_lost', '{ at: 5m, node_disk_lost: n0, for: 10s }'],
    ['partition', '{ at: 5m, partition: [controller, n0], for: 2m }'],
    ['hold', '{ at: 5m, hold: [controller, n0], for: 20s }'],
    ['delay', '{ at: 5m, delay: all, ms: 400, for: 2m }'],
    ['drop', '{ at: 5m, drop: all, probability: 0.3, for: 2m }'],
    ['duplicate', '{ at: 5m, duplicate: all, probability: 0.3, for: 2m }'],
    ['reorder', '{ at: 5m, reorder: all, ms: 2s, for: 2m }'],
    ['restart_broker', '{ at: 5m, restart: broker, for: 10s }'],
    ['restart_controller', '{ at: 5m, restart: controller, for: 10s }'],
    ['crash_controller', '{ at: 5m, crash: controller }'],
    ['crash_controller', '{ at: 5m, crash: controller, for: 20s, at_point: before_persist }'],
    ['crash_controller', '{ at: 5m, crash: controller, at_point: after_persist }'],
    ['crash_controller', '{ at: 5m, crash: controller, at_point: after_answers }'],
    ['crash_controller', '{ at: 5m, crash: controller, at_point: after_effects }'],
    ['second_controller', '{ at: 5m, second_controller: true, for: 20s }'],
    ['second_controller', '{ at: 5m, second_controller: true }'],
    ['lease_lost', '{ at: 5m, lease_lost: cut, for: 20s }'],
    ['lease_lost', '{ at: 5m, lease_lost: unanswered, for: 20s }'],
    ['lease_lost', '{ at: 5m, lease_lost: paused, for: 20s }'],
    ['store_frozen', '{ at: 5m, store_frozen: true, for: 20s }'],
    ['store_failover', '{ at: 5m, store_failover: true, for: 20s }'],
    ['slow_disk', '{ at: 5m, slow_disk: controller, ms: 50, for: 2m }'],
    ['disk_full', '{ at: 5m, disk_full: controller, for: 30s }'],
    ['disk_full', '{ at: 5m, disk_full: n0, for: 2m }'],
    ['fsync_error', '{ at: 5m, fsync_error: controller }'],
    ['store_set_back', '{ at: 5m, store_set_back: controller, back: 0s, loss: restored }'],
    ['store_set_back', '{ at: 5m, store_set_back: controller, back: 1ms, loss: accepted, for: 20s }'],
    ['gpu_lost', '{ at: 5m, gpu_lost: { node: n0, gpu: 1 }, for: 2m }'],
    ['slow_swap', '{ at: 5m, slow_swap: n0, factor: 8, for: 15m }'],
    ['host_memory_short', '{ at: 5m, host_memory_short: n0, mib: 159Gi, for: 15m }'],
    ['clock_drift', '{ at: 5m, clock_drift: n0, ppm: -40000, for: 5m }'],
  ] as const)('%s: %s', async (kind, entry) => {
    const run = await fired(kind, entry)
    expect(run.result.metrics.tasks.unfinished).toBe(0)
    expect(run.journal).toContain(`"begins":{"kind":"${kind}"`)
  })
})
